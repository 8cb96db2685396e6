package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bench/check"
)

// status asks the first node that runs and answers; nil if none does.
func (w *world) status() *pb.StatusResponse {
	for _, name := range w.running() {
		if x := w.node(name); x != nil {
			if r, err := x.Status(context.Background(), &pb.StatusRequest{}); err == nil {
				return r
			}
		}
	}
	return nil
}

// unhealthy says what is wrong, as any of the nodes sees it; nil if nothing is.
func (w *world) unhealthy() error {
	names := w.running()
	if len(names) == 0 {
		return errors.New("no node runs")
	}
	for _, name := range names {
		x := w.node(name)
		if x == nil {
			return fmt.Errorf("%s does not run", name)
		}
		r, err := x.Status(context.Background(), &pb.StatusRequest{})
		switch {
		case err != nil:
			return err
		case !r.Healthy:
			return fmt.Errorf("%s: %s", name, strings.Join(r.Problems, "; "))
		case len(r.Nodes) != len(names):
			return fmt.Errorf("%s knows %d nodes, %d run", name, len(r.Nodes), len(names))
		case len(r.Moves) > 0 || r.MovesWaiting > 0:
			return fmt.Errorf("%s: %d slots move, %d wait", name, len(r.Moves), r.MovesWaiting)
		}
	}
	return nil
}

// eventually waits until f finds nothing wrong, and returns how long that took.
func (w *world) eventually(within time.Duration, f func() error) (time.Duration, error) {
	begun, last := time.Now(), ""
	for {
		err := f()
		if err == nil {
			return time.Since(begun), nil
		}
		if why := err.Error(); why != last {
			w.trace.note("not yet: %s", why)
			last = why
		}
		if time.Since(begun) > within {
			return within, fmt.Errorf("not within %v: %w", within, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// losses notes the epochs of groups that r shows for the first time, and their voters.
func (w *world) losses(r *pb.StatusResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.voters(r)
	for _, g := range r.GetGroups() {
		for e := max(w.epochs[g.Id], 1) + 1; e <= g.Epoch; e++ {
			w.lost = append(w.lost, check.Loss{Group: g.Id, Epoch: e, Span: check.Span{To: w.now()}})
		}
		w.epochs[g.Id] = max(w.epochs[g.Id], g.Epoch)
	}
	w.moved = w.moved || w.placed(r)
}

// placed says whether r shows slots elsewhere than the first status that showed any did.
// Nodes that come and go are not the only reason: one that lost its directory is another
// node, and its group may be dissolved.
func (w *world) placed(r *pb.StatusResponse) (elsewhere bool) {
	slots := make(map[uint32]uint32)
	for _, g := range r.GetGroups() {
		slots[g.Id] = g.Slots
	}
	if len(w.slots) == 0 {
		w.slots = slots
	}
	return len(slots) > 0 && !maps.Equal(slots, w.slots)
}

// replicas are what all replicas say of themselves at this moment.
func (w *world) replicas() (seen []check.Replica) {
	r := w.status()
	for _, g := range r.GetGroups() {
		for _, m := range g.Members {
			if m.Reachable {
				seen = append(seen, check.Replica{Node: m.Node, Group: g.Id, Epoch: g.Epoch, Applied: m.Applied, Chain: m.Chain})
			}
		}
	}
	return seen
}

// TestSlotsThatMovedAreSeen: else what their new group had lost before would pass for
// theirs, and what their old one lost for nothing.
func TestSlotsThatMovedAreSeen(t *testing.T) {
	status := func(slots ...uint32) *pb.StatusResponse {
		r := new(pb.StatusResponse)
		for i := 0; i < len(slots); i += 2 {
			r.Groups = append(r.Groups, &pb.GroupStatus{Id: slots[i], Epoch: 1, Slots: slots[i+1]})
		}
		return r
	}
	w := new(world)
	for i, step := range []struct {
		r     *pb.StatusResponse
		moved bool
	}{
		{status(), false},
		{status(0, 31, 1, 33), false},
		{status(), false}, // by a node that has just started
		{status(0, 31, 1, 33), false},
		{status(0, 31, 2, 33), true},
	} {
		if got := w.placed(step.r); got != step.moved {
			t.Errorf("status %d: moved is %t", i, got)
		}
	}
}
