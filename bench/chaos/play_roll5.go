package main

import (
	"context"
	"fmt"
	"time"
)

// away is how long the first node stays down in a full run: a restart that takes
// long is no loss.
const away = 40 * time.Second

// playRoll5 restarts each of five nodes by SIGTERM, round after round.
func playRoll5(ctx context.Context, a *arena, rounds int) error {
	before, err := a.layout(ctx)
	if err != nil {
		return err
	}
	if !a.short {
		if err := a.longRestart(ctx, before); err != nil {
			return err
		}
	}
	for i := range rounds {
		where := fmt.Sprintf("round %d", i+1)
		t := a.startTraffic(ctx)
		for _, n := range a.fleet.Nodes {
			if err := a.stopAndStart(ctx, where+", node "+n.Name, n); err != nil {
				t.load.stop()
				return err
			}
		}
		t.stop(ctx, where)
		if err := a.unmoved(ctx, where, before); err != nil {
			return err
		}
		a.say("%s: all five restarted", where)
		a.report.Rounds++
	}
	differ, err := a.fleet.WaitEqual(ctx, 20*time.Second)
	a.report.violate("at the end", differ...)
	return err
}

// longRestart keeps one node down for longer than a restart should take.
func (a *arena) longRestart(ctx context.Context, before layout) error {
	n, t := a.fleet.Nodes[0], a.startTraffic(ctx)
	where := fmt.Sprintf("node %s away for %v", n.Name, away)
	err := n.Stop(drainTimeout)
	if err == nil {
		err = pause(ctx, away)
	}
	if err == nil {
		err = a.unmoved(ctx, where, before)
	}
	if err == nil {
		err = n.Start()
	}
	if err == nil {
		_, err = a.healthy(ctx, where)
	}
	if err != nil {
		t.load.stop()
		return err
	}
	t.stop(ctx, where)
	return a.unmoved(ctx, where, before)
}
