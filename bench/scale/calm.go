package main

import (
	"context"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
)

// calmCallers keep all processors busy.
const calmCallers = 1024

// measureCalm puts full load on a cluster without a fault, and counts changes of leader.
func measureCalm(ctx context.Context, b *bench, r *Result) error {
	took := b.length(10 * time.Minute)
	c, err := b.start(ctx, 3, b.groups, "")
	if err != nil {
		return err
	}
	defer c.close()
	const keys = 1_000_000
	if err := c.fill(ctx, 0, keys, false); err != nil {
		return err
	}
	before, err := c.leaders(ctx)
	if err != nil {
		return err
	}
	x, err := c.good(ctx, c.target(uniform(keys, 0, 0)), load.Config{Duration: took, Concurrency: calmCallers, Batch: 1}, "calm")
	if err != nil {
		return err
	}
	after, err := c.leaders(ctx)
	if err != nil {
		return err
	}
	r.row(
		"full load", Figure{"seconds", x.Seconds}, Figure{"decisions/s", x.Rate}, Figure{"errors", float64(x.Errors)},
		Figure{"p99 ms", float64(x.P99) / 1e3}, Figure{"max ms", float64(x.Max) / 1e3},
		Figure{"elections", after.elections - before.elections}, Figure{"transfers", after.transfers - before.transfers},
		Figure{"terms", after.terms - before.terms}, Figure{"stalls", after.stalls - before.stalls}, Figure{"foreign %", 100 * x.foreign},
	)
	changes := after.elections - before.elections
	if before.control != after.control {
		r.note("the control group had another leader: %s, not %s", after.control, before.control)
		changes++
	}
	r.atMost("changes of leader without a fault", changes, 0)
	return nil
}

// leaders is what tells of changes of leader, summed over all nodes and groups.
type leaders struct {
	elections, transfers, terms, stalls float64
	control                             string
}

func (c *cluster) leaders(ctx context.Context) (l leaders, err error) {
	for name, sum := range map[string]*float64{
		"ringlimit_group_elections_total": &l.elections, "ringlimit_group_transfers_total": &l.transfers,
		"ringlimit_group_term": &l.terms, "ringlimit_group_stalls_total": &l.stalls,
	} {
		for _, n := range c.Nodes {
			v, err := n.Metric(ctx, name)
			if err != nil {
				return l, err
			}
			*sum += v
		}
	}
	st, err := c.Status(ctx)
	l.control = st.GetControlLeader()
	return l, err
}
