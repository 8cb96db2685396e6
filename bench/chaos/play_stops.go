package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

const (
	stoppedFor = 20 * time.Second // far less than --replace-after
	starveTo   = 0.05             // of a core
)

// playStops stops the leader of one group after the other for a while. None of them has ended, so
// nothing may be given up for it.
func playStops(ctx context.Context, a *arena, rounds int) error {
	t := a.startTraffic(ctx)
	err := a.stopInTurn(ctx, rounds)
	if err != nil {
		t.load.stop()
		return err
	}
	t.stop(ctx, "over all stops")
	differ, err := a.fleet.WaitEqual(ctx, 20*time.Second)
	a.report.violate("at the end", differ...)
	return err
}

func (a *arena) stopInTurn(ctx context.Context, rounds int) error {
	before, err := a.layout(ctx)
	if err != nil {
		return err
	}
	var back []time.Duration
	for i := range rounds {
		n, err := a.leaderInTurn(ctx, i)
		if err != nil {
			return err
		}
		where := fmt.Sprintf("round %d, node %s", i+1, n.Name)
		if err := n.Pause(); err != nil {
			return err
		}
		err = a.keptFor(ctx, where+", stopped", stoppedFor, before)
		if resumed := n.Resume(); err == nil {
			err = resumed
		}
		if err != nil {
			return err
		}
		took, err := a.healthy(ctx, where)
		if err == nil {
			err = a.kept(ctx, where, before)
		}
		if err != nil {
			return err
		}
		back = append(back, took)
		a.say("%s: 3/3 again %v after it went on", where, took.Round(time.Millisecond))
		a.report.Rounds++
	}
	a.report.show("3/3 again p50", "%v", quantile(back, 0.5).Round(time.Millisecond))
	a.report.show("max", "%v", quantile(back, 1).Round(time.Millisecond))
	return a.unmoved(ctx, "at the end", before)
}

// kept wants every voter to be the very one it was.
func (a *arena) kept(ctx context.Context, where string, before layout) error {
	now, err := a.layout(ctx)
	if err != nil {
		return err
	}
	a.report.violate(where, checkKept(before, now)...)
	a.report.violate(where, checkEpochs(before, now)...)
	return nil
}

// keptFor looks at all voters every second for so long.
func (a *arena) keptFor(ctx context.Context, where string, lasts time.Duration, before layout) error {
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		if err := pause(ctx, min(time.Second, time.Until(end))); err != nil {
			return err
		}
		if err := a.kept(ctx, where, before); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return nil
}

// playStarved takes nearly all CPU time away from the leader of one group after the
// other.
func playStarved(ctx context.Context, a *arena, rounds int) error {
	for i := range rounds {
		n, err := a.leaderInTurn(ctx, i)
		if err != nil {
			return err
		}
		where := fmt.Sprintf("round %d, node %s", i+1, n.Name)
		before, err := a.layout(ctx)
		if err != nil {
			return err
		}
		t := a.startTraffic(ctx)
		starved, err := a.starve(ctx, where, n, before)
		if err != nil {
			t.load.stop()
			return err
		}
		t.stop(ctx, where)
		if !starved {
			return nil // nor would it in another round
		}
		if err := a.unmoved(ctx, where, before); err != nil {
			return err
		}
		a.report.Rounds++
	}
	differ, err := a.fleet.WaitEqual(ctx, 20*time.Second)
	a.report.violate("at the end", differ...)
	return err
}

// starve limits a node's CPU time for a while; false where this machine cannot.
func (a *arena) starve(ctx context.Context, where string, n *fleet.Node, before layout) (bool, error) {
	used, err := n.CPU()
	if err != nil {
		return false, err
	}
	lift, err := n.Throttle(starveTo)
	if err != nil {
		a.report.doubt("%s: %v", where, err)
		return false, nil
	}
	lasts := a.lasting(60*time.Second, 15*time.Second)
	err = a.keptFor(ctx, where, lasts, before)
	now, cpu := n.CPU()
	if lifted := lift(); err == nil {
		err = lifted
	}
	if err == nil {
		err = cpu
	}
	if err != nil {
		return false, err
	}
	took, err := a.healthy(ctx, where+", with all its CPU time again")
	if err != nil {
		return false, err
	}
	share := float64(now-used) / float64(lasts)
	a.report.show("node "+n.Name, "got %.1f %% of a core, 3/3 %v after that", 100*share, took.Round(time.Millisecond))
	a.say("%s: it got %.1f %% of a core, 3/3 %v after that", where, 100*share, took.Round(time.Millisecond))
	return true, a.kept(ctx, where, before)
}
