package client

import (
	"context"
	"time"
)

const (
	keepEvery     = leaseWorth             // how often leases are looked at
	closePatience = 500 * time.Millisecond // for returning what is left when the client is closed
)

// keep looks at all holdings now and then: what is void or spent is over, what nobody
// spends is returned, and keys that nobody asks for are forgotten. It ends when there
// are none, or the client is closed.
func (l *leases) keep() {
	look := time.NewTicker(keepEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-l.client.ctx.Done():
			return
		}
		for _, h := range l.all() {
			over, back, idle := h.sweep(l.client.now(), false)
			l.over(over)
			for _, g := range back {
				l.start(func() { l.giveBackInTurn(l.client.ctx, h, g) }, func() { l.over([]grant{g}) })
			}
			if idle {
				l.forget(h)
			}
		}
		if l.rests() {
			return
		}
	}
}

// rests says whether there is nothing left to keep; then keep has ended.
func (l *leases) rests() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keeping = len(l.keys) > 0
	return !l.keeping
}

func (l *leases) isClosed() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.closed
}

func (l *leases) all() []*holding {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]*holding, 0, len(l.keys))
	for _, h := range l.keys {
		all = append(all, h)
	}
	return all
}

// giveBackInTurn is giveBack, of a few at a time.
func (l *leases) giveBackInTurn(ctx context.Context, h *holding, g grant) {
	select {
	case l.busy <- struct{}{}:
		l.giveBack(ctx, h, g)
		<-l.busy
	case <-ctx.Done():
		l.over([]grant{g})
	}
}

// close returns all that is held, for as long as closePatience. Nothing is asked for or
// spent from then on. The client's context is not done yet.
func (l *leases) close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	keys := l.keys
	l.keys = map[string]*holding{}
	l.held.Store(0)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(l.client.ctx, closePatience)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, h := range keys {
			over, back, _ := h.sweep(l.client.now(), true)
			l.over(over)
			for _, g := range back {
				l.asks.Go(func() { l.giveBackInTurn(ctx, h, g) })
			}
		}
		l.asks.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		l.client.cancel() // ends what is under way
		<-done
	}
}
