package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

// direct asks one node by plain gRPC: no retry, no second node, no client
// library. Errors have the kinds of package fault.
func direct(ctx context.Context, n *fleet.Node, k key, cost int64) (*pb.Decision, error) {
	conn, err := n.Dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	resp, err := pb.NewLimiterClient(conn).Decide(ctx, &pb.DecideRequest{
		Subject: &pb.Subject{Tenant: k.tenant, Plan: k.plan},
		Cost:    &cost,
	})
	if err != nil {
		return nil, fault.FromStatus(err)
	}
	return resp.GetDecision(), nil
}

// groupOf returns the group that decides a key, by looking without spending.
func (a *arena) groupOf(ctx context.Context, k key) (uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d, err := a.caller.take(ctx, k, 0)
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", k.tenant, err)
	}
	return d.Group, nil
}

// leaderOf returns the group that decides a key, and the node that leads it: there may be
// none for a moment.
func (a *arena) leaderOf(ctx context.Context, k key) (group uint32, leader *fleet.Node, err error) {
	if group, err = a.groupOf(ctx, k); err != nil {
		return 0, nil, err
	}
	for range 20 {
		if leader, err = a.fleet.Leader(ctx, group); err == nil || pause(ctx, 100*time.Millisecond) != nil {
			break
		}
	}
	return group, leader, err
}

// probes returns one key of each group under a plan.
func (a *arena) probes(ctx context.Context, plan string) (map[uint32]key, error) {
	st, err := a.fleet.Status(ctx)
	if err != nil {
		return nil, err
	}
	keys := make(map[uint32]key)
	for range 1000 {
		k := a.fresh(plan)
		group, err := a.groupOf(ctx, k)
		if err != nil {
			return nil, err
		}
		if keys[group] = k; len(keys) == len(st.GetGroups()) {
			return keys, nil
		}
	}
	return nil, fmt.Errorf("a thousand tenants fell into %d of %d groups", len(keys), len(st.GetGroups()))
}

// served takes once from every group at the same time, and returns how long
// after start the last of them had answered: then all slots are served.
func (a *arena) served(ctx context.Context, probes map[uint32]key, start time.Time) (time.Duration, error) {
	var mu sync.Mutex // guards last and failed
	var last time.Duration
	var failed error
	var wg sync.WaitGroup
	for group, k := range probes {
		wg.Go(func() {
			rec := a.take(ctx, k, patience)
			took := time.Since(start)
			mu.Lock()
			defer mu.Unlock()
			last = max(last, took)
			if rec.err != nil {
				failed = fmt.Errorf("group %d not served after %v: %w", group, took.Round(time.Millisecond), rec.err)
			}
		})
	}
	wg.Wait()
	return last, failed
}
