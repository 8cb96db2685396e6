package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

//go:embed policies.yaml
var policies []byte

const (
	patience  = 5 * time.Second  // a caller's deadline, unless a scenario says otherwise
	readyIn   = 60 * time.Second // for a cluster to form
	healthyIn = 30 * time.Second // for 3/3 after a node came back
)

// arena is a cluster and the means to load it.
type arena struct {
	fleet    *fleet.Fleet
	caller   caller
	report   *report
	progress io.Writer
	stalls   *stalls

	name  string
	dir   string
	short bool          // few rounds, and little in each
	lasts time.Duration // of what a round keeps up; 0: the scenario's own
	began time.Time
	run   uint64        // makes tenants of this run fresh
	keys  atomic.Uint64 // tenants made
}

type arenaConfig struct {
	binary   string
	dir      string
	world    world
	short    bool
	lasts    time.Duration
	report   *report
	progress io.Writer
}

// newArena starts a cluster and a client.
func newArena(ctx context.Context, cfg arenaConfig) (*arena, error) {
	if err := os.MkdirAll(cfg.dir, 0o755); err != nil {
		return nil, fmt.Errorf("directory of the scenario: %w", err)
	}
	file := filepath.Join(cfg.dir, "policies.yaml")
	if err := os.WriteFile(file, policies, 0o644); err != nil {
		return nil, fmt.Errorf("policies of the scenario: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyIn)
	defer cancel()
	f, err := fleet.Start(ctx, fleet.Config{
		Binary: cfg.binary, Dir: cfg.dir, Policies: file, Nodes: cfg.world.nodes, Relayed: cfg.world.relayed, Wrap: cfg.world.wrap, Flags: cfg.world.flags,
	})
	if err != nil {
		return nil, err
	}
	c, err := newLibrary(f.GRPC())
	if err != nil {
		f.Close()
		return nil, err
	}
	began := time.Now()
	return &arena{
		stalls: watchStalls(began),
		fleet:  f, caller: c, report: cfg.report, progress: cfg.progress,
		name: cfg.report.Scenario, dir: cfg.dir, short: cfg.short, lasts: cfg.lasts, began: began, run: rand.Uint64(),
	}, nil
}

func (a *arena) close() {
	a.stalls.close()
	a.caller.close()
	a.fleet.Close()
}

// fresh returns a key that nobody has used, under the policy of a plan.
func (a *arena) fresh(plan string) key {
	return key{tenant: fmt.Sprintf("%x-%d", a.run, a.keys.Add(1)), plan: plan}
}

// say reports progress to a person who waits.
func (a *arena) say(format string, args ...any) {
	fmt.Fprintf(a.progress, "%s: %s\n", a.name, fmt.Sprintf(format, args...))
}

// take is one unit take with its own deadline, recorded.
func (a *arena) take(ctx context.Context, k key, deadline time.Duration) record {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	call := time.Since(a.began)
	ans, err := a.caller.take(ctx, k, 1)
	return record{call: call, ret: time.Since(a.began), ans: ans, err: err}
}

// volley makes n unit takes on one key, at most workers at a time, and returns
// when all are answered. seen, if not nil, is called by many goroutines at once.
func (a *arena) volley(ctx context.Context, k key, n, workers int, seen func(record)) []record {
	recs := make([]record, n)
	inParallel(n, workers, func(i int) {
		recs[i] = a.take(ctx, k, patience)
		if seen != nil {
			seen(recs[i])
		}
	})
	return recs
}

// healthy waits for 3/3 replicas everywhere. Being late is a broken promise, and
// the scenario cannot go on.
func (a *arena) healthy(ctx context.Context, where string) (time.Duration, error) {
	return a.healthyWithin(ctx, where, healthyIn)
}

func (a *arena) healthyWithin(ctx context.Context, where string, within time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	took, err := a.fleet.WaitHealthy(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		a.report.violate(where, fmt.Sprintf("not 3/3 within %v: %v", within, err))
	}
	return took, err
}

// lasting is how long a round keeps up what it does, in a full run or a short one.
func (a *arena) lasting(full, short time.Duration) time.Duration {
	switch {
	case a.lasts > 0:
		return a.lasts
	case a.short:
		return short
	}
	return full
}

// pause waits, or returns ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inParallel calls do for 0 … n-1, at most workers at a time.
func inParallel(n, workers int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	wg.Wait()
}
