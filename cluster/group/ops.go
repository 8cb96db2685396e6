package group

import (
	"context"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

// op is something the driver does between two batches, while it leads: run, or
// where that is nil, to commit a chunk.
type op struct {
	run   func(ctx context.Context, d *driver, gen uint64) error
	chunk *chunk
	done  chan error // of one
}

// perform does o, or refuses it where this replica does not lead; with a chunk
// those that wait and may be committed beside it.
func (d *driver) perform(ctx context.Context, o *op) {
	gen, ok := d.ready(ctx)
	switch {
	case !ok:
		o.done <- d.r.notLeading()
	case o.chunk != nil:
		d.adopt(ctx, gen, d.beside(o))
	default:
		o.done <- o.run(ctx, d, gen)
	}
}

// nextOp is an op that waits, nil if none does.
func (d *driver) nextOp() *op {
	if o := d.held; o != nil {
		d.held = nil
		return o
	}
	select {
	case o := <-d.r.ops:
		return o
	default:
		return nil
	}
}

// ask has the driver run f. If ctx ends before the driver got to it, nothing was
// done (Deadline); if later, the outcome is unknown.
func (r *Replica) ask(ctx context.Context, f func(ctx context.Context, d *driver, gen uint64) error) error {
	return r.do(ctx, &op{run: f, done: make(chan error, 1)})
}

// do is ask for an op.
func (r *Replica) do(ctx context.Context, o *op) error {
	select {
	case r.ops <- o:
	case <-ctx.Done():
		return fault.New(fault.Deadline, "the replica did not get to it: %v", context.Cause(ctx))
	case <-r.ended:
		return errStopped
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return errLeft(ctx)
	case <-r.ended:
		return fault.New(fault.OutcomeUnknown, "the replica stopped meanwhile")
	}
}

// Stamp commits the group time, so that all replicas that receive it live know
// it. It returns the error kinds of Take.
func (r *Replica) Stamp(ctx context.Context) error {
	return r.ask(ctx, func(ctx context.Context, d *driver, gen uint64) error {
		var out applied
		return r.outcome(d.propose(ctx, gen, stampWith(0), &out))
	})
}

// Hold makes the group hold slots from now on, as the first placement gives them.
// It may be repeated. It returns the error kinds of Take.
func (r *Replica) Hold(ctx context.Context, slots []uint16) error {
	return r.ask(ctx, func(ctx context.Context, d *driver, gen uint64) error {
		var out applied
		return r.outcome(d.propose(ctx, gen, proposal{entry: func(stamp int64) []byte {
			return bucket.HoldEntry(stamp, slots)
		}}, &out))
	})
}

// pause waits for d, or less if ctx ends first; it returns false then.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
