package client

import (
	"context"
	"slices"

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
	b := &batch{done: make(chan struct{})}
	calls := make([]*call, len(requests))
	b.left.Store(1) // not done before all are sent
	for i := range requests {
		k, err := c.newCall(ctx, &requests[i])
		if err != nil {
			results[i].Err = within(i, err)
			continue
		}
		calls[i] = k
		if c.skips(k) {
			k.err = errUnreached
			continue
		}
		k.batch = b
		b.left.Add(1)
	}
	c.sendAll(calls)
	b.ended()
	c.waitBatch(ctx, b, calls)
	var first error
	decided := len(requests) == 0
	for i, k := range calls {
		if k != nil {
			results[i].Decision, results[i].Err = c.outcome(k)
			c.recycle(k)
		}
		if first == nil {
			first = results[i].Err
		}
		decided = decided || results[i].Err == nil
	}
	if decided {
		return results, nil
	}
	return results, first
}

// sendAll places the calls of a batch, those of one lane at once.
func (c *Client) sendAll(calls []*call) {
	type pile struct {
		lane  *lane // nil: those that must wait, or look closer
		calls []*call
	}
	var piles []pile
	for _, k := range calls {
		if k == nil || !k.live() {
			continue
		}
		l := k.group.open()
		i := slices.IndexFunc(piles, func(p pile) bool { return p.lane == l })
		if i < 0 {
			i = len(piles)
			piles = append(piles, pile{l, make([]*call, 0, len(calls))})
		}
		piles[i].calls = append(piles[i].calls, k)
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
func (c *Client) waitBatch(ctx context.Context, b *batch, calls []*call) {
	select {
	case <-b.done:
		return
	case <-ctx.Done():
	}
	for _, k := range calls {
		if k != nil && k.settle(abandoned) {
			k.err = c.gaveUpOn(k, reason(ctx))
			c.acks.end(k.seq)
			b.ended()
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
