package main

import (
	"context"
	"sync"
	"time"
)

const (
	stallTick  = 20 * time.Millisecond
	stallFrom  = 400 * time.Millisecond // a tick later than this is a stall
	stallAfter = 2 * time.Second        // what is due to it
)

// stalls notes when the machine stood still: when this process, which has next to
// nothing to do, was not run for long. The nodes were not run either then, so what
// fails about that time says nothing of them.
type stalls struct {
	began time.Time
	stop  context.CancelFunc
	wg    sync.WaitGroup // the one goroutine

	mu   sync.Mutex // guards seen
	seen []stall
}

// stall is a time without ticks, since the arena began.
type stall struct{ from, to time.Duration }

func watchStalls(began time.Time) *stalls {
	ctx, stop := context.WithCancel(context.Background())
	s := &stalls{began: began, stop: stop}
	s.wg.Go(func() {
		for last := time.Since(began); ; {
			if pause(ctx, stallTick) != nil {
				return
			}
			now := time.Since(began)
			if now-last > stallFrom {
				s.mu.Lock()
				s.seen = append(s.seen, stall{last, now})
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
func (s *stalls) list() []stall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[:len(s.seen):len(s.seen)]
}

// excused says whether a take was under way in a stall, or soon after one.
func excused(r record, seen []stall) bool {
	for _, s := range seen {
		if r.call < s.to+stallAfter && r.ret > s.from {
			return true
		}
	}
	return false
}
