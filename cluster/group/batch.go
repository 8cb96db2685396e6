package group

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

// batchState is how far a batch is.
type batchState uint8

const (
	queued   batchState = iota // nothing of it is proposed: leaving it is free
	proposed                   // it may be in the log
	finished                   // done is closed; err and out do not change any more
)

// call is one Take in a batch.
type call struct {
	reqs     []Request // valid until it leaves: its Take waits
	skip     []bool    // requests answered already
	deadline time.Time // zero: none
	first    int       // number of its first request in the entry
	dropped  bool      // it left, or its deadline passed before the batch was proposed
}

// batch is takes that share an entry.
type batch struct {
	// Guarded by the gather's mutex until finished.
	state   batchState
	builder bucket.Builder
	calls   []call
	full    bool // a call did not fit; no more are taken in
	stale   bool // the builder holds requests of dropped calls

	out  applied // written by the fsm between expect and forget
	err  error
	done chan struct{}
	refs atomic.Int32 // the driver and each call; the last puts the batch back
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch() *batch {
	b := batches.Get().(*batch)
	b.done = make(chan struct{})
	b.refs.Store(1)
	return b
}

// release ends one use of b.
func (b *batch) release() {
	if b.refs.Add(-1) > 0 {
		return
	}
	clear(b.calls)
	b.calls = b.calls[:0]
	b.builder.Reset()
	b.out.results.Reset()
	b.state, b.full, b.stale, b.err, b.done = queued, false, false, nil, nil
	batches.Put(b)
}

// encode adds the requests of c to the entry; false if they do not fit, and then
// the builder may hold some of them.
func (b *batch) encode(c *call) bool {
	c.first = b.builder.Len()
	for i := range c.reqs {
		if !c.skip[i] && !b.builder.Add(&c.reqs[i].Request) {
			return false
		}
	}
	return true
}

// fitsAlone says whether an entry of its own could carry c.
func (c *call) fitsAlone() bool {
	b := newBatch()
	defer b.release()
	return b.encode(&call{reqs: c.reqs, skip: c.skip})
}

// rebuild encodes the calls afresh, without those dropped.
func (b *batch) rebuild() {
	b.builder.Reset()
	for i := range b.calls {
		if !b.calls[i].dropped {
			b.encode(&b.calls[i])
		}
	}
	b.stale = false
}

// collect puts together what call i got, after done.
func (b *batch) collect(i int, reqs []Request, out *Outcome) error {
	c := &b.calls[i]
	switch {
	case c.dropped:
		return errExpired
	case b.err != nil:
		return b.err
	}
	ahead, item := 0, c.first
	for j := range reqs {
		if out.Uncommitted[j] {
			appendItem(&out.Results, &out.peeked, ahead)
			ahead++
		} else {
			appendItem(&out.Results, &b.out.results, item)
			item++
		}
	}
	out.Index, out.Term, out.Time, out.First = b.out.index, b.out.term, b.out.time, c.first
	return nil
}

// appendItem copies item i of src with its answers to the end of dst.
func appendItem(dst, src *bucket.Results, i int) {
	it := src.Items[i]
	first := int32(len(dst.Answers))
	dst.Answers = append(dst.Answers, src.Answers[it.First:it.First+it.Count]...)
	it.First = first
	dst.Items = append(dst.Items, it)
}

var errExpired = fault.New(fault.Deadline, "before the take was proposed; nothing was charged")

// errLeft is what a call gets that stops waiting for an entry in flight.
func errLeft(ctx context.Context) error {
	return fault.New(fault.OutcomeUnknown, "stopped waiting for the commit: %v", context.Cause(ctx))
}
