package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
)

// What the project aims at: the CPU time of a decision in the largest cluster, as a
// multiple of that in the smallest.
const aimNodes = 1.2

// size is a cluster to measure.
type size struct{ nodes, groups int }

// sizes are those of so many nodes: one group, three, and one for each node, which is
// the default.
func sizes(nodes []int) (list []size) {
	for _, n := range nodes {
		for _, g := range []int{n, 3, 1} {
			if s := (size{n, g}); g <= n && !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

// base is the size that s is compared with: the smallest with as many groups, or with
// one for each node.
func (s size) base(least int) size {
	if s.groups == s.nodes {
		return size{least, least}
	}
	return size{least, s.groups}
}

// measureNodes puts the same load on each group of clusters of several sizes.
func measureNodes(ctx context.Context, b *bench, r *Result) error {
	found := map[size]outcome{}
	for _, s := range sizes(b.nodes) {
		b.say("nodes: %d nodes, %d groups", s.nodes, s.groups)
		o, err := b.ofSize(ctx, s)
		if err != nil {
			return fmt.Errorf("%d nodes, %d groups: %w", s.nodes, s.groups, err)
		}
		found[s] = o
		client, nodes := o.perMillion(o.client), o.perMillion(o.nodes)
		fewest := found[s.base(b.nodes[0])]
		r.row(
			fmt.Sprintf("%d nodes, %d groups", s.nodes, s.groups),
			Figure{"decisions/s", o.Rate},
			Figure{"p50 ms", float64(o.P50) / 1e3}, Figure{"p99 ms", float64(o.P99) / 1e3},
			Figure{"CPU s/M client", client}, Figure{"CPU s/M nodes", nodes}, Figure{"CPU s/M all", client + nodes},
			Figure{fmt.Sprintf("all / %d nodes", b.nodes[0]), (client + nodes) / fewest.perMillion(fewest.total())},
			Figure{"foreign %", 100 * o.foreign},
		)
	}
	least, most := b.nodes[0], b.nodes[len(b.nodes)-1]
	ratio := func(groups int) float64 {
		s := size{most, groups}
		large, small := found[s], found[s.base(least)]
		return large.perMillion(large.total()) / small.perMillion(small.total())
	}
	r.atMost(fmt.Sprintf("CPU of a decision, %d nodes / %d, one group each", most, least), ratio(most), aimNodes)
	r.atMost(fmt.Sprintf("CPU of a decision, %d nodes / %d, one group in all", most, least), ratio(1), aimNodes)
	return nil
}

// ofSize measures one cluster, with single decisions at an even rate.
func (b *bench) ofSize(ctx context.Context, s size) (outcome, error) {
	c, err := b.start(ctx, s.nodes, s.groups, "")
	if err != nil {
		return outcome{}, err
	}
	defer c.close()
	const keys = 100_000
	if err := c.fill(ctx, 0, keys, false); err != nil {
		return outcome{}, err
	}
	return c.warmed(ctx, c.target(uniform(keys, 0, 0)), load.Config{
		Duration: b.length(5 * time.Second), Concurrency: 4096, Batch: 1, Rate: b.perGroup * float64(s.groups),
	}, fmt.Sprintf("nodes-%d-%d", s.nodes, s.groups))
}
