package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/client"
)

// What the project aims at when three times as much is asked as can be decided.
const (
	aimGoodput  = 0.8  // of the peak
	aimBusy     = 0.01 // s, from reading a message to refusing it
	aimRecovery = 10   // s, until p99 is at most twice what it was
	aimQuiet    = 0.01 // of the requests of a caller who has no part in it
	overBy      = 3
)

// overKeys is how many keys are asked for, each with eight limits: a load of three
// times the peak must cost the callers' processors less than the nodes theirs, or it is
// the callers who are overloaded, and only that would be measured.
const overKeys = 20_000

// An overload comes from many callers, who wait as long as callers do and no more.
const overLimit = time.Second

// overload is the measurement under way.
type overload struct {
	*cluster
	r      *Result
	target load.Target
	peak   float64 // decisions/s
}

// measureOverload finds the peak, asks for three times as much, and watches the nodes
// come to rest.
func measureOverload(ctx context.Context, b *bench, r *Result) (err error) {
	nodes, own, ok := halves(runtime.NumCPU())
	if _, missing := exec.LookPath("taskset"); missing != nil || !ok {
		nodes = ""
		r.note("nodes and load share all processors: there is one alone, or no taskset")
	}
	c, err := b.start(ctx, 3, b.groups, nodes)
	if err != nil {
		return err
	}
	defer c.close()
	if nodes != "" {
		back, err := pin(own, runtime.NumCPU()-runtime.NumCPU()/2)
		if err != nil {
			return err
		}
		defer func() { _ = back() }()
		r.note("nodes share processors %s, the load has %s", nodes, own)
	}
	clients, err := c.many(b.clients)
	defer func() {
		for _, x := range clients {
			_ = x.Close()
		}
	}()
	if err != nil {
		return err
	}
	var targets []load.Target
	for i, x := range clients {
		targets = append(targets, load.Cluster(x, heavy(overKeys, uint64(i))))
	}
	o := &overload{cluster: c, r: r, target: load.Spread(targets...)}
	return o.run(ctx)
}

// many makes clients.
func (c *cluster) many(n int) (list []*client.Client, err error) {
	for range n {
		x, err := c.dial(overLimit)
		if err != nil {
			return list, err
		}
		list = append(list, x)
	}
	return list, nil
}

func (o *overload) run(ctx context.Context) error {
	if err := o.findPeak(ctx); err != nil {
		return fmt.Errorf("peak: %w", err)
	}
	half := o.even(0.5, 3*time.Second)
	usual, err := o.good(ctx, o.target, half, "")
	if err != nil {
		return fmt.Errorf("half of the peak: %w", err)
	}
	o.row("before, half of the peak", &usual)
	if err := o.flood(ctx); err != nil {
		return fmt.Errorf("overload: %w", err)
	}
	return o.recover(ctx, half, usual.P99)
}

// even is a load at so many times the peak, with callers enough for all that may be
// waited for at once.
func (o *overload) even(times float64, d time.Duration) load.Config {
	batch := o.bench.batch
	rate := times * o.peak
	return load.Config{
		Duration: d, Rate: rate, Batch: batch, Timeout: overLimit,
		Concurrency: int(1.5*overLimit.Seconds()*rate/float64(batch)) + 1,
	}
}

func (o *overload) row(label string, x *outcome) {
	o.r.row(
		label,
		Figure{"asked/s", float64(x.Requests) / x.Seconds}, Figure{"decisions/s", x.Rate},
		Figure{"of the peak", x.Rate / o.peak}, Figure{"errors %", 100 * float64(x.Errors) / float64(x.Requests)},
		Figure{"p50 ms", float64(x.P50) / 1e3}, Figure{"p99 ms", float64(x.P99) / 1e3},
		Figure{"nodes' cores", x.nodes / x.Seconds}, Figure{"load's cores", x.client / x.Seconds},
		Figure{"foreign %", 100 * x.foreign},
	)
}

// findPeak raises the number of callers of a closed loop until that brings nothing.
func (o *overload) findPeak(ctx context.Context) error {
	for callers := 4; callers <= 512; callers *= 2 {
		x, err := o.load(ctx, o.target, load.Config{Duration: 2 * time.Second, Concurrency: callers, Batch: o.bench.batch}, "")
		if err != nil {
			return err
		}
		better := x.Rate > 1.03*o.peak
		o.peak = max(o.peak, x.Rate)
		o.row(fmt.Sprintf("closed loop, %d callers", callers), &x)
		if !better && callers >= 16 {
			break
		}
	}
	if o.peak == 0 {
		return errors.New("nothing was decided")
	}
	return nil
}

