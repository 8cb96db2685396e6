package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// drainTimeout is serve's default for --drain-timeout, and a margin.
const drainTimeout = 35 * time.Second

// playTerm stops and restarts each node under load; callers must not notice.
func playTerm(ctx context.Context, a *arena, rounds int) error {
	const enough = 1000 // requests for a round to count
	// The deadline is the client library's own: nobody should have to raise it.
	plan := loadPlan{workers: 32, pace: 5 * time.Millisecond, deadline: 2 * time.Second}
	keys := make([]key, 48)
	for i := range keys {
		keys[i] = a.fresh("wide")
	}
	var slow []time.Duration
	before, err := a.layout(ctx)
	if err != nil {
		return err
	}
	for i := range rounds {
		for _, n := range a.fleet.Nodes {
			where := fmt.Sprintf("round %d, node %s", i+1, n.Name)
			load := a.startLoad(ctx, keys, plan)
			err := a.stopAndStart(ctx, where, n)
			took, failed, first := summarise(load.stop())
			if err != nil {
				return err
			}
			if failed > 0 {
				a.report.violate(where, fmt.Sprintf("%d of %d requests failed, the first with: %v", failed, len(took), first))
			}
			if len(took) < enough {
				a.report.doubt("%s: only %d requests", where, len(took))
			}
			slow = append(slow, quantile(took, 1))
			a.say("%s: %d requests, %d failed, p99 %v, max %v", where, len(took), failed,
				quantile(took, 0.99).Round(time.Microsecond), quantile(took, 1).Round(time.Microsecond))
		}
		if err := a.unmoved(ctx, fmt.Sprintf("round %d", i+1), before); err != nil {
			return err
		}
		a.report.Rounds++
	}
	a.report.show("slowest request", "%v", quantile(slow, 1).Round(time.Millisecond))
	return nil
}

// stopAndStart ends a node by SIGTERM, starts it again and waits for 3/3.
func (a *arena) stopAndStart(ctx context.Context, where string, n *fleet.Node) error {
	if err := pause(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	if err := n.Stop(drainTimeout); err != nil {
		a.report.violate(where, err.Error())
		_ = n.Kill() // it may still hang
	}
	if err := pause(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	if err := n.Start(); err != nil {
		return err
	}
	_, err := a.healthy(ctx, where)
	return err
}

// summarise returns the latencies of all takes, how many failed, and one error.
func summarise(recs map[key][]record) (took []time.Duration, failed int, first error) {
	for _, list := range recs {
		for _, r := range list {
			took = append(took, r.ret-r.call)
			if r.err != nil {
				failed++
				first = r.err
			}
		}
	}
	return took, failed, first
}
