package main

import (
	"context"
	"sync"
	"time"
)

// load is takes going on in the background, until stopped.
type load struct {
	stopping chan struct{}
	wg       sync.WaitGroup // the workers

	mu   sync.Mutex // guards recs
	recs map[key][]record
}

// loadPlan says how hard a background load works.
type loadPlan struct {
	workers  int
	pace     time.Duration // between two takes of a worker: the nodes need their share of the CPU
	deadline time.Duration // of each take
}

// startLoad makes workers take from keys in turn, until stop.
func (a *arena) startLoad(ctx context.Context, keys []key, p loadPlan) *load {
	l := &load{stopping: make(chan struct{}), recs: make(map[key][]record, len(keys))}
	for w := range p.workers {
		l.wg.Go(func() {
			for i := w; ; i++ {
				k := keys[i%len(keys)]
				rec := a.take(ctx, k, p.deadline)
				l.mu.Lock()
				l.recs[k] = append(l.recs[k], rec)
				l.mu.Unlock()
				select {
				case <-time.After(p.pace):
				case <-l.stopping:
					return
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return l
}

// stop waits for the takes under way and returns all records by key.
func (l *load) stop() map[key][]record {
	close(l.stopping)
	l.wg.Wait()
	return l.recs
}

// admitted counts the admissions answered until now, by key.
func (l *load) admitted() map[key]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := make(map[key]int, len(l.recs))
	for k, recs := range l.recs {
		n[k], _, _ = tally(recs)
	}
	return n
}
