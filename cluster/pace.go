package cluster

import (
	"context"
	"sync"
	"time"
)

// pace bounds how many bytes a second go out of this node or into it, with nothing
// saved up: after a pause the first piece goes at once, the next one when its turn
// has come.
type pace struct {
	rate int // bytes per second, > 0

	mu   sync.Mutex // guards next
	next time.Time  // when the next piece may go
}

// book takes a turn for n bytes without waiting for it: it tells when it is, and how
// long it lasts.
func (p *pace) book(n int) (at time.Time, lasts time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = time.Now()
	if p.next.After(at) {
		at = p.next
	}
	lasts = time.Duration(n) * time.Second / time.Duration(p.rate)
	p.next = at.Add(lasts)
	return at, lasts
}

// wait waits for the turn of n bytes.
func (p *pace) wait(ctx context.Context, n int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	at, lasts := p.book(n)
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		p.next = p.next.Add(-lasts) // whoever waits behind keeps the turn it has; the next to come gains
		p.mu.Unlock()
		return context.Cause(ctx)
	}
}
