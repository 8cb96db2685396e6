package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// replacedIn is how long the others may take to make a removed node's replicas
// anew, and its slots their own.
const replacedIn = 60 * time.Second

// playRemove loses one of five nodes for good, and in a full run lets it come back
// empty.
func playRemove(ctx context.Context, a *arena, rounds int) error {
	t := a.startTraffic(ctx)
	lost := a.fleet.Nodes[rand.IntN(len(a.fleet.Nodes))]
	err := t.remove(ctx, lost)
	if err == nil && !a.short {
		err = t.comeBack(ctx, lost)
	}
	if err != nil {
		t.load.stop()
		return err
	}
	t.stop(ctx, "over loss and return of "+lost.Name)
	differ, err := a.fleet.WaitEqual(ctx, 20*time.Second)
	a.report.violate("at the end", differ...)
	a.report.Rounds++
	return err
}

// remove kills a node and declares it gone for good.
func (t *traffic) remove(ctx context.Context, lost *fleet.Node) error {
	a, where := t.a, "removed "+lost.Name
	before, err := a.layout(ctx)
	if err != nil {
		return err
	}
	if err := lost.Kill(); err != nil {
		return err
	}
	start := time.Now()
	if err := a.declareLost(ctx, where, lost); err != nil {
		return err
	}
	a.fleet.Forget(lost)
	if err := a.complete(ctx, where, replacedIn); err != nil {
		return err
	}
	a.report.show("3/3 on the others", "%v after the kill", time.Since(start).Round(100*time.Millisecond))
	after, err := a.layout(ctx)
	if err != nil {
		return err
	}
	a.report.violate(where, checkBalance(after, after.nodes)...)
	a.report.violate(where, checkEpochs(before, after)...)
	for id, replicas := range after.replicas {
		if slices.Contains(replicas, lost.Name) {
			a.report.violate(where, fmt.Sprintf("group %d still lists it: %v", id, replicas))
		}
	}
	t.spendIdle(ctx, where, 1)
	return ctx.Err()
}

// declareLost runs `rlnode remove` until it is taken: it is refused while links to
// the node may still be up.
func (a *arena) declareLost(ctx context.Context, where string, lost *fleet.Node) error {
	limit, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		code, out, err := a.fleet.Command(limit, "remove", lost.Name)
		if err == nil && code == 0 {
			return nil
		}
		if pause(limit, 300*time.Millisecond) != nil {
			a.report.violate(where, fmt.Sprintf("rlnode remove: exit code %d (%v): %.300s", code, err, out))
			return fmt.Errorf("%s: refused", where)
		}
	}
}

// comeBack starts the node again, under its name and with an empty directory.
func (t *traffic) comeBack(ctx context.Context, lost *fleet.Node) error {
	a, where := t.a, "back again "+lost.Name
	if err := lost.Wipe(); err != nil {
		return err
	}
	before, err := a.layout(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := a.fleet.Return(lost); err != nil {
		return err
	}
	if err := a.complete(ctx, where, grownIn); err != nil {
		return err
	}
	a.report.show("balanced again", "%v after its return", time.Since(start).Round(100*time.Millisecond))
	after, err := a.layout(ctx)
	if err != nil {
		return err
	}
	_, broken := checkMoved(before, after, len(before.nodes), len(after.nodes))
	a.report.violate(where, broken...)
	a.report.violate(where, checkBalance(after, after.nodes)...)
	t.spendIdle(ctx, where, 1)
	return ctx.Err()
}
