package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// playRoll replaces every node by an empty process of its name, round after
// round. All of a group's state is then carried over by its replicas alone.
func playRoll(ctx context.Context, a *arena, rounds int) error {
	idle := a.tens(10)
	for _, k := range idle {
		a.spend(ctx, "before the rounds", k, 4, 4)
	}
	r := roll{a: a}
	for i := range rounds {
		if err := r.round(ctx, fmt.Sprintf("round %d", i+1)); err != nil {
			return err
		}
		a.report.Rounds++
	}
	for _, k := range idle {
		a.spend(ctx, "idle throughout", k, 8, 6)
	}
	for _, k := range r.spent {
		a.spend(ctx, "spent in an earlier round", k, 2, 0)
	}
	a.report.show("takes", "%d", r.takes)
	a.report.show("3/3 again p50", "%v", quantile(r.recoveries, 0.5).Round(time.Millisecond))
	a.report.show("max", "%v", quantile(r.recoveries, 1).Round(time.Millisecond))
	return nil
}

// roll is what playRoll keeps from round to round.
type roll struct {
	a          *arena
	spent      []key
	takes      int
	recoveries []time.Duration
}

// round kills and restarts each node once, under load.
func (r *roll) round(ctx context.Context, where string) error {
	const budget, busyKeys = 3000, 4
	a := r.a
	partly := a.fresh("ten")
	a.spend(ctx, where, partly, 4, 4)
	busy := make([]key, busyKeys)
	for i := range busy {
		busy[i] = a.fresh("budget")
	}
	load := a.startLoad(ctx, busy, loadPlan{workers: 16, pace: 10 * time.Millisecond, deadline: patience})
	err := r.replaceAll(ctx, where)
	recs := load.stop()
	if err != nil {
		return err
	}
	took, _, _ := summarise(recs)
	a.say("%s: %d takes under way, p50 %v, p99 %v, max %v", where, len(took), quantile(took, 0.5).Round(time.Microsecond),
		quantile(took, 0.99).Round(time.Millisecond), quantile(took, 1).Round(time.Millisecond))
	r.takes += len(took)
	for _, k := range busy {
		if n, _, _ := tally(recs[k]); n == 0 {
			a.report.doubt("%s: no load on a key", where)
		}
		// Enough to reach the end of the budget whatever the load took.
		all := append(recs[k], a.volley(ctx, k, budget, 64, nil)...)
		a.judgeExact(where, k, all)
	}
	a.spend(ctx, where, partly, 8, 6)
	r.spent = append(append(r.spent, busy...), partly)
	differ, err := a.fleet.WaitEqual(ctx, 20*time.Second)
	a.report.violate(where, differ...)
	return err
}

func (r *roll) replaceAll(ctx context.Context, where string) error {
	for _, n := range r.a.fleet.Nodes {
		if err := n.Kill(); err != nil {
			return err
		}
		if err := pause(ctx, time.Duration(rand.Int64N(int64(time.Second)))); err != nil {
			return err
		}
		if err := n.Start(); err != nil {
			return err
		}
		took, err := r.a.healthy(ctx, where+", node "+n.Name)
		if err != nil {
			return err
		}
		r.recoveries = append(r.recoveries, took)
		r.a.say("%s: node %s replaced, 3/3 after %v", where, n.Name, took.Round(time.Millisecond))
	}
	return nil
}

// tens returns fresh keys of ten tokens a year.
func (a *arena) tens(n int) []key {
	keys := make([]key, n)
	for i := range keys {
		keys[i] = a.fresh("ten")
	}
	return keys
}

// spend makes takes one after the other and wants that many admitted.
func (a *arena) spend(ctx context.Context, where string, k key, takes, want int) {
	recs := a.volley(ctx, k, takes, 1, nil)
	if n, _, failed := tally(recs); n != want || failed > 0 {
		a.report.violate(where, fmt.Sprintf("%d takes of 10 a year: %d admitted, %d failed, want %d admitted", takes, n, failed, want))
	}
}