// flood asks for three times the peak.
func (o *overload) flood(ctx context.Context) error {
	before, err := o.resident()
	if err != nil {
		return err
	}
	refusedBefore, err := o.refusals(ctx)
	if err != nil {
		return err
	}
	electedBefore, err := o.sum(ctx, "ringlimit_group_elections_total")
	if err != nil {
		return err
	}
	highest := o.watchResident(ctx)
	length := o.bench.length(20 * time.Second)
	quiet := o.beside(ctx, length)
	x, err := o.load(ctx, o.target, o.even(overBy, length), "overload")
	height := highest()
	if err != nil {
		return errors.Join(err, quiet())
	}
	o.row("overload", &x)
	if err := quiet(); err != nil {
		return err
	}
	elected, err := o.sum(ctx, "ringlimit_group_elections_total")
	if err != nil {
		return err
	}
	after, err := o.resident()
	if err != nil {
		return err
	}
	for i, n := range o.Nodes {
		log, err := n.Metric(ctx, "ringlimit_group_log_bytes")
		if err != nil {
			return err
		}
		o.r.row(
			"node "+n.Name, Figure{"RSS before MB", before[i] / 1e6}, Figure{"highest MB", height[i] / 1e6}, Figure{"after MB", after[i] / 1e6},
			Figure{"raft logs MB", log / 1e6},
		)
	}
	refused, err := o.refusals(ctx)
	if err != nil {
		return err
	}
	refused = refused.Plus(refusedBefore, -1)
	o.r.row(
		"messages refused by nodes", Figure{"messages", refused.Count()},
		Figure{"p50 ms at most", 1e3 * refused.Quantile(0.5)}, Figure{"p99 ms at most", 1e3 * refused.Quantile(0.99)},
		Figure{"within 10 ms %", 100 * refused.Within(aimBusy)},
	)
	if busy := x.client / x.Seconds / float64(runtime.GOMAXPROCS(0)); busy > 0.8 {
		o.r.note("the load was overloaded itself: it used %.0f %% of its processors", 100*busy)
	}
	if offered := float64(x.Requests) / x.Seconds / o.peak; offered < 0.9*overBy {
		o.r.note("the load could ask for %.1f times the peak only; first error: %s", offered, x.Error)
	}
	o.r.atLeast("goodput in overload, of the peak", x.Rate/o.peak, aimGoodput)
	o.r.atLeast("refusals within 10 ms of reading the message, share", refused.Within(aimBusy), 0.99)
	o.r.atMost("changes of leader in overload", elected-electedBefore, 0)
	return nil
}

// sum adds up a metric of all nodes.
func (o *overload) sum(ctx context.Context, name string) (sum float64, err error) {
	for _, n := range o.Nodes {
		v, err := n.Metric(ctx, name)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// quietRate is how often a caller asks beside an overload that has no part in it.
const quietRate = 50

// beside lets such a caller ask, with a client of its own; end waits for it and says
// what it got.
func (o *overload) beside(ctx context.Context, d time.Duration) (end func() error) {
	var x load.Report
	var err error
	var asking sync.WaitGroup
	asking.Go(func() {
		var c *client.Client
		if c, err = o.dial(overLimit); err != nil {
			return
		}
		defer c.Close()
		x, err = load.Against(ctx, load.Cluster(c, uniform(overKeys, 0, 0)), load.Config{
			Duration: d, Rate: quietRate, Batch: 1, Timeout: overLimit, Keys: 1, Concurrency: 2 * quietRate,
		})
	})
	return func() error {
		asking.Wait()
		if err != nil {
			return fmt.Errorf("the caller beside the overload: %w", err)
		}
		failed := float64(x.Errors) / float64(max(1, x.Requests))
		o.r.row(
			"a quiet caller beside it", Figure{"asked/s", float64(x.Requests) / x.Seconds}, Figure{"errors %", 100 * failed},
			Figure{"p50 ms", float64(x.P50) / 1e3}, Figure{"p99 ms", float64(x.P99) / 1e3},
		)
		if x.Errors > 0 {
			o.r.note("first error of the quiet caller: %s", x.Error)
		}
		o.r.atMost("requests of a quiet caller that failed beside the overload, share", failed, aimQuiet)
		return nil
	}
}

// refusals is how long all nodes have taken to refuse so far.
func (o *overload) refusals(ctx context.Context) (sum fleet.Histogram, err error) {
	for _, n := range o.Nodes {
		h, err := n.Histogram(ctx, "ringlimit_busy_seconds")
		if err != nil {
			return nil, err
		}
		sum = sum.Plus(h, 1)
	}
	return sum, nil
}

// recoverySlice is the length of each look at the tail after an overload.
const recoverySlice = 500 * time.Millisecond

// recover asks for half of the peak again until the tail has been short for two looks.
// The time counts from the last answer of the overload.
func (o *overload) recover(ctx context.Context, half load.Config, usual int64) error {
	began := time.Now()
	half.Duration = recoverySlice
	var tails []int64
	for time.Since(began) < 2*aimRecovery*time.Second {
		x, err := o.load(ctx, o.target, half, "")
		if err != nil {
			return fmt.Errorf("after the overload: %w", err)
		}
		tail := x.P99
		if x.Errors*1000 > x.Requests {
			tail = int64(time.Hour / time.Microsecond) // not well yet
		}
		tails = append(tails, tail)
		if calmFrom(tails, 2*usual) >= 0 {
			break
		}
	}
	after := calmFrom(tails, 2*usual)
	seconds := float64(after) * recoverySlice.Seconds()
	if after < 0 {
		seconds = time.Since(began).Seconds()
		o.r.note("p99 was not twice that before, or less, within %.0f s: %d ms at last", seconds, tails[len(tails)-1]/1000)
	}
	o.r.note("p99 in slices of %v after it, ms: %v", recoverySlice, milliseconds(tails))
	o.r.atMost("seconds until p99 at half of the peak is at most twice that before", seconds, aimRecovery)
	held, err := o.resident()
	if err != nil {
		return err
	}
	for i, n := range o.Nodes {
		o.r.note("node %s holds %.0f MB when that is over", n.Name, held[i]/1e6)
	}
	return nil
}

// calmFrom is the first of two looks in a row whose tail is at most so long; -1: there
// are none.
func calmFrom(tails []int64, most int64) int {
	for i := range len(tails) - 1 {
		if slices.Max(tails[i:i+2]) <= most {
			return i
		}
	}
	return -1
}

// milliseconds divides by a thousand.
func milliseconds(list []int64) (out []float64) {
	for _, v := range list {
		out = append(out, float64(v)/1e3)
	}
	return out
}
