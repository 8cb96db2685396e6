package cluster

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/control"
)

// While a slot moves there is a moment in which no group takes for it: it is
// sealed in the one and not yet owned by the other. What is asked meanwhile was
// not charged. It waits here until this node knows who holds the slot, and is then
// decided anew under the same id: its caller sees a slow answer, not an error.

const (
	// elsewhereWait bounds the wait of a caller without a deadline.
	elsewhereWait = 5 * time.Second
	// elsewherePause is after how long a node is asked again that did not hold a
	// slot and said so, while nothing is heard of the slot.
	elsewherePause = 20 * time.Millisecond
	// streamWait bounds the wait of a request in a message of a stream. The others in
	// it wait along, and so may what its caller has not sent yet: the caller is then
	// told that the slot is not held, and asks again for this request alone.
	streamWait = 4 * time.Millisecond
	// remoteWait is how long a request of another node waits for a slot that this
	// node's group is about to hold, before it is told that it is not held.
	remoteWait = 500 * time.Millisecond
)

// errNotHeld is what a caller gets whose deadline came first; nothing was charged.
var errNotHeld = fault.New(fault.NotHeld, "the slot is on its way to another group")

// decideElsewhere decides the requests at positions at of m anew: when they were
// decided by v, no slot of which was held where it was looked for. slots are those
// they touch.
func (n *Node) decideElsewhere(ctx context.Context, v *view, b *batch, m *pb.StreamRequest, at []int, slots []uint16) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, elsewhereWait)
		defer cancel()
	}
	longest := elsewhereWait
	switch {
	case m.GetId() != 0: // of a stream, here or at the node that forwarded it
		longest = streamWait
	case b.from.forwarded: // the node that forwarded it can wait longer, and holds no handler here
		longest = remoteWait
	}
	wait, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	begun := time.Now()
	n.metrics.elsewhere.Add(float64(len(at)))
	err := n.awaitHolder(wait, v, slots, b.from.forwarded)
	n.metrics.moves.waits.Observe(time.Since(begun).Seconds())
	if err != nil {
		for _, i := range at {
			b.fail(i, err)
		}
		return
	}
	again := &pb.StreamRequest{Id: m.Id, Session: m.Session, Acked: m.Acked, Revision: m.Revision}
	for _, i := range at {
		again.Requests = append(again.Requests, older(m.Requests[i], time.Since(begun)))
	}
	for k, r := range n.decide(ctx, again, b.from.again()) {
		b.pointers[at[k]] = r
	}
}

// older is r after it has waited here: its age, by which a table knows a copy that
// it can no longer judge, goes on meanwhile.
func older(r *pb.DecideRequest, waited time.Duration) *pb.DecideRequest {
	if r.GetSent() == nil {
		return r
	}
	c := proto.CloneOf(r)
	c.Sent.AgeNs += uint64(waited)
	return c
}

// awaitHolder waits until slots, of which one at least was not held where v has
// it, can be asked for again: where this node's replica leads their groups until
// it holds them, else until the view is newer, or for a pause. A forwarded request
// does not wait for a group that this node does not lead.
func (n *Node) awaitHolder(ctx context.Context, v *view, slots []uint16, forwarded bool) error {
	pause := time.NewTimer(elsewherePause)
	defer pause.Stop()
	paused := false
	for {
		changed := n.views.wait()
		here, held := n.view.Load().holder(slots)
		if here && held || !here && (forwarded || paused || n.view.Load().moved(v, slots)) {
			return nil
		}
		select {
		case <-changed:
		case <-pause.C:
			paused = true
			pause.Reset(elsewherePause)
		case <-ctx.Done():
			return errNotHeld
		}
	}
}

// holder says whether replicas that run here serve the groups of all slots, and
// if so whether they hold them.
func (v *view) holder(slots []uint16) (here, held bool) {
	for _, slot := range slots {
		r := v.replicas[v.state.SlotGroup[slot]]
		if r == nil || !r.Serving() {
			return false, false
		}
	}
	for _, slot := range slots {
		if !v.replicas[v.state.SlotGroup[slot]].Held(slot) {
			return true, false
		}
	}
	return true, true
}

// moved says whether a slot has another group than in the earlier view w.
func (v *view) moved(w *view, slots []uint16) bool {
	return slices.ContainsFunc(slots, func(s uint16) bool { return v.state.SlotGroup[s] != w.state.SlotGroup[s] })
}

// onTheWay is the slots of open moves, nil if there are none.
func onTheWay(s *control.State) map[uint16]bool {
	if len(s.Moves) == 0 {
		return nil
	}
	slots := make(map[uint16]bool, len(s.Moves))
	for i := range s.Moves {
		slots[s.Moves[i].Slot] = true
	}
	return slots
}

// slotsOf appends the slots that r touches.
func slotsOf(dst []uint16, r *bucket.Request) []uint16 {
	dst = append(dst, r.Home)
	for i := range r.Takes {
		if s := r.Takes[i].Slot; !slices.Contains(dst, s) {
			dst = append(dst, s)
		}
	}
	return dst
}

// setAside takes out of p the requests for slots that are on their way and not
// held here now, so that they need no commit to find that out. It returns their
// positions in the message and the slots they touch.
func (p *part) setAside(v *view, r *group.Replica) (at []int, slots []uint16) {
	if len(v.onTheWay) == 0 || !r.Serving() {
		return nil, nil
	}
	keep := 0
	for k := range p.at {
		touched := slotsOf(nil, &p.requests[k].Request)
		if slices.ContainsFunc(touched, func(s uint16) bool { return v.onTheWay[s] && !r.Held(s) }) {
			at, slots = append(at, p.at[k]), append(slots, touched...)
			continue
		}
		p.at[keep], p.requests[keep], p.hits[keep], p.near[keep] = p.at[k], p.requests[k], p.hits[k], p.near[k]
		keep++
	}
	p.at, p.requests, p.hits, p.near = p.at[:keep], p.requests[:keep], p.hits[:keep], p.near[:keep]
	slices.Sort(slots)
	return at, slices.Compact(slots)
}
