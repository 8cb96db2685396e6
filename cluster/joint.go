package cluster

import (
	"context"
	"sync"
)

// joint gathers what many ask for into one call at a time: what is asked while a
// call is under way goes together with the next. There is no timer: the first goes
// at once.
type joint[T any] struct {
	do func(items []T) []error // one error per item, or one for all

	mu   sync.Mutex // guards what follows
	next *jointCall[T]
	busy bool
	wg   sync.WaitGroup // of the goroutine that calls do
}

type jointCall[T any] struct {
	items  []T
	errs   []error
	called chan struct{} // closed when errs is there
}

// ask has item done with others. When ctx ends first, it may still be done.
func (j *joint[T]) ask(ctx context.Context, item T) error {
	j.mu.Lock()
	if j.next == nil {
		j.next = &jointCall[T]{called: make(chan struct{})}
	}
	c, i := j.next, len(j.next.items)
	c.items = append(c.items, item)
	if !j.busy {
		j.busy = true
		j.wg.Go(j.work)
	}
	j.mu.Unlock()
	return c.wait(ctx, i)
}

// wait returns what became of item i.
func (c *jointCall[T]) wait(ctx context.Context, i int) error {
	select {
	case <-c.called:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case i < len(c.errs):
		return c.errs[i]
	case len(c.errs) == 1:
		return c.errs[0]
	}
	return nil
}

// work calls until nobody asks.
func (j *joint[T]) work() {
	for {
		j.mu.Lock()
		c := j.next
		j.next, j.busy = nil, c != nil
		j.mu.Unlock()
		if c == nil {
			return
		}
		c.errs = j.do(c.items)
		close(c.called)
	}
}
