package trial

import (
	"context"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bench/report"
)

const (
	stallTick = 20 * time.Millisecond
	stallFrom = 400 * time.Millisecond // a tick later than this is a stall
)

// stalls notes when the machine stood still: when this process, which has next to
// nothing to do, was not run for long.
type stalls struct {
	stop context.CancelFunc
	wg   sync.WaitGroup // the one goroutine

	mu   sync.Mutex // guards seen
	seen []report.Span
}

func watchStalls(began time.Time) *stalls {
	ctx, stop := context.WithCancel(context.Background())
	s := &stalls{stop: stop}
	s.wg.Go(func() {
		for last := time.Since(began); waitFor(ctx, stallTick); {
			now := time.Since(began)
			if now-last > stallFrom {
				s.mu.Lock()
				s.seen = append(s.seen, report.Span{From: last, To: now})
				s.mu.Unlock()
			}
			last = now
		}
	})
	return s
}

func (s *stalls) close() {
	s.stop()
	s.wg.Wait()
}

// list returns what was seen until now.
func (s *stalls) list() []report.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[:len(s.seen):len(s.seen)]
}
