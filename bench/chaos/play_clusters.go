package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// playTwoClusters bootstraps a second cluster and tells its nodes, one after the
// other, or in a short run one of them, to join the first.
func playTwoClusters(ctx context.Context, a *arena, rounds int) error {
	const where = "told to join"
	other, err := a.fleet.Another(ctx)
	if err != nil {
		return err
	}
	defer other.Close()
	b := &arena{fleet: other, caller: a.caller, report: a.report, progress: a.progress, stalls: a.stalls, name: a.name, short: a.short, began: a.began}
	before := make([]layout, 2)
	for i, c := range []*arena{a, b} {
		if before[i], err = c.layout(ctx); err != nil {
			return err
		}
	}
	if before[0].cluster == before[1].cluster {
		return fmt.Errorf("both clusters are %s", before[0].cluster)
	}
	spent := a.tens(20)
	for _, k := range spent {
		a.spend(ctx, where, k, 4, 4)
	}
	for _, n := range other.Nodes[:a.few(3, 1)] {
		n.With("--join", strings.Join(a.fleet.Gossip(), ","))
		if err := b.stopAndStart(ctx, where+", node "+n.Name, n); err != nil {
			return err
		}
	}
	if err := pause(ctx, time.Duration(a.few(20, 3))*time.Second); err != nil {
		return err
	}
	for i, c := range []*arena{a, b} {
		if _, err := c.healthy(ctx, where); err != nil {
			return err
		}
		if err := c.unmoved(ctx, where, before[i]); err != nil {
			return err
		}
		after, err := c.layout(ctx)
		if err != nil {
			return err
		}
		if after.cluster != before[i].cluster || !slices.Equal(after.nodes, before[i].nodes) {
			a.report.violate(where, fmt.Sprintf("cluster %s of %v is now %s of %v", before[i].cluster, before[i].nodes, after.cluster, after.nodes))
		}
		told := 0 // nodes
		for _, n := range c.fleet.Nodes {
			if yes, err := n.Logged("another cluster", before[1-i].cluster); err != nil {
				return err
			} else if yes {
				told++
			}
		}
		if told == 0 {
			a.report.violate(where, fmt.Sprintf("no node of cluster %d says that the other is another cluster", i+1))
		}
		a.report.show(fmt.Sprintf("told in cluster %d", i+1), "by %d nodes", told)
	}
	for _, k := range spent {
		a.spend(ctx, where, k, 8, 6)
	}
	a.report.Rounds++
	return nil
}
