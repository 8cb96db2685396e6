// Package trial puts clusters to the test: an act starts a cluster of real processes,
// loads it with callers of many kinds, lets nemeses break it, and holds what callers
// saw to the promises of package check.
//
// A safety trial breaks it at random, up to three ways at once. A liveness trial
// breaks one thing of a minority for good, and every group must go on. Any nemesis
// can be tried alone.
package trial

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bench/nemesis"
	"github.com/ringlimit/ringlimit/bench/report"
)

// Config says what to try. Binary and Dir are required.
type Config struct {
	Binary   string
	Dir      string        // for data and logs
	Seed     uint64        // of all that is left to chance, but for what the machine adds
	Duration time.Duration // of a whole safety trial; of each fault of the others
	Loopback bool          // no namespaces, though there may be some
	Progress io.Writer
}

// act is one cluster and what is done to it.
type act struct {
	name   string
	ground ground
	kinds  []nemesis.Kind
	lasts  time.Duration // of all faults of a mix, or of each one
	mixed  bool          // at random, up to three at once; else each kind in turn
	stays  bool          // liveness: every group must serve within a bound
}

// ground is what the cluster of an act stands on.
type ground struct {
	nodes   int
	relayed bool
	disks   bool
	clock   bool
}

// mostAct bounds an act, so that its history can be judged in memory and in time.
const mostAct = 4 * time.Minute

// Safety breaks clusters at random for cfg.Duration. Faults that work on the same
// ground are mixed; those that make a cluster forget have one of their own.
func Safety(ctx context.Context, cfg Config) (*report.Report, error) {
	return run(ctx, cfg, "safety", func(*crew) []act { return safetyActs(nemesis.Kinds, cfg.Duration) })
}

// Liveness breaks one thing for good in each act.
func Liveness(ctx context.Context, cfg Config) (*report.Report, error) {
	return run(ctx, cfg, "liveness", func(c *crew) (acts []act) {
		for _, k := range c.usable(slices.DeleteFunc(slices.Clone(nemesis.Kinds), func(k nemesis.Kind) bool { return !k.Stays })) {
			acts = append(acts, act{name: k.Name + " for good", ground: c.ground(k), kinds: []nemesis.Kind{k}, lasts: cfg.Duration, stays: true})
		}
		return acts
	})
}

// Alone tries each of some nemeses by itself, for cfg.Duration each. Those that work
// on the same ground share a cluster, one after the other.
func Alone(ctx context.Context, cfg Config, kinds []nemesis.Kind) (*report.Report, error) {
	return run(ctx, cfg, "nemeses", func(c *crew) []act { return c.aloneActs(c.usable(kinds), cfg.Duration) })
}

// run plays acts until ctx ends, and reports on them; on those before an error too.
func run(ctx context.Context, cfg Config, mode string, plan func(c *crew) []act) (*report.Report, error) {
	r := &report.Report{Mode: mode, Seed: cfg.Seed, Began: time.Now()}
	c := newCrew(cfg)
	var failed error
	for i, a := range plan(c) {
		played, err := c.play(ctx, i, a)
		if err != nil {
			failed = fmt.Errorf("act %q: %w", a.name, err)
			break
		}
		if played != nil {
			r.Acts = append(r.Acts, *played)
			fmt.Fprintln(cfg.Progress, "trial:", played.Line())
		}
	}
	r.Notes = c.notes
	r.Finish(time.Now())
	return r, failed
}
