package group

import (
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

// gather is where takes wait for the entry in flight. It is bounded by what one
// entry may hold; when that is reached it answers busy at once.
type gather struct {
	kick chan struct{} // one token when the batch is no longer empty

	mu    sync.Mutex // guards what follows and all batches that are not finished; held to encode a call
	open  bool
	ended bool // never opened again
	cur   *batch
}

// ErrTooBig is what Take returns for a call that no single entry can carry, of the
// kind InvalidArgument. Nothing of it was charged, and any part of it that fits
// may be asked for: the caller can halve it.
var ErrTooBig = fault.New(fault.InvalidArgument, "more requests, takes or bytes in one call than an entry may hold")

func newGather() *gather {
	return &gather{kick: make(chan struct{}, 1), cur: newBatch()}
}

var (
	errBusy   = fault.New(fault.Busy, "the next entry is full")
	errClosed = fault.New(fault.NotLeader, "not leading") // replaced by whom to ask instead
)

// add puts reqs, without those skipped, into the batch being gathered. The caller
// must wait for the batch, then collect call i and release.
func (g *gather) add(reqs []Request, skip []bool, deadline time.Time) (b *batch, i int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b = g.cur
	switch {
	case !g.open:
		return nil, 0, errClosed
	case b.full:
		return nil, 0, errBusy
	}
	c := call{reqs: reqs, skip: skip, deadline: deadline}
	if !b.encode(&c) {
		b.rebuild()
		if !c.fitsAlone() {
			return nil, 0, ErrTooBig
		}
		// A large call that does not fit does not make a batch full for small ones.
		b.full = b.builder.Len() > bucket.MaxEntryRequests/2 || b.builder.Bytes() > bucket.MaxEntryBytes/2
		return nil, 0, errBusy
	}
	b.calls = append(b.calls, c)
	b.refs.Add(1)
	if len(b.calls) == 1 {
		g.wake()
	}
	return b, len(b.calls) - 1, nil
}

// wake makes the driver look.
func (g *gather) wake() {
	notify(g.kick)
}

// take hands the gathered batch to the driver, nil if it is empty.
func (g *gather) take() *batch {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.cur.calls) == 0 {
		return nil
	}
	b := g.cur
	g.cur = newBatch()
	return b
}

// seal makes b ready to be proposed: calls whose deadline has passed are dropped.
// It returns how many requests are left, none if b was finished meanwhile, and how
// many calls it dropped.
func (g *gather) seal(b *batch, now time.Time) (requests, dropped int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.state == finished {
		return 0, 0
	}
	for i := range b.calls {
		c := &b.calls[i]
		if !c.dropped && !c.deadline.IsZero() && !now.Before(c.deadline) {
			c.dropped, b.stale = true, true
			dropped++
		}
	}
	if b.stale {
		b.rebuild()
	}
	if n := b.builder.Len(); n > 0 {
		b.state = proposed
		return n, dropped
	}
	return 0, dropped
}

// unseal takes seal back: the batch was not appended to the log.
func (g *gather) unseal(b *batch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.state == proposed {
		b.state = queued
	}
}

// finish answers all calls of b, unless it is finished already.
func (g *gather) finish(b *batch, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end(b, err)
}

// end is finish for a caller that holds mu.
func (g *gather) end(b *batch, err error) {
	if b.state == finished {
		return
	}
	b.state, b.err = finished, err
	close(b.done)
}

// leave ends the wait of call i of b. It says in which state the batch was:
// queued, and the call is dropped uncharged; proposed, and its outcome is unknown
// (should the batch have to be proposed again, it goes without this call, whose
// requests are no longer there); or finished, and it can be collected.
func (g *gather) leave(b *batch, i int) batchState {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.state != finished {
		c := &b.calls[i]
		c.dropped, c.reqs, b.stale = true, nil, true
	}
	return b.state
}

// admit opens the gather, unless it has been closed for good.
func (g *gather) admit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = !g.ended
}

// shut closes the gather and answers all that wait in it, uncharged, with err.
// After the final shut admit does not open it again: nobody would take what it
// gathers.
func (g *gather) shut(err error, final bool) {
	g.mu.Lock()
	g.open, g.ended = false, g.ended || final
	b := g.cur
	if len(b.calls) == 0 {
		g.mu.Unlock()
		return
	}
	g.cur = newBatch()
	g.end(b, err)
	g.mu.Unlock()
	b.release()
}
