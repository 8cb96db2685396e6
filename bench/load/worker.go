package load

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// worker is one caller.
type worker struct {
	r       *run
	caller  Caller
	latency *latency
	answers []Answer
}

// latency is a histogram of some callers. One for each would be best, but takes
// 180 KB, and an open loop may have tens of thousands of callers.
type latency struct {
	mu   sync.Mutex // guards hist; held to count one call
	hist *hdrhistogram.Histogram
}

// maxHistograms is how many there are, at most: enough that callers rarely meet.
const maxHistograms = 64

// newHistogram holds microseconds, an hour at most.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Hour/time.Microsecond), 3)
}

// recruit makes the callers.
func (r *run) recruit(t Target) {
	for range min(r.cfg.Concurrency, maxHistograms) {
		r.latencies = append(r.latencies, &latency{hist: newHistogram()})
	}
	for i := range r.cfg.Concurrency {
		r.workers = append(r.workers, &worker{r: r, caller: t.Caller(), latency: r.latencies[i%len(r.latencies)]})
	}
}

// count notes how long a call took.
func (l *latency) count(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.hist.RecordValue(max(1, took.Microseconds())) // an hour at most
}

// call decides the positions from … to and counts the answers; the latency
// counts from due.
func (w *worker) call(ctx context.Context, from, to int64, due time.Time) {
	w.answers = w.caller.Ask(ctx, from, to, w.answers[:0])
	w.latency.count(time.Since(due))
	var counts [3]int64
	for i := range w.answers {
		switch a := &w.answers[i]; {
		case a.Err != nil:
			counts[2]++
			w.failed(a.Err)
		case a.Admitted:
			counts[0]++
		default:
			counts[1]++
		}
	}
	for i, n := range counts {
		if n > 0 {
			w.r.counts[i].Add(n)
		}
	}
}

// failed keeps the first error of all.
func (w *worker) failed(err error) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	if w.r.first == nil {
		w.r.first = err
	}
}
