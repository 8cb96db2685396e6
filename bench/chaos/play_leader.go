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

// volley is the takes in the middle of which a leader is struck, on a fresh key.
type volley struct {
	plan           string // whose burst is budget
	takes, budget  int
	workers        int
	strikeFrom, to int64 // admissions, before the fault comes
}

// full is what the callers of one key ask at saturation.
var full = volley{plan: "budget", takes: 5000, budget: 3000, workers: 64, strikeFrom: 300, to: 1500}

// blow is what one harm to a leader did.
type blow struct {
	node     string
	group    uint32        // the key's
	struck   time.Duration // since the arena began
	outage   time.Duration // from then until every slot had been served
	recovery time.Duration // from the healing until 3/3
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
		b, err := a.breakLeader(ctx, where, full, probes, h)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		outages, recoveries = append(outages, b.outage), append(recoveries, b.recovery)
		a.say("%s: node %s, all slots served after %v, 3/3 after %v more", where, b.node,
			b.outage.Round(time.Millisecond), b.recovery.Round(time.Millisecond))
	}
	a.report.show("all slots served p50", "%v", quantile(outages, 0.5).Round(time.Millisecond))
	a.report.show("max", "%v", quantile(outages, 1).Round(time.Millisecond))
	a.report.show("3/3 again max", "%v", quantile(recoveries, 1).Round(time.Millisecond))
	return nil
}

// breakLeader strikes the leader of a fresh key's group in the middle of a volley,
// heals it, and waits until all is whole.
func (a *arena) breakLeader(ctx context.Context, where string, v volley, probes map[uint32]key, h harm) (b blow, err error) {
	k := a.fresh(v.plan)
	var leader *fleet.Node
	if b.group, leader, err = a.leaderOf(ctx, k); err != nil {
		return b, err
	}
	b.node = leader.Name
	var admitted atomic.Int64
	strikeAt, now := v.strikeFrom+rand.Int64N(v.to-v.strikeFrom), make(chan struct{})
	done := make(chan []record, 1)
	go func() {
		done <- a.volley(ctx, k, v.takes, v.workers, func(r record) {
			if r.err == nil && r.ans.Allowed && admitted.Add(1) == strikeAt {
				close(now)
			}
		})
	}()
	select {
	case <-now:
	case recs := <-done:
		n, _, failed := tally(recs)
		return b, fmt.Errorf("takes ended before the fault: %d admitted, %d failed", n, failed)
	}

	struck := time.Now()
	b.struck = struck.Sub(a.began)
	if err := h.strike(leader); err != nil {
		return b, err
	}
	before := int(admitted.Load())
	var unserved error
	if b.outage, unserved = a.served(ctx, probes, struck); unserved != nil {
		a.report.violate(where, unserved.Error())
	} else if b.outage > servedIn {
		a.late(where, b)
	}
	if h.behind != nil {
		a.report.violate(where, h.behind(ctx, a, leader, k)...)
	}
	if err := pause(ctx, h.lasts-time.Since(struck)); err != nil {
		return b, err
	}
	if err := h.heal(leader); err != nil {
		return b, err
	}
	a.judgeExact(where, k, <-done)
	if before >= v.budget {
		a.report.doubt("%s: the budget was gone before the fault", where)
	} else {
		a.report.Rounds++
	}
	b.recovery, err = a.healthy(ctx, where)
	return b, err
}

// late is a broken promise, but for a time in which the machine stood still.
func (a *arena) late(where string, b blow) {
	words := fmt.Sprintf("all slots were served after %v, want at most %v", b.outage, servedIn)
	if excused(record{call: b.struck, ret: b.struck + b.outage}, a.stalls.list()) {
		a.report.doubt("%s: %s; the machine stood still", where, words)
		return
	}
	a.report.violate(where, words)
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
