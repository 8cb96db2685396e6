package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

const (
	seriesPace = 4 * time.Second       // a fault each, or later where 3/3 takes longer: a kill every 8 s or so
	askEvery   = 10 * time.Millisecond // each group, whether the last answer is there or not
	leastShare = 0.999                 // of requests, answered within answerIn
	answerIn   = time.Second
)

// light is a volley that leaves the machine to the steady load.
var light = volley{plan: "budget", takes: 3100, budget: 3000, workers: 8, strikeFrom: 200, to: 1000}

// injury is one kind of harm of a series, in one of its ways.
type injury struct {
	kind, way string
	harm      func(a *arena) harm
}

func (j *injury) name() string {
	if j.way == "" {
		return j.kind
	}
	return j.kind + " " + j.way
}

func killing(*arena) harm {
	return harm{strike: (*fleet.Node).Kill, lasts: rand.N(2 * time.Second), heal: (*fleet.Node).Start}
}

func stopping(*arena) harm {
	return harm{strike: (*fleet.Node).Pause, lasts: time.Second + rand.N(2*time.Second), heal: (*fleet.Node).Resume}
}

// cutting cuts what a node says, what it hears, or both; callers still reach it.
func cutting(says, hears bool) func(*arena) harm {
	return func(a *arena) harm {
		set := func(n *fleet.Node, open bool) (failed error) {
			for _, o := range a.fleet.List() {
				if o != n && says {
					failed = errors.Join(failed, a.fleet.Block(n.Name, o.Name, fleet.AllPlanes, open))
				}
				if o != n && hears {
					failed = errors.Join(failed, a.fleet.Block(o.Name, n.Name, fleet.AllPlanes, open))
				}
			}
			return failed
		}
		return harm{
			strike: func(n *fleet.Node) error { return set(n, false) },
			lasts:  time.Second + rand.N(2*time.Second),
			heal:   func(n *fleet.Node) error { return set(n, true) },
		}
	}
}

// injuries are those of a cycle: kills twice. The ways of a cut come in turn.
func injuries(cycle int) []injury {
	cuts := []injury{{"cut", "both ways", cutting(true, true)}, {"cut", "unheard", cutting(true, false)}, {"cut", "deaf", cutting(false, true)}}
	kill := injury{kind: "kill", harm: killing}
	return []injury{kill, {kind: "pause", harm: stopping}, kill, cuts[cycle%len(cuts)]}
}

// playSeries strikes one leader after the other, four in each round.
func playSeries(ctx context.Context, a *arena, rounds int) error {
	probes, err := a.probes(ctx, "wide")
	if err != nil {
		return err
	}
	before, err := a.layout(ctx)
	if err != nil {
		return err
	}
	load := a.startSteady(ctx, probes)
	err = pause(ctx, time.Second) // all of it under way
	var all []counted
	for i := 0; i < rounds && err == nil; i++ {
		for _, j := range injuries(i) {
			var c counted
			if c, err = a.strikeOnce(ctx, len(all)+1, j, probes); err != nil {
				break
			}
			all = append(all, c)
		}
	}
	recs := load.stop()
	if ctx.Err() != nil {
		recs = slices.DeleteFunc(recs, func(r record) bool { return errors.Is(r.err, context.Canceled) })
	}
	a.judgeSeries(before, all, recs)
	if err != nil {
		return err
	}
	differ, err := a.fleet.WaitEqual(ctx, 20*time.Second)
	a.report.violate("at the end", differ...)
	return err
}

// strikeOnce is one fault of a series, until the time of the next.
func (a *arena) strikeOnce(ctx context.Context, number int, j injury, probes map[uint32]key) (c counted, err error) {
	c.injury, c.from = j, time.Since(a.began)
	where := fmt.Sprintf("%d, %s", number, j.name())
	if c.blow, err = a.breakLeader(ctx, where, light, probes, j.harm(a)); err != nil {
		return c, fmt.Errorf("%s: %w", where, err)
	}
	a.say("%s: node %s, group %d: all slots served after %v, 3/3 after %v more", where, c.node, c.group,
		c.outage.Round(time.Millisecond), c.recovery.Round(time.Millisecond))
	err = pause(ctx, c.struck+seriesPace-time.Since(a.began))
	c.to = time.Since(a.began)
	return c, err
}

// judgeSeries makes the table, and holds it to what the scenario promises.
func (a *arena) judgeSeries(before layout, all []counted, recs []record) {
	stalled := a.stalls.list()
	rows := tabulate(before.terms, all, recs, stalled)
	for _, r := range rows {
		a.report.violate(r.Kind, r.broken()...)
	}
	a.report.Blows = rows
	for _, r := range recs {
		if r.err != nil && !excused(r, stalled) {
			a.report.violate("steady load", fmt.Sprintf("a request called at %v failed at %v: %v", r.call, r.ret, r.err))
		}
	}
	if len(stalled) > 0 {
		a.report.show("the machine stood still", "%d times", len(stalled))
	}
	waited, _, _ := summarise(map[key][]record{{}: recs})
	a.report.show("requests", "%d, p50 %v, p99 %v", len(recs), quantile(waited, 0.5).Round(10*time.Microsecond),
		quantile(waited, 0.99).Round(100*time.Microsecond))
}

// steady is takes at a pace, of every group, that do not wait for each other: what one
// waits is what an application would have waited that asked then.
type steady struct {
	stopping chan struct{}
	wg       sync.WaitGroup // of those that ask, and of what they ask

	mu   sync.Mutex // guards recs
	recs []record
}

func (a *arena) startSteady(ctx context.Context, probes map[uint32]key) *steady {
	s := &steady{stopping: make(chan struct{})}
	for _, k := range probes {
		s.wg.Go(func() {
			tick := time.NewTicker(askEvery)
			defer tick.Stop()
			for {
				s.wg.Go(func() {
					r := a.take(ctx, k, patience)
					s.mu.Lock()
					defer s.mu.Unlock()
					s.recs = append(s.recs, r)
				})
				select {
				case <-tick.C:
				case <-s.stopping:
					return
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return s
}

// stop waits for what is under way, and returns all.
func (s *steady) stop() []record {
	close(s.stopping)
	s.wg.Wait()
	return s.recs
}
