package fleet

import (
	"context"
	"fmt"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// WaitEqual watches until all replicas of every group stand at one index, and
// returns where replicas at one index have different hashes of what they
// applied. An error means that they never stood still together.
func (f *Fleet) WaitEqual(ctx context.Context, timeout time.Duration) (differ []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	level := map[uint32]bool{}
	for {
		st, err := f.Status(ctx)
		if err == nil {
			for _, g := range st.GetGroups() {
				same, broken := compare(g)
				differ = append(differ, broken...)
				level[g.GetId()] = level[g.GetId()] || same
			}
			if allLevel(st.GetGroups(), level) || len(differ) > 0 {
				return differ, nil
			}
		}
		select {
		case <-ctx.Done():
			return differ, fmt.Errorf("replicas never stood at one index (level so far: %v): %w", level, ctx.Err())
		case <-time.After(poll):
		}
	}
}

func allLevel(groups []*pb.GroupStatus, level map[uint32]bool) bool {
	for _, g := range groups {
		if !level[g.GetId()] {
			return false
		}
	}
	return len(groups) > 0
}

// compare looks at one group: whether all its replicas stand at one index, and
// which of those at one index differ.
func compare(g *pb.GroupStatus) (level bool, differ []string) {
	at := map[uint64]*pb.ReplicaStatus{}
	level = len(g.GetMembers()) > 0
	for _, m := range g.GetMembers() {
		first, ok := at[m.GetApplied()]
		if !ok {
			at[m.GetApplied()] = m
			continue
		}
		if m.GetChain() != first.GetChain() {
			differ = append(differ, fmt.Sprintf("group %d at index %d: node %s has hash %016x, node %s %016x",
				g.GetId(), m.GetApplied(), first.GetNode(), first.GetChain(), m.GetNode(), m.GetChain()))
		}
	}
	return level && len(at) == 1, differ
}
