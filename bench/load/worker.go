package load

import (
	"context"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ringlimit/ringlimit/client"
)

// worker is one caller. It keeps its own histogram, so that callers do not
// contend while they measure.
type worker struct {
	r       *run
	latency *hdrhistogram.Histogram
	batch   []client.Request
}

func (r *run) worker() *worker {
	return &worker{r: r, latency: hdrhistogram.New(1, int64(time.Hour/time.Microsecond), 3)}
}

// call decides the positions from … to and counts the answers; the latency
// counts from due. The client's default timeout bounds each call: a context of
// its own for each would cost more than many a decision.
func (w *worker) call(ctx context.Context, from, to int64, due time.Time) {
	if w.r.cfg.Batch == 1 {
		d, err := w.r.client.Decide(ctx, w.r.request(from))
		w.count(&d, err)
	} else {
		w.callBatch(ctx, from, to)
	}
	_ = w.latency.RecordValue(max(1, time.Since(due).Microseconds())) // an hour at most
}

func (w *worker) callBatch(ctx context.Context, from, to int64) {
	w.batch = w.batch[:0]
	for i := from; i < to; i++ {
		w.batch = append(w.batch, w.r.request(i))
	}
	results, err := w.r.client.DecideBatch(ctx, w.batch)
	if err != nil {
		for range w.batch {
			w.count(nil, err)
		}
		return
	}
	for i := range results {
		w.count(&results[i].Decision, results[i].Err)
	}
}

// errDegraded stands for an answer that no bucket gave.
var errDegraded = errors.New("decided by a policy's failure mode: the cap on buckets is reached")

func (w *worker) count(d *client.Decision, err error) {
	if err == nil && d.Degraded {
		err = errDegraded
	}
	switch {
	case err != nil:
		w.r.counts[2].Add(1)
		w.r.mu.Lock()
		if w.r.first == nil {
			w.r.first = err
		}
		w.r.mu.Unlock()
	case d.Allowed:
		w.r.counts[0].Add(1)
	default:
		w.r.counts[1].Add(1)
	}
}

func (w *worker) flush() {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.latency.Merge(w.latency)
}
