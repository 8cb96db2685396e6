package cluster

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/control"
)

// adoptCall is one chunk of a slot on its way to the leader of its new group.
type adoptCall struct {
	group, epoch uint32 // the new group
	move         bucket.Move
	slotTime     int64 // of the slot, when this was sent; 0 where it does not count
	chunk        []byte
}

// adoptVersion begins a call and its answer.
const adoptVersion = 1

func (c adoptCall) encode() []byte {
	b := append(make([]byte, 0, 48+len(c.chunk)), adoptVersion)
	for _, v := range []uint64{uint64(c.group), uint64(c.epoch), uint64(c.move.Slot), c.move.Revision, uint64(c.slotTime)} {
		b = binary.AppendUvarint(b, v)
	}
	return append(b, c.chunk...)
}

func parseAdopt(b []byte) (c adoptCall, err error) {
	r := &reader{b: b}
	version := r.byte()
	c.group, c.epoch = uint32(r.uint()), uint32(r.uint())
	c.move = bucket.Move{Slot: uint16(r.uint()), Revision: r.uint()}
	c.slotTime, c.chunk = int64(r.uint()), r.b
	switch {
	case r.err != nil:
		return c, r.err
	case version != adoptVersion:
		return c, errors.New("chunk call of another version")
	}
	return c, nil
}

// adopted is the answer: whether the chunk was taken, now or before, and where the
// slot stands.
type adopted struct {
	done  bool
	state bucket.SlotState
	pass  uint64
	next  uint32
}

func (a adopted) encode() []byte {
	b := []byte{adoptVersion, flag(a.done), byte(a.state)}
	return binary.AppendUvarint(binary.AppendUvarint(b, a.pass), uint64(a.next))
}

func parseAdopted(b []byte) (a adopted, err error) {
	r := &reader{b: b}
	version := r.byte()
	a = adopted{done: r.byte() != 0, state: bucket.SlotState(r.byte()), pass: r.uint(), next: uint32(r.uint())}
	if r.err != nil || version != adoptVersion {
		return a, fault.New(fault.OutcomeUnknown, "the answer to a chunk makes no sense")
	}
	return a, nil
}

// handleAdopt takes in a chunk where this node leads the slot's new group.
func (n *Node) handleAdopt(ctx context.Context, body []byte) ([]byte, error) {
	received := n.cfg.Seams.Now()
	c, err := parseAdopt(body)
	if err != nil {
		return nil, fault.New(fault.InvalidArgument, "%v", err)
	}
	info, err := bucket.ParseChunk(c.chunk)
	if err != nil || info.Slot != c.move.Slot {
		return nil, fault.New(fault.InvalidArgument, "chunk %d for slot %d: %v", info.Number, c.move.Slot, err)
	}
	v := n.view.Load()
	if !v.placed() {
		return nil, fault.New(fault.NotReady, "node %s knows no placement yet", n.self.name)
	}
	if err := mayAdopt(v.state, c); err != nil {
		return nil, err
	}
	replica := v.replicas[c.group]
	if replica == nil || !replica.Serving() {
		return nil, fault.Leader(n.hint(v, c.group))
	}
	if err := n.arrives(ctx, c, info.Number == 0); err != nil {
		return nil, err
	}
	done, now, err := replica.Adopt(ctx, c.move, c.slotTime, received, c.chunk)
	if err != nil {
		return nil, err
	}
	a := adopted{done: done, pass: now.Pass, next: now.Next}
	if now.Revision == c.move.Revision {
		a.state = now.State
	}
	return a.encode(), nil
}

// arrives waits for the turn of a chunk that is copied ahead; one of a sealed slot
// only takes it, because callers wait. A turn that is far off is not waited for here:
// the source asks again, and meanwhile sees whether this is still the right node.
func (n *Node) arrives(ctx context.Context, c adoptCall, first bool) error {
	size := len(c.chunk)
	if first {
		size += slotCost
	}
	if c.slotTime != 0 {
		n.arrivals.book(size)
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, turnWait, errTurn)
	defer cancel()
	return n.arrivals.wait(ctx, size)
}

// mayAdopt says why a chunk is not for this group now. The tables refuse what is
// out of date by themselves: this only spares them.
func mayAdopt(s *control.State, c adoptCall) error {
	g, ok := s.Group(c.group)
	mv, open := s.Move(c.move.Slot)
	switch {
	case !ok || g.Epoch != c.epoch:
		return fault.New(fault.NotReady, "group %d is not known here in epoch %d", c.group, c.epoch)
	case c.move.Revision >= s.NextRevision:
		return fault.New(fault.NotReady, "the move of slot %d is not known here yet", c.move.Slot)
	case !open || mv.Revision != c.move.Revision || mv.To != c.group || mv.Phase != control.Copying:
		return errOver
	}
	return nil
}
