package cluster

import (
	"context"
	"sync"
	"time"
)

// pace bounds how many bytes a second leave, with nothing saved up: after a pause
// the first piece goes at once, the next one when its turn has come.
type pace struct {
	rate int // bytes per second, > 0

	mu   sync.Mutex // guards next
	next time.Time  // when the next piece may go
}

// wait waits for the turn of n bytes.
func (p *pace) wait(ctx context.Context, n int) error {
	now := time.Now()
	p.mu.Lock()
	at := p.next
	if at.Before(now) {
		at = now
	}
	lasts := time.Duration(n) * time.Second / time.Duration(p.rate)
	p.next = at.Add(lasts)
	p.mu.Unlock()
	if !at.After(now) {
		return ctx.Err()
	}
	t := time.NewTimer(at.Sub(now))
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
