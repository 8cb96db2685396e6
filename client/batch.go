package client

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/ringlimit/ringlimit/api/fault"
)

// Result is what became of one request of a batch: Err is nil or there is no decision.
type Result struct {
	Decision
	Err error
}

// DecideBatch answers independent requests, in order. Each is decided by
// itself, exactly as by Decide, and has its own error in its Result. The error
// of the call is nil if any was decided, else the first of theirs.
func (c *Client) DecideBatch(ctx context.Context, requests []Request) ([]Result, error) {
	results := make([]Result, len(requests))
	if err := reason(ctx); err != nil {
		err = c.gaveUp(err, false, nil)
		for i := range results {
			results[i].Err = err
		}
		return results, err
	}
	spent, all := c.leases.spendAll(requests, results)
	if all {
		return results, nil
	}
	b := c.newBatch(ctx, requests, results, spent)
	c.sendAll(b)
	b.ended(1)
	c.waitBatch(ctx, b)
	var first error
	decided := len(requests) == 0
	for i := range results {
		if k := &b.calls[i]; k.batch != nil {
			if results[i].Err = c.outcome(k); k.leased {
				c.leases.hint(&requests[i])
			}
		}
		if first == nil {
			first = results[i].Err
		}
		decided = decided || results[i].Err == nil
	}
	c.recycleBatch(b)
	if decided {
		return results, nil
	}
	return results, first
}

// batch is the calls of one DecideBatch, in one piece of memory.
type batch struct {
	calls []call        // by request; those of requests that were refused have no batch
	left  atomic.Int64  // that have not ended, and one while they are sent
	done  chan struct{} // closed when all have
}

// ended counts n calls that have. Afterwards they belong to who waits.
func (b *batch) ended(n int) {
	if b.left.Add(-int64(n)) == 0 {
		close(b.done)
	}
}

// newBatch makes the calls of requests, but for those that are decided, and notes which
// are refused. Decisions go straight to results.
func (c *Client) newBatch(ctx context.Context, requests []Request, results []Result, decided []bool) *batch {
	b := c.batches.Get().(*batch)
	if cap(b.calls) < len(requests) {
		b.calls = make([]call, len(requests))
	}
	b.calls, b.done = b.calls[:len(requests)], make(chan struct{})
	t := c.terms(ctx)
	made, numbered := 0, 0
	for i := range requests {
		k := &b.calls[i]
		if decided != nil && decided[i] {
			continue
		}
		if err := k.begin(&requests[i], &t); err != nil {
			results[i].Err = within(i, err)
			continue
		}
		k.batch, k.decision = b, &results[i].Decision
		made++
		if requests[i].numbered() {
			numbered++
		}
	}
	seq := c.sequence.Add(uint64(numbered)) - uint64(numbered)
	for i := range requests {
		if k := &b.calls[i]; k.batch != nil && requests[i].numbered() {
			seq++
			k.seq = seq
		}
	}
	b.left.Store(int64(made) + 1) // not done before all are sent
	c.began(made)
	return b
}

// maxSpare is how many calls are kept for the next batch.
const maxSpare = 1024

// recycleBatch keeps the memory of b, if nobody else can hold any of its calls.
func (c *Client) recycleBatch(b *batch) {
	if len(b.calls) > maxSpare {
		return
	}
	for i := range b.calls {
		if k := &b.calls[i]; k.batch == nil || !k.reset() {
			return
		}
	}
	b.done = nil
	c.batches.Put(b)
}

// sendAll places the calls of a batch, those of one lane at once.
func (c *Client) sendAll(b *batch) {
	type pile struct {
		lane  *lane // nil: those that must wait, or look closer
		calls []*call
	}
	var piles []pile
	for i := range b.calls {
		k := &b.calls[i]
		if k.batch == nil || c.skips(k) || c.recalls(k) {
			continue
		}
		l := k.group.open()
		at := slices.IndexFunc(piles, func(p pile) bool { return p.lane == l })
		if at < 0 {
			at = len(piles)
			piles = append(piles, pile{l, make([]*call, 0, len(b.calls))})
		}
		piles[at].calls = append(piles[at].calls, k)
	}
	for _, p := range piles {
		if p.lane != nil && p.lane.putAll(p.calls) {
			continue
		}
		c.mu.Lock()
		for _, k := range p.calls {
			c.place(k)
		}
		c.mu.Unlock()
	}
}

// waitBatch returns when all calls have ended.
func (c *Client) waitBatch(ctx context.Context, b *batch) {
	select {
	case <-b.done:
		return
	case <-ctx.Done():
	}
	for i := range b.calls {
		if k := &b.calls[i]; k.batch != nil && k.settle(abandoned) {
			k.err = c.gaveUpOn(k, reason(ctx))
			c.acks.end(k.seq)
			b.ended(1)
		}
	}
	<-b.done
}

// within names the request of the batch that an error is about.
func within(i int, err error) error {
	e, ok := err.(*fault.Error)
	if !ok {
		return err
	}
	e.Field = requestPath(i, e.Field)
	return e
}
