package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

const (
	grownIn   = 90 * time.Second // for nodes that join to have their share: 10 s of it is waiting for more of them
	drainedIn = 60 * time.Second // for one node
)

// playGrow takes a cluster through several sizes under load.
func playGrow(ctx context.Context, a *arena, rounds int) error {
	sizes := []int{5, 7, 4, 3}
	if a.short {
		sizes = []int{4, 3}
	}
	t := a.startTraffic(ctx)
	w := a.watchMajorities(ctx)
	var err error
	for _, size := range sizes {
		if err = t.resize(ctx, size); err != nil {
			break
		}
		a.report.Rounds++
	}
	a.report.violate("majorities", w.stop()...)
	if err != nil {
		t.load.stop()
		return err
	}
	if w.looks < 10 {
		a.report.doubt("majorities: only %d looks", w.looks)
	}
	t.stop(ctx, "over all sizes")
	differ, err := a.fleet.WaitEqual(ctx, 20*time.Second)
	a.report.violate("at the end", differ...)
	return err
}

// resize adds nodes, or drains some, and judges where the slots are then.
func (t *traffic) resize(ctx context.Context, size int) error {
	a, from := t.a, len(t.a.fleet.Nodes)
	where := fmt.Sprintf("%d to %d nodes", from, size)
	before, err := a.layout(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if size > from {
		err = a.join(ctx, where, size-from)
	} else {
		err = a.drainSome(ctx, where, from-size)
	}
	if err != nil {
		return err
	}
	took := time.Since(start)
	after, err := a.layout(ctx)
	if err != nil {
		return err
	}
	n, broken := checkMoved(before, after, from, size)
	a.report.violate(where, broken...)
	a.report.violate(where, checkBalance(after, after.nodes)...)
	a.report.violate(where, checkEpochs(before, after)...)
	a.report.violate(where, checkLevel(after)...)
	a.report.show(where, "%d slots moved, %v; replicas %v", n, took.Round(100*time.Millisecond), after.copies())
	a.say("%s: %d slots moved in %v; replicas per node %v", where, n, took.Round(time.Millisecond), after.copies())
	t.spendIdle(ctx, where, 1)
	return ctx.Err()
}

// join adds nodes and waits until each has a group, and each group is whole.
func (a *arena) join(ctx context.Context, where string, n int) error {
	for range n {
		if _, err := a.fleet.Add(); err != nil {
			return err
		}
	}
	return a.complete(ctx, where, grownIn)
}

// complete waits until the cluster is that of all its nodes, healthy, and no slot
// is on the move.
func (a *arena) complete(ctx context.Context, where string, within time.Duration) error {
	limit, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		_, err := a.fleet.WaitHealthy(limit)
		if err == nil {
			var l layout
			l, err = a.layout(limit)
			if lacks := l.incomplete(len(a.fleet.Nodes)); err == nil && lacks == "" {
				return nil
			} else if err == nil {
				err = fmt.Errorf("%s", lacks)
			}
		}
		if pause(limit, 100*time.Millisecond) != nil {
			if ctx.Err() == nil {
				a.report.violate(where, fmt.Sprintf("not complete within %v: %v", within, err))
			}
			return fmt.Errorf("%s: %w", where, err)
		}
	}
}

// drainSome drains nodes one after the other, any of them.
func (a *arena) drainSome(ctx context.Context, where string, n int) error {
	for range n {
		nodes := a.fleet.Nodes
		if err := a.drain(ctx, where, nodes[rand.IntN(len(nodes))]); err != nil {
			return err
		}
	}
	return a.complete(ctx, where, healthyIn)
}

// drain runs `rlnode drain`, which waits, and wants the process to end by itself.
func (a *arena) drain(ctx context.Context, where string, n *fleet.Node) error {
	limit, cancel := context.WithTimeout(ctx, drainedIn)
	defer cancel()
	start := time.Now()
	code, out, err := a.fleet.Command(limit, "drain", n.Name)
	if err != nil || code != 0 {
		a.report.violate(where, fmt.Sprintf("rlnode drain %s: exit code %d (%v) after %v: %.300s", n.Name, code, err, time.Since(start).Round(time.Millisecond), out))
		return fmt.Errorf("%s: node %s is not drained", where, n.Name)
	}
	if err := n.Ended(drainTimeout); err != nil {
		a.report.violate(where, "after its drain: "+err.Error())
		_ = n.Kill()
	}
	a.fleet.Forget(n)
	a.say("%s: node %s drained in %v", where, n.Name, time.Since(start).Round(time.Millisecond))
	return nil
}

// playOneToThree: what a single node knew, three know.
func playOneToThree(ctx context.Context, a *arena, rounds int) error {
	t := a.startTraffic(ctx)
	start := time.Now()
	if err := a.join(ctx, "one to three", 2); err != nil {
		t.load.stop()
		return err
	}
	a.report.show("complete", "%v after they joined", time.Since(start).Round(100*time.Millisecond))
	t.stop(ctx, "one to three")
	l, err := a.layout(ctx)
	if err != nil {
		return err
	}
	a.report.violate("one to three", checkBalance(l, l.nodes)...)
	differ, err := a.fleet.WaitEqual(ctx, 20*time.Second)
	a.report.violate("one to three", differ...)
	a.report.Rounds++
	return err
}
