package cluster

import (
	"context"
	"sync"
)

// rounds gathers what many ask for into few calls: what is asked while as many rounds
// are under way as may be goes together into the next. There is no timer: the first
// goes at once.
//
// Who joins says when it is through with what it asked for, and the next round waits
// for all of the one before. So of a group's slots all that are ready are sealed
// together, and in between none is: the group is slow for some of its slots for as
// little time as possible. Who only asks is through at once.
type rounds[T any] struct {
	do   func(items []T) []error // one error per item, or one for all
	most int                     // rounds that may be under way at once, > 0

	mu   sync.Mutex // guards what follows
	next *round[T]
	busy int            // goroutines that do rounds
	wg   sync.WaitGroup // of them
}

type round[T any] struct {
	items   []T
	errs    []error
	called  chan struct{}  // closed when errs is there
	members sync.WaitGroup // those that have joined and are not through
}

// ask has item done with others. When ctx ends first, it may still be done.
func (r *rounds[T]) ask(ctx context.Context, item T) error {
	through, err := r.join(ctx, item)
	through()
	return err
}

// join has item done with others. The caller calls through when what it did it for
// is over, whatever join returned.
func (r *rounds[T]) join(ctx context.Context, item T) (through func(), err error) {
	r.mu.Lock()
	if r.next == nil {
		r.next = &round[T]{called: make(chan struct{})}
	}
	c, i := r.next, len(r.next.items)
	c.items = append(c.items, item)
	c.members.Add(1)
	if r.busy < r.most {
		r.busy++
		r.wg.Go(r.work)
	}
	r.mu.Unlock()
	return sync.OnceFunc(c.members.Done), c.wait(ctx, i)
}

// wait returns what became of item i.
func (c *round[T]) wait(ctx context.Context, i int) error {
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

// work does one round after the other until nobody asks.
func (r *rounds[T]) work() {
	for {
		r.mu.Lock()
		c := r.next
		if r.next = nil; c == nil {
			r.busy--
		}
		r.mu.Unlock()
		if c == nil {
			return
		}
		c.errs = r.do(c.items)
		close(c.called)
		c.members.Wait()
	}
}
