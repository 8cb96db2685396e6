package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Run is a whole comparison. Rounds alternate: each starts one system after the
// other, alone on the machine, and measures all its points; every round begins with
// another system.
type Run struct {
	Setup      Setup
	Tuning     Tuning
	Contenders []Contender
	Points     []Point
	Kinds      []Kind
	Rounds     int
	Warm       time.Duration
	Duration   time.Duration
	Limit      time.Duration // begin nothing that would end later; 0: none
	Memory     []int         // numbers of keys to measure memory at
	Out        string        // directory of what is written
	Say        io.Writer

	results *Results
	began   time.Time
	longest time.Duration // of the visits so far
}

// errUnfinished says that Limit was reached: the same command goes on.
var errUnfinished = errors.New("the time limit is reached: run the same command again to go on")

// measured is a contender at a point, under one kind of traffic.
type measured struct {
	contender Contender
	kind      Kind
	point     Point
}

// run measures what the results in Out do not have yet, and writes tables and plots.
func (r *Run) run(ctx context.Context) error {
	r.began = time.Now()
	file := filepath.Join(r.Out, "results.json")
	var err error
	if r.results, err = loadResults(file); err != nil {
		return err
	}
	if err := r.settle(); err != nil {
		return err
	}
	err = r.rounds(ctx, file)
	if err == nil {
		err = r.memory(ctx, file)
	}
	if len(r.results.Samples)+len(r.results.Memory) == 0 {
		return err
	}
	return errors.Join(err, r.results.publish(r.Out))
}

// settle makes sure that new samples may stand beside old ones.
func (r *Run) settle() error {
	s := Settings{Keys: r.Setup.Keys, Warm: r.Warm.String(), Duration: r.Duration.String(), Tuning: r.Tuning}
	m := thisMachine(r.Setup.Binary)
	old := r.results.Machine
	if old.Date != "" {
		m.Date = old.Date
		if r.results.Settings != s || old != m {
			return fmt.Errorf("%s holds results of another machine, build or setting: remove it, or name another with -o", r.Out)
		}
	}
	r.results.Machine, r.results.Settings = m, s
	return os.MkdirAll(r.Out, 0o755)
}

func (r *Run) rounds(ctx context.Context, file string) error {
	systems := systemsOf(r.Contenders)
	for round := 1; round <= r.Rounds; round++ {
		for i := range systems {
			system := systems[(i+round-1)%len(systems)]
			todo := r.missing(round, system)
			if len(todo) == 0 {
				continue
			}
			if r.Limit > 0 && time.Since(r.began)+r.longest > r.Limit {
				return errUnfinished
			}
			visit := time.Now()
			if err := r.visit(ctx, round, system, todo); err != nil {
				return fmt.Errorf("round %d, %s: %w", round, system, err)
			}
			r.longest = max(r.longest, time.Since(visit))
			if err := r.results.save(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// missing is what a round still has to measure of a system.
func (r *Run) missing(round int, system string) []measured {
	var todo []measured
	for _, kind := range r.Kinds {
		for _, p := range r.Points {
			if !slices.Contains(p.Kinds, kind) {
				continue
			}
			for _, c := range r.Contenders {
				if c.System == system && !r.results.has(round, c.Name, kind, p.Name) {
					todo = append(todo, measured{c, kind, p})
				}
			}
		}
	}
	return todo
}

// visit starts a system, touches every key, measures, and ends it.
func (r *Run) visit(ctx context.Context, round int, system string, todo []measured) error {
	s, err := start(ctx, system, r.setup(system))
	if err != nil {
		return err
	}
	defer s.Close()
	began := time.Now()
	if err := fill(ctx, system, s, r.Setup.Keys, r.Tuning); err != nil {
		return err
	}
	r.say("round %d, %s: %d keys in %.1f s\n", round, system, r.Setup.Keys, time.Since(began).Seconds())
	for _, m := range todo {
		sample := r.measure(ctx, round, s, m)
		if err := ctx.Err(); err != nil {
			return err
		}
		r.results.add(sample)
	}
	return nil
}

// setup is what a system is started with.
func (r *Run) setup(system string) Setup {
	s := r.Setup
	s.Procs = r.Tuning.procs(system)
	return s
}

// measure makes one measurement. One that fails is kept, and void.
func (r *Run) measure(ctx context.Context, round int, s System, m measured) Sample {
	j := newJob(m.contender.System, s, r.Setup.Keys, r.Tuning)
	j.Wait, j.Kind, j.Point = m.contender.Wait, m.kind, m.point
	j.Seed, j.Warm, j.Duration, j.Limit = uint64(round), r.Warm, r.Duration, r.Warm+r.Duration+time.Minute
	out, err := driven(ctx, j)
	sample := Sample{Round: round, Contender: m.contender.Name, Kind: m.kind, Point: m.point.Name, Outcome: out}
	if err != nil {
		sample.Failed = err.Error()
	}
	c := cell([]Sample{sample})
	r.say("  %-8s %-7s %-12s %8.0f/s  p50 %7.2f  p99 %7.2f ms  CPU s/M %6.2f + %6.2f  foreign %2.0f %%  %s\n",
		m.kind, m.point.Name, m.contender.Name, c.Rate, c.P50, c.P99, c.ClientCPU, c.ServerCPU, 100*c.Foreign, c.Why)
	return sample
}

func (r *Run) say(format string, args ...any) { fmt.Fprintf(r.Say, format, args...) }

// newJob is a job of a system that runs.
func newJob(system string, s System, keys int, tuning Tuning) Job {
	return Job{System: system, Addrs: s.Addrs(), PIDs: pids(s), Keys: keys, Tuning: tuning}
}

// fill touches each key once, so that all later find their bucket. Every answer must be
// an admission, so no more are asked at a time than a group of ringlimit lets wait before
// it knows how much it can decide.
func fill(ctx context.Context, system string, s System, keys int, tuning Tuning) error {
	j := newJob(system, s, keys, tuning)
	j.Kind, j.Point, j.Requests = Fill, Point{Callers: 4, Batch: 500}, filling(keys)
	j.Limit = time.Minute + time.Duration(keys)*time.Millisecond/5
	out, err := driven(ctx, j)
	if err != nil {
		return err
	}
	if out.Admitted != j.Requests {
		return fmt.Errorf("%d of %d first takes were admitted, %d errors: %s", out.Admitted, j.Requests, out.Errors, out.Error)
	}
	return nil
}
