package cluster

import (
	"context"
	"sync"
)

// rounds gathers what many ask for, as joint does, and then waits until all of one
// round are through with what they asked it for before the next begins. So of a
// group's slots all that are ready are sealed together, and in between none is: the
// group is slow for some of its slots for as little time as possible.
type rounds[T any] struct {
	do func(items []T) []error // one error per item, or one for all

	mu   sync.Mutex // guards what follows
	next *round[T]
	busy bool
	wg   sync.WaitGroup // of the goroutine that calls do
}

type round[T any] struct {
	jointCall[T]
	members sync.WaitGroup // those that have joined and are not through
}

// join has item done with others. The caller calls through when what it did it for
// is over, whatever join returned.
func (r *rounds[T]) join(ctx context.Context, item T) (through func(), err error) {
	r.mu.Lock()
	if r.next == nil {
		r.next = &round[T]{jointCall: jointCall[T]{called: make(chan struct{})}}
	}
	c, i := r.next, len(r.next.items)
	c.items = append(c.items, item)
	c.members.Add(1)
	if !r.busy {
		r.busy = true
		r.wg.Go(r.work)
	}
	r.mu.Unlock()
	through = sync.OnceFunc(c.members.Done)
	return through, c.wait(ctx, i)
}

// work does one round after the other until nobody asks.
func (r *rounds[T]) work() {
	for {
		r.mu.Lock()
		c := r.next
		r.next, r.busy = nil, c != nil
		r.mu.Unlock()
		if c == nil {
			return
		}
		c.errs = r.do(c.items)
		close(c.called)
		c.members.Wait()
	}
}
