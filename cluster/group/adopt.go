package group

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/bucket"
)

// Chunks of several slots are committed side by side: when a group's slots are
// sealed, each waits for its last one, and a commit for one after the other would
// add up to what callers wait. Of one slot only one chunk is in flight at a time,
// because what may be proposed depends on how far the slot is.

// maxBeside bounds the bytes of chunks that are committed side by side, if they are
// several: takes wait for them.
const maxBeside = 96 << 10

// chunk is an adopt entry in the making.
type chunk struct {
	slot  uint16
	size  int                      // bytes
	entry func(stamp int64) []byte // nil: there is nothing to propose any more
	got   steps
}

// Adopt takes in a chunk of a slot that another group's leader exported, and which
// ParseChunk found whole. slotTime is the slot's time there when the chunk was sent,
// received when it arrived here: what has passed since then counts. It returns
// whether the chunk was taken, now or before, and the state of the slot then.
//
// A slot that is complete, or held, by the same move stays so: the source's next
// leader may begin to copy again after the last one has had the move flipped.
func (r *Replica) Adopt(ctx context.Context, m bucket.Move, slotTime int64, received time.Time, b []byte) (done bool, info bucket.SlotInfo, err error) {
	entry := func(stamp int64) []byte {
		if i := r.fsm.slot(m.Slot); i.Revision == m.Revision && (i.State == bucket.SlotComplete || i.State == bucket.SlotHeld) {
			return nil // the driver proposes nothing else for the slot meanwhile: it is so
		}
		// By the clock of the stamp, not by a later look at the time: the slot must
		// not gain what passes between the two.
		waited := max(stamp-r.lead.clock.Load().when(received), 0)
		return bucket.AdoptEntry(stamp, m, add(slotTime, waited), b)
	}
	for {
		c := &chunk{slot: m.Slot, size: len(b), entry: entry} // the driver may be left behind with it
		if err := r.do(ctx, &op{chunk: c, done: make(chan error, 1)}); err != nil {
			return false, bucket.SlotInfo{}, err
		}
		if !c.got.again {
			return len(c.got.done) == 1 && c.got.done[0], c.got.info, nil
		}
	}
}

// beside returns first with all ops that wait and may be committed beside it: each
// a chunk of another slot. The first that may not is held.
func (d *driver) beside(first *op) []*op {
	some, size := []*op{first}, first.chunk.size
	for {
		o := d.nextOp()
		switch {
		case o == nil:
			return some
		case o.chunk == nil, size+o.chunk.size > maxBeside, slices.ContainsFunc(some, func(s *op) bool { return s.chunk.slot == o.chunk.slot }):
			d.held = o
			return some
		}
		some, size = append(some, o), size+o.chunk.size
	}
}

// adopt commits chunks of different slots side by side. One that raft surely did
// not append is then proposed by itself.
func (d *driver) adopt(ctx context.Context, gen uint64, some []*op) {
	futures, outs := make([]raft.ApplyFuture, len(some)), make([]applied, len(some))
	d.r.inflight.begin()
	for i, o := range some {
		if entry := o.chunk.entry(d.r.lead.clock.Load().now()); entry != nil {
			futures[i] = d.r.begin(entry, &outs[i])
		}
	}
	errs := make([]error, len(some))
	for i, fut := range futures {
		if fut != nil {
			errs[i] = wait(fut, &outs[i])
		}
	}
	d.r.fsm.forget()
	d.r.inflight.end()
	for i, o := range some {
		switch {
		case errs[i] == nil:
			if futures[i] != nil {
				d.last = time.Now()
			}
			o.chunk.got = d.r.result(o.chunk.slot, &outs[i])
		case notAppended(errs[i]):
			o.chunk.got, errs[i] = d.step(ctx, gen, o.chunk.slot, o.chunk.entry)
		default:
			errs[i] = d.r.outcome(errs[i])
		}
		o.done <- errs[i]
	}
}
