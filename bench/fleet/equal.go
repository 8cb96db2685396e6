package fleet

import (
	"context"
	"fmt"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// WaitEqual watches the replicas of every group, until for each group there is
// an index that all of them have been seen at, and returns where two replicas
// had different hashes of what they applied up to one index. A follower of a
// group that is not quite idle trails by an entry, so replicas need not stand
// at that index at the same moment. An error means that there was none in time.
func (f *Fleet) WaitEqual(ctx context.Context, timeout time.Duration) (differ []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	seen := sightings{}
	for {
		if st, err := f.Status(ctx); err == nil {
			met := len(st.GetGroups()) > 0
			for _, g := range st.GetGroups() {
				differ = append(differ, seen.add(g)...)
				met = met && seen.met(g)
			}
			if met || len(differ) > 0 {
				return differ, nil
			}
		}
		select {
		case <-ctx.Done():
			return differ, fmt.Errorf("replicas were never seen at one index: %w", ctx.Err())
		case <-time.After(poll):
		}
	}
}

// position is an index of a group's log.
type position struct {
	group uint32
	index uint64
}

// sightings are the hashes that nodes had at the positions they were seen at.
type sightings map[position]map[string]uint64

// add notes where a group's replicas stand, and returns which hashes contradict
// one that was seen at the same position.
func (s sightings) add(g *pb.GroupStatus) (differ []string) {
	for _, m := range g.GetMembers() {
		at := position{g.GetId(), m.GetApplied()}
		if s[at] == nil {
			s[at] = map[string]uint64{}
		}
		for node, chain := range s[at] {
			if chain != m.GetChain() {
				differ = append(differ, fmt.Sprintf("group %d at index %d: node %s has hash %016x, node %s %016x",
					at.group, at.index, node, chain, m.GetNode(), m.GetChain()))
				break
			}
		}
		s[at][m.GetNode()] = m.GetChain()
	}
	return differ
}

// met reports whether all replicas of a group have been seen at one position.
func (s sightings) met(g *pb.GroupStatus) bool {
	nodes := map[string]bool{}
	for _, m := range g.GetMembers() {
		nodes[m.GetNode()] = true
	}
	for at, chains := range s {
		if at.group == g.GetId() && len(nodes) > 0 && len(chains) >= len(nodes) {
			return true
		}
	}
	return false
}
