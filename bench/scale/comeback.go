package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// comeBack kills a node, which follows in most groups, and starts it again: it gets a
// dump of every group. It reports the time and what each process held meanwhile.
func (c *cluster) comeBack(ctx context.Context, r *Result) error {
	c.bench.say("keys: a node is killed and comes back")
	before, err := c.resident()
	if err != nil {
		return err
	}
	gone := c.Nodes[len(c.Nodes)-1]
	want, err := gone.Metric(ctx, "ringlimit_group_buckets")
	if err != nil {
		return err
	}
	if err := gone.Kill(); err != nil {
		return err
	}
	began := time.Now()
	if err := gone.Start(); err != nil {
		return err
	}
	highest := c.watchResident(ctx)
	if _, err := c.WaitHealthy(ctx); err != nil {
		highest()
		return err
	}
	took := time.Since(began)
	height := highest()
	after, err := c.resident()
	if err != nil {
		return err
	}
	for i, n := range c.Nodes {
		r.row(
			fmt.Sprintf("node %s, while %s came back", n.Name, gone.Name),
			Figure{"RSS before MB", before[i] / 1e6}, Figure{"highest MB", height[i] / 1e6}, Figure{"after MB", after[i] / 1e6},
			Figure{"highest / before", height[i] / before[i]},
		)
	}
	has, err := gone.Metric(ctx, "ringlimit_group_buckets")
	if err == nil && has != want {
		err = fmt.Errorf("node %s has %.0f buckets after it came back, %.0f before", gone.Name, has, want)
	}
	r.note("node %s was killed and healthy again %.1f s after its start, with %.0f buckets", gone.Name, took.Seconds(), has)
	return err
}

// resident is what each node holds.
func (c *cluster) resident() (list []float64, err error) {
	for _, n := range c.Nodes {
		v, err := n.Resident()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// watchResident looks at each node ten times a second, until the function is called
// that it returns, which tells the most each has held.
func (c *cluster) watchResident(ctx context.Context) (highest func() []float64) {
	ctx, stop := context.WithCancel(ctx)
	most := make([]float64, len(c.Nodes))
	look := func() {
		for i, n := range c.Nodes {
			if v, err := n.Resident(); err == nil { // one that is down holds nothing
				most[i] = max(most[i], v)
			}
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			look()
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() []float64 {
		stop()
		wg.Wait()
		look()
		return most
	}
}
