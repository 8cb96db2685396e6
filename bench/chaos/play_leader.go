package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// harm is something that happens to one node and ends again.
type harm struct {
	strike func(*fleet.Node) error
	lasts  time.Duration
	heal   func(*fleet.Node) error
	// behind, if set, asks the node while it is struck, and returns what it
	// should not have answered.
	behind func(context.Context, *arena, *fleet.Node, key) []string
}

// servedIn is how long some slots may be without service after a harm.
const servedIn = 2 * time.Second

func playKillLeader(ctx context.Context, a *arena, rounds int) error {
	return a.breakLeaders(ctx, rounds, harm{
		strike: (*fleet.Node).Kill,
		heal:   (*fleet.Node).Start,
	})
}

func playPauseLeader(ctx context.Context, a *arena, rounds int) error {
	return a.breakLeaders(ctx, rounds, harm{
		strike: (*fleet.Node).Pause,
		lasts:  5 * time.Second,
		heal:   (*fleet.Node).Resume,
	})
}

func playCutLeader(ctx context.Context, a *arena, rounds int) error {
	return a.breakLeaders(ctx, rounds, harm{
		strike: func(n *fleet.Node) error { return a.fleet.Cut(n.Name) },
		lasts:  5 * time.Second,
		heal:   func(n *fleet.Node) error { return a.fleet.Heal(n.Name) },
		behind: askBehindCut,
	})
}

// breakLeaders strikes, in each round, the leader of a fresh key's group in the
// middle of 5,000 takes on a burst of 3,000, before the budget is gone.
func (a *arena) breakLeaders(ctx context.Context, rounds int, h harm) error {
	probes, err := a.probes(ctx, "wide")
	if err != nil {
		return err
	}
	var outages, recoveries []time.Duration
	for i := range rounds {
		where := fmt.Sprintf("round %d", i+1)
		k := a.fresh("budget")
		group, err := a.groupOf(ctx, k)
		if err != nil {
			return err
		}
		leader, err := a.fleet.Leader(ctx, group)
		if err != nil {
			return err
		}
		outage, err := a.breakLeader(ctx, where, k, leader, probes, h)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		outages = append(outages, outage)
		recovery, err := a.healthy(ctx, where)
		if err != nil {
			return err
		}
		recoveries = append(recoveries, recovery)
		a.say("%s: node %s, all slots served after %v, 3/3 after %v more", where, leader.Name,
			outage.Round(time.Millisecond), recovery.Round(time.Millisecond))
	}
	a.report.show("all slots served p50", "%v", quantile(outages, 0.5).Round(time.Millisecond))
	a.report.show("max", "%v", quantile(outages, 1).Round(time.Millisecond))
	a.report.show("3/3 again max", "%v", quantile(recoveries, 1).Round(time.Millisecond))
	return nil
}

// breakLeader is one round; it returns how long some slot was not served.
func (a *arena) breakLeader(ctx context.Context, where string, k key, leader *fleet.Node, probes map[uint32]key, h harm) (time.Duration, error) {
	const takes, budget, workers = 5000, 3000, 64
	var admitted atomic.Int64
	strikeAt, now := 300+rand.Int64N(1200), make(chan struct{})
	done := make(chan []record, 1)
	go func() {
		done <- a.volley(ctx, k, takes, workers, func(r record) {
			if r.err == nil && r.ans.Allowed && admitted.Add(1) == strikeAt {
				close(now)
			}
		})
	}()
	select {
	case <-now:
	case recs := <-done:
		n, _, failed := tally(recs)
		return 0, fmt.Errorf("takes ended before the fault: %d admitted, %d failed", n, failed)
	}

	struck := time.Now()
	if err := h.strike(leader); err != nil {
		return 0, err
	}
	before := admitted.Load()
	outage, unserved := a.served(ctx, probes, struck)
	if unserved != nil {
		a.report.violate(where, unserved.Error())
	} else if outage > servedIn {
		a.report.violate(where, fmt.Sprintf("all slots were served after %v, want at most %v", outage, servedIn))
	}
	if h.behind != nil {
		a.report.violate(where, h.behind(ctx, a, leader, k)...)
	}
	if err := pause(ctx, h.lasts-time.Since(struck)); err != nil {
		return 0, err
	}
	if err := h.heal(leader); err != nil {
		return 0, err
	}
	recs := <-done
	a.judgeExact(where, k, recs)
	if before >= budget {
		a.report.doubt("%s: the budget was gone before the fault", where)
	} else {
		a.report.Rounds++
	}
	return outage, ctx.Err()
}

// askBehindCut looks through the log at a node that is cut off, when its lease
// must have ended: no majority is there to commit a look, so no answer may come.
func askBehindCut(ctx context.Context, a *arena, n *fleet.Node, k key) (broken []string) {
	const leaseOver = 1500 * time.Millisecond
	if pause(ctx, leaseOver) != nil {
		return nil
	}
	for range 4 {
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		d, err := direct(short, n, k, 0)
		cancel()
		if err == nil {
			broken = append(broken, fmt.Sprintf("node %s, cut off, answered a look: %v", n.Name, d))
		}
	}
	return broken
}
