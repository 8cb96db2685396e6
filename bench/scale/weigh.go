package main

import (
	"bytes"
	"context"
	"fmt"
)

// weight is what a node holds, in bytes, the mean of all nodes.
type weight struct {
	buckets  float64 // how many, in all its groups
	heap     float64 // alive after a collection
	log      float64 // of that in raft logs
	results  float64 // and in stored results, from a profile
	cells    float64 // and in buckets themselves, from a profile
	resident float64 // before the collection
}

// rest is what is alive without logs and results.
func (w *weight) rest() float64 { return w.heap - w.log - w.results }

// weigh makes every node collect its garbage.
func (c *cluster) weigh(ctx context.Context) (mean weight, err error) {
	for _, n := range c.List() {
		var w weight
		if w.resident, err = n.Resident(); err != nil {
			return mean, err
		}
		var page bytes.Buffer
		if w.heap, err = n.LiveHeap(ctx, &page); err != nil {
			return mean, err
		}
		if w.buckets, err = n.Metric(ctx, "ringlimit_group_buckets"); err != nil {
			return mean, err
		}
		if w.log, err = n.Metric(ctx, "ringlimit_group_log_bytes"); err != nil {
			return mean, err
		}
		if w.cells, w.results, err = parts(&page); err != nil {
			return mean, fmt.Errorf("heap profile of node %s: %w", n.Name, err)
		}
		nodes := float64(len(c.List()))
		mean.buckets += w.buckets / nodes
		mean.heap += w.heap / nodes
		mean.log += w.log / nodes
		mean.results += w.results / nodes
		mean.cells += w.cells / nodes
		mean.resident += w.resident / nodes
	}
	return mean, nil
}

// memory adds a row of what each bucket takes, beyond what nodes held before.
func (c *cluster) memory(ctx context.Context, r *Result, before *weight, keys int) error {
	w, err := c.weigh(ctx)
	if err != nil {
		return err
	}
	buckets := w.buckets - before.buckets
	each := (w.rest() - before.rest()) / buckets
	r.row(
		fmt.Sprintf("%d buckets, each replica", keys),
		Figure{"heap B/bucket", each}, Figure{"cells B", w.cells / w.buckets},
		Figure{"heap MB", w.heap / 1e6}, Figure{"log MB", w.log / 1e6}, Figure{"results MB", w.results / 1e6},
		Figure{"RSS MB", w.resident / 1e6}, Figure{"RSS B/bucket", (w.resident - before.resident) / buckets},
	)
	r.atMost(fmt.Sprintf("bytes of live heap a bucket in each replica, %d buckets", keys), each, aimBytes)
	return nil
}
