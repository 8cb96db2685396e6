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

// startLoad makes workers take from keys in turn, each pausing between takes,
// so that a whole machine's worth of processes still gets its share of the CPU.
func (a *arena) startLoad(ctx context.Context, keys []key, workers int, pace time.Duration) *load {
	l := &load{stopping: make(chan struct{}), recs: make(map[key][]record, len(keys))}
	for w := range workers {
		l.wg.Go(func() {
			for i := w; ; i++ {
				k := keys[i%len(keys)]
				rec := a.take(ctx, k, patience)
				l.mu.Lock()
				l.recs[k] = append(l.recs[k], rec)
				l.mu.Unlock()
				select {
				case <-time.After(pace):
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
