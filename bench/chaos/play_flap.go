package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

const (
	flapFrom  = 300 * time.Millisecond // a link stays up or down for so long at least …
	flapTo    = 3 * time.Second        // … and at most
	changeGap = 10 * time.Second       // at most one change of leader in each
)

// flapping is what comes and goes between two nodes, in one kind of round.
type flapping struct {
	name string
	set  func(f *fleet.Fleet, x, y string, open bool) error
	// calm: every leader keeps a majority throughout, so none may be deposed.
	calm bool
}

var flappings = []flapping{
	{"a link", func(f *fleet.Fleet, x, y string, open bool) error {
		if err := f.Block(x, y, fleet.AllPlanes, open); err != nil {
			return err
		}
		return f.Block(y, x, fleet.AllPlanes, open)
	}, true},
	{"one direction", func(f *fleet.Fleet, x, y string, open bool) error { return f.Block(x, y, fleet.AllPlanes, open) }, true},
	{"all links", func(f *fleet.Fleet, x, _ string, open bool) error { return f.Part([]string{x}, open) }, false},
}

// playFlap lets links come and go at random under load, in each round others.
func playFlap(ctx context.Context, a *arena, rounds int) error {
	for i := range rounds {
		nodes := a.fleet.Nodes
		x, y := nodes[i%len(nodes)].Name, nodes[(i+1)%len(nodes)].Name
		if err := a.flap(ctx, i, flappings[i%len(flappings)], x, y); err != nil {
			return err
		}
		a.report.Rounds++
	}
	differ, err := a.fleet.WaitEqual(ctx, 20*time.Second)
	a.report.violate("at the end", differ...)
	return err
}

// flap is one round between two nodes.
func (a *arena) flap(ctx context.Context, round int, kind flapping, x, y string) error {
	where := fmt.Sprintf("round %d, %s of %s and %s", round+1, kind.name, x, y)
	if err := a.ledByOwners(ctx); err != nil {
		return err
	}
	before, err := a.layout(ctx)
	if err != nil {
		return err
	}
	lasts := a.lasting(5*time.Minute, 10*time.Second)
	t := a.startTraffic(ctx)
	err = pause(ctx, time.Second) // all of it under way
	if err != nil {
		t.load.stop()
		return err
	}
	cuts, err := flapFor(ctx, lasts, func(open bool) error { return kind.set(a.fleet, x, y, open) })
	until := time.Since(a.began)
	if err != nil {
		t.load.stop()
		return err
	}
	took, err := a.healthy(ctx, where+", healed")
	t.stop(ctx, where)
	waited, _, _ := summarise(t.load.recs)
	if err != nil {
		return err
	}
	var all []record
	for _, recs := range t.load.recs {
		all = append(all, recs...)
	}
	changes := slices.DeleteFunc(changesOfLeader(before.terms, all), func(c change) bool { return c.at > until })
	if most := allowed(kind, lasts); len(changes) > most {
		a.report.violate(where, fmt.Sprintf("%d changes of leader in %v, at %v, want at most %d", len(changes), lasts, changes, most))
	}
	a.report.show(kind.name, "%d cuts in %v, %d changes of leader (at most %d in %v), %d takes, p99 %v, max %v, 3/3 %v after it", cuts, lasts,
		len(changes), mostWithin(changes, changeGap), changeGap, len(waited), quantile(waited, 0.99).Round(100*time.Microsecond),
		quantile(waited, 1).Round(time.Millisecond), took.Round(time.Millisecond))
	a.say("%s: %d cuts, %d changes of leader", where, cuts, len(changes))
	return a.unmoved(ctx, where, before)
}

// allowed is how many changes of leader a round may cause, over all groups.
func allowed(kind flapping, lasts time.Duration) int {
	if kind.calm {
		return 0
	}
	return 1 + int(lasts/changeGap)
}

// flapFor cuts and heals in turn, and leaves all healed.
func flapFor(ctx context.Context, lasts time.Duration, set func(open bool) error) (cuts int, err error) {
	end := time.Now().Add(lasts)
	for open := false; err == nil && time.Now().Before(end); open = !open {
		if !open {
			cuts++
		}
		if err = set(open); err == nil {
			err = pause(ctx, min(flapFrom+rand.N(flapTo-flapFrom), time.Until(end)))
		}
	}
	if healed := set(true); err == nil {
		err = healed
	}
	return cuts, err
}
