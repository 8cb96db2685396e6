package group

import (
	"context"
	"sync"
)

// helpers are goroutines that wait for raft futures, which know no context.
type helpers struct {
	mu     sync.Mutex // guards closed, and Add against Wait
	closed bool
	wg     sync.WaitGroup // one for each goroutine; Run waits for them before it ends raft
}

// start runs f in a goroutine, unless the replica is stopping.
func (h *helpers) start(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.wg.Go(f)
	return true
}

// close refuses further goroutines.
func (h *helpers) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
}

// await runs f, which waits for raft, and returns its error, or that of ctx if
// that ends first; f then goes on alone, and Run waits for it.
func (r *Replica) await(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	if !r.helpers.start(func() { done <- f() }) {
		return errStopping
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
