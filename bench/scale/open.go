package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
)

// What the project aims at, in ms.
const (
	aimOpenP99   = 5
	aimSingleP50 = 0.25
	aimSingleP99 = 1
)

// openKeys is how many keys are asked for.
const openKeys = 100_000

// measureOpen asks at an even rate, then as a single caller, of a cluster with the
// default number of groups and of one with a single group.
func measureOpen(ctx context.Context, b *bench, r *Result) error {
	groups := []int{3, 1}
	if b.groups > 0 {
		groups = []int{b.groups}
	}
	best := [3]float64{1e9, 1e9, 1e9} // the aims bind the better of the two
	for _, g := range groups {
		b.say("open: %d groups", g)
		even, single, err := b.tails(ctx, g)
		if err != nil {
			return fmt.Errorf("%d groups: %w", g, err)
		}
		for i, x := range []outcome{even, single} {
			r.row(
				fmt.Sprintf("%d groups, %s", g, []string{"even rate", "one caller"}[i]),
				Figure{"decisions/s", x.Rate}, Figure{"denied %", 100 * float64(x.Denied) / float64(x.Requests)},
				Figure{"p50 ms", float64(x.P50) / 1e3}, Figure{"p99 ms", float64(x.P99) / 1e3},
				Figure{"p99.9 ms", float64(x.P999) / 1e3}, Figure{"max ms", float64(x.Max) / 1e3},
				Figure{"CPU s/M client", x.perMillion(x.client)}, Figure{"CPU s/M nodes", x.perMillion(x.nodes)},
				Figure{"foreign %", 100 * x.foreign},
			)
		}
		best[0] = min(best[0], float64(even.P99)/1e3)
		best[1] = min(best[1], float64(single.P50)/1e3)
		best[2] = min(best[2], float64(single.P99)/1e3)
	}
	r.atMost(fmt.Sprintf("p99 at %.0f decisions/s, ms, from when each was due", b.rate), best[0], aimOpenP99)
	r.atMost("p50 of one caller, ms", best[1], aimSingleP50)
	r.atMost("p99 of one caller, ms", best[2], aimSingleP99)
	return nil
}

// tails measures one cluster.
func (b *bench) tails(ctx context.Context, groups int) (even, single outcome, err error) {
	c, err := b.start(ctx, 3, groups, "")
	if err != nil {
		return even, single, err
	}
	defer c.close()
	if err := c.fill(ctx, 0, openKeys, true); err != nil {
		return even, single, err
	}
	request := uniform(openKeys, 0.1, 0)
	even, err = c.warmed(ctx, c.target(request), load.Config{
		Duration: b.length(5 * time.Second), Concurrency: 4096, Batch: 1, Rate: b.rate,
	}, fmt.Sprintf("open-%d", groups))
	if err != nil {
		return even, single, err
	}
	single, err = c.warmed(ctx, c.target(uniform(openKeys, 0, 0)), load.Config{
		Duration: b.length(5 * time.Second), Concurrency: 1, Batch: 1,
	}, fmt.Sprintf("single-%d", groups))
	return even, single, err
}
