package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
)

// What the project aims at: the CPU time of a decision among the most buckets as a
// multiple of that among the fewest, and the live heap of a bucket in each replica.
const (
	aimKeys  = 2
	aimBytes = 56
)

// weighed is the least number of buckets of which memory is read: what a node holds
// anyway would be most of it with fewer.
const weighed = 1_000_000

// windows is how many times each number of buckets is measured; the row is the median.
const windows = 3

// measureKeys fills one cluster further and further.
func measureKeys(ctx context.Context, b *bench, r *Result) error {
	c, err := b.start(ctx, 3, b.groups, "")
	if err != nil {
		return err
	}
	defer c.close()
	var before weight // with the fewest buckets
	var first, last outcome
	held := 0
	for i, keys := range b.keys {
		b.say("keys: %d buckets", keys)
		if err := c.fill(ctx, held, keys, false); err != nil {
			return fmt.Errorf("filling to %d buckets: %w", keys, err)
		}
		held = keys
		if last, err = c.ofKeys(ctx, keys); err != nil {
			return fmt.Errorf("%d buckets: %w", keys, err)
		}
		if i == 0 {
			first = last
			if before, err = c.weigh(ctx); err != nil {
				return err
			}
		}
		r.row(
			fmt.Sprintf("%d buckets", keys),
			Figure{"decisions/s", last.Rate}, Figure{"p99 ms", float64(last.P99) / 1e3},
			Figure{"CPU s/M client", last.perMillion(last.client)}, Figure{"CPU s/M nodes", last.perMillion(last.nodes)},
			Figure{"CPU s/M all", last.perMillion(last.total())},
			Figure{fmt.Sprintf("all / %d", b.keys[0]), last.perMillion(last.total()) / first.perMillion(first.total())},
			Figure{"foreign %", 100 * last.foreign},
		)
		if keys >= weighed {
			if err := c.memory(ctx, r, &before, keys); err != nil {
				return err
			}
		}
	}
	r.atMost(fmt.Sprintf("CPU of a decision, %d buckets / %d", held, b.keys[0]), last.perMillion(last.total())/first.perMillion(first.total()), aimKeys)
	return c.comeBack(ctx, r)
}

// ofKeys measures with so many buckets: the median of some loads.
func (c *cluster) ofKeys(ctx context.Context, keys int) (outcome, error) {
	var list []outcome
	for i := range windows {
		cfg := load.Config{Duration: c.bench.length(5*time.Second) / windows, Concurrency: c.bench.callers, Batch: c.bench.batch}
		profile, measure := "", c.good
		switch i {
		case 0:
			measure = c.warmed
		case windows - 1:
			profile = fmt.Sprintf("keys-%d", keys)
		}
		o, err := measure(ctx, c.target(uniform(keys, 0, uint64(i))), cfg, profile)
		if err != nil {
			return o, err
		}
		list = append(list, o)
	}
	return middle(list, func(o outcome) float64 { return o.perMillion(o.total()) }), nil
}

// middle is the one of list, which it sorts, whose figure is the median.
func middle[T any](list []T, figure func(T) float64) T {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(figure(a), figure(b)) })
	return list[len(list)/2]
}
