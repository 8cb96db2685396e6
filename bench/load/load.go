// Package load puts load on a cluster through the Go client, or on anything else
// that answers such requests, and measures what callers see: a closed loop of so
// many callers, or an open loop at a fixed rate whose latencies count from the time
// a request was due.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

// Config is a load. Give Duration or Requests; with both the first reached ends it.
type Config struct {
	Duration     time.Duration
	Requests     int64         // decisions in all; 0: no bound
	Concurrency  int           // callers of a closed loop; the most outstanding calls of an open one
	Batch        int           // decisions per call; 1: single ones
	Keys         int           // key i is the tenant TenantPrefix+i
	Cost         int64         // of each; 0 looks
	Rate         float64       // decisions a second of an open loop; 0: closed loop
	Timeout      time.Duration // each call's deadline
	TenantPrefix string
	Progress     io.Writer // a line a second; nil: none

	// Window, if set, is called when the first call is about to begin, and what it
	// returns when the last has been answered: to read what that time cost.
	Window func() (end func())
}

// Validate says what is wrong with c, naming the flag.
func (c *Config) Validate() error {
	switch {
	case c.Duration <= 0 && c.Requests <= 0:
		return errors.New("want --duration or --requests")
	case c.Concurrency < 1 || c.Concurrency > 100_000:
		return fmt.Errorf("--concurrency %d: want 1 … 100000", c.Concurrency)
	case c.Batch < 1 || c.Batch > 1000:
		return fmt.Errorf("--batch %d: want 1 … 1000", c.Batch)
	case c.Keys < 1:
		return fmt.Errorf("--keys %d: want 1 or more", c.Keys)
	case c.Cost < 0 || c.Cost > 1_000_000_000:
		return fmt.Errorf("--cost %d: want 0 … 1000000000", c.Cost)
	case c.Rate < 0:
		return fmt.Errorf("--rate %g: want 0 (closed loop) or more", c.Rate)
	case c.Timeout <= 0:
		return fmt.Errorf("--timeout %s: want more than 0", c.Timeout)
	}
	return nil
}

// Report is what a load did. Latencies are of calls, in microseconds.
type Report struct {
	Requests int64   `json:"requests"` // decisions asked for
	Admitted int64   `json:"admitted"`
	Denied   int64   `json:"denied"`
	Errors   int64   `json:"errors"`
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"rate"` // decisions answered a second
	P50      int64   `json:"p50_us"`
	P99      int64   `json:"p99_us"`
	P999     int64   `json:"p999_us"`
	Max      int64   `json:"max_us"`
	Error    string  `json:"error,omitempty"` // the first one
}

// run is a load under way.
type run struct {
	cfg       Config
	workers   []*worker       // one for each caller
	latencies []*latency      // that they share
	end       time.Time       // no call begins after it; zero: no end
	next      atomic.Int64    // decisions given out
	counts    [3]atomic.Int64 // admitted, denied, errors
	mu        sync.Mutex      // guards first
	first     error
}

// Run puts the load on the cluster behind c until it is done or ctx ends.
func Run(ctx context.Context, c *client.Client, cfg Config) (Report, error) {
	return Against(ctx, Cluster(c, cfg.request), cfg)
}

// Against puts the load on t until it is done or ctx ends. What Keys, Cost and
// TenantPrefix say is then for t to know.
func Against(ctx context.Context, t Target, cfg Config) (Report, error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	r := &run{cfg: cfg}
	r.recruit(t)
	ended := func() {}
	if cfg.Window != nil {
		ended = cfg.Window()
	}
	start := time.Now()
	if cfg.Duration > 0 {
		r.end = start.Add(cfg.Duration)
	}
	stop := r.progress(start)
	if cfg.Rate > 0 {
		r.open(ctx, start)
	} else {
		r.closed(ctx)
	}
	took := time.Since(start)
	ended()
	stop()
	return r.report(took), nil
}

// claim gives out the positions of the next batch: [from, to), empty when there are no more.
func (r *run) claim(ctx context.Context) (from, to int64) {
	if ctx.Err() != nil || !r.end.IsZero() && !time.Now().Before(r.end) {
		return 0, 0
	}
	to = r.next.Add(int64(r.cfg.Batch))
	from = to - int64(r.cfg.Batch)
	if r.cfg.Requests > 0 {
		to = min(to, r.cfg.Requests)
	}
	return from, max(from, to)
}

// closed runs callers that each ask again as soon as they are answered.
func (r *run) closed(ctx context.Context) {
	var wg sync.WaitGroup
	for _, w := range r.workers {
		wg.Go(func() {
			for {
				from, to := r.claim(ctx)
				if from == to {
					return
				}
				w.call(ctx, from, to, time.Now())
			}
		})
	}
	wg.Wait()
}

// open starts calls when they are due, whether or not earlier ones are
// answered; when all callers are busy the next waits, and its wait counts.
func (r *run) open(ctx context.Context, start time.Time) {
	type job struct {
		from, to int64
		due      time.Time
	}
	jobs := make(chan job, r.cfg.Concurrency)
	var wg sync.WaitGroup
	for _, w := range r.workers {
		wg.Go(func() {
			for j := range jobs {
				w.call(ctx, j.from, j.to, j.due)
			}
		})
	}
	gap := time.Duration(float64(r.cfg.Batch) / r.cfg.Rate * float64(time.Second))
	pace := newPacer(gap)
	defer pace.close()
	for n := int64(0); ; n++ {
		due := start.Add(time.Duration(n) * gap)
		pace.until(ctx, due)
		from, to := r.claim(ctx)
		if from == to {
			break
		}
		jobs <- job{from, to, due}
	}
	close(jobs)
	wg.Wait()
}

// report sums up when all callers have ended.
func (r *run) report(took time.Duration) Report {
	all := newHistogram()
	for _, l := range r.latencies {
		all.Merge(l.hist)
	}
	rep := Report{
		Admitted: r.counts[0].Load(), Denied: r.counts[1].Load(), Errors: r.counts[2].Load(), Seconds: took.Seconds(),
		P50: all.ValueAtPercentile(50), P99: all.ValueAtPercentile(99),
		P999: all.ValueAtPercentile(99.9), Max: all.Max(),
	}
	rep.Requests = rep.Admitted + rep.Denied + rep.Errors
	rep.Rate = float64(rep.Admitted+rep.Denied) / took.Seconds()
	if r.first != nil {
		rep.Error = r.first.Error()
	}
	return rep
}

// progress prints a line a second until the function it returns is called.
func (r *run) progress(start time.Time) (stop func()) {
	if r.cfg.Progress == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var last int64
		for {
			select {
			case <-tick.C:
				n := r.counts[0].Load() + r.counts[1].Load() + r.counts[2].Load()
				fmt.Fprintf(r.cfg.Progress, "%4.0f s  %9d decisions  %8d/s  %d errors\n", time.Since(start).Seconds(), n, n-last, r.counts[2].Load())
				last = n
			case <-done:
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// request is the decision at position i.
func (c *Config) request(i int64) client.Request {
	return client.Request{
		Tenant: c.TenantPrefix + strconv.FormatInt(i%int64(c.Keys), 10),
		Cost:   c.Cost, Look: c.Cost == 0,
	}
}
