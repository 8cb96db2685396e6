package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// playEpochs kills two of three nodes at once. What the third still has is not
// known to be all, so it must not answer from it. When the two are back from their
// directories it is certain that what they held is gone: a new epoch begins.
func playEpochs(ctx context.Context, a *arena, rounds int) error {
	survivor := a.fleet.Nodes[rand.IntN(len(a.fleet.Nodes))]
	where := "all but " + survivor.Name
	l, err := a.prepareLoss(ctx)
	if err != nil {
		return err
	}
	counted, err := survivor.Metric(ctx, "ringlimit_new_epochs_total")
	if err != nil {
		return err
	}
	var victims []*fleet.Node
	for _, n := range a.fleet.Nodes {
		if n != survivor {
			victims = append(victims, n)
		}
	}
	apart, err := killTogether(victims)
	if err != nil {
		return err
	}
	l.lost = time.Now()
	if apart > 50*time.Millisecond {
		a.report.doubt("%s: killed %v apart", where, apart)
	}
	if err := pause(ctx, 2*time.Second); err != nil { // the lease ends
		return err
	}
	a.refused(ctx, where+", two dead", []*fleet.Node{survivor}, l.probes, time.Duration(a.few(5, 2))*time.Second)
	a.lossIsTold(ctx, where)
	for _, n := range victims {
		if err := n.Start(); err != nil {
			return err
		}
	}
	took, err := a.healthyWithin(ctx, where+", both back", replacedIn)
	if err != nil {
		return err
	}
	a.report.show("serving again", "%v after the restart", took.Round(100*time.Millisecond))
	now, err := survivor.Metric(ctx, "ringlimit_new_epochs_total")
	if err != nil {
		return err
	}
	if got := int(now - counted); got != len(l.before.epochs) {
		a.report.violate(where, fmt.Sprintf("%d new epochs counted, want %d", got, len(l.before.epochs)))
	}
	a.report.Rounds++
	return l.judge(ctx, where)
}
