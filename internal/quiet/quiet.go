// Package quiet thins out log lines whose number somebody else decides: strangers at a
// listener, or code that fails over and over. A burst is logged, then a line a second.
package quiet

import (
	"sync"
	"time"
)

const (
	burst = 8
	every = time.Second
)

// Lines are lines of one kind. The zero value is ready; any goroutine may use it.
type Lines struct {
	mu      sync.Mutex // guards what follows
	used    int        // of the burst
	at      int64      // time of the last refill, as Allow was told it
	dropped int        // lines left out since the last one let through
}

// Allow says whether a line may be logged now, and how many were left out before it. The
// time is in ns, of any clock that does not go back.
func (q *Lines) Allow(now int64) (dropped int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := (now - q.at) / int64(every); n > 0 {
		q.used = max(0, q.used-int(min(n, burst)))
		q.at += n * int64(every)
	}
	if q.used == burst {
		q.dropped++
		return 0, false
	}
	q.used++
	dropped, q.dropped = q.dropped, 0
	return dropped, true
}
