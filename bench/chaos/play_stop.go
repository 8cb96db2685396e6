package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

// drainTimeout is serve's default for --drain-timeout, and a margin.
const drainTimeout = 35 * time.Second

// playTerm stops and restarts each node under load; callers must not notice.
func playTerm(ctx context.Context, a *arena, rounds int) error {
	const enough = 1000 // requests for a round to count
	// The deadline is the client library's own: nobody should have to raise it.
	plan := loadPlan{workers: 32, pace: 5 * time.Millisecond, deadline: 2 * time.Second}
	keys := make([]key, 48)
	for i := range keys {
		keys[i] = a.fresh("wide")
	}
	var slow []time.Duration
	for i := range rounds {
		for _, n := range a.fleet.Nodes {
			where := fmt.Sprintf("round %d, node %s", i+1, n.Name)
			load := a.startLoad(ctx, keys, plan)
			err := a.stopAndStart(ctx, where, n)
			took, failed, first := summarise(load.stop())
			if err != nil {
				return err
			}
			if failed > 0 {
				a.report.violate(where, fmt.Sprintf("%d of %d requests failed, the first with: %v", failed, len(took), first))
			}
			if len(took) < enough {
				a.report.doubt("%s: only %d requests", where, len(took))
			}
			slow = append(slow, quantile(took, 1))
			a.say("%s: %d requests, %d failed, p99 %v, max %v", where, len(took), failed,
				quantile(took, 0.99).Round(time.Microsecond), quantile(took, 1).Round(time.Microsecond))
		}
		a.report.Rounds++
	}
	a.report.show("slowest request", "%v", quantile(slow, 1).Round(time.Millisecond))
	return nil
}

// stopAndStart ends a node by SIGTERM, starts it again and waits for 3/3.
func (a *arena) stopAndStart(ctx context.Context, where string, n *fleet.Node) error {
	if err := pause(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	if err := n.Stop(drainTimeout); err != nil {
		a.report.violate(where, err.Error())
		_ = n.Kill() // it may still hang
	}
	if err := pause(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	if err := n.Start(); err != nil {
		return err
	}
	_, err := a.healthy(ctx, where)
	return err
}

// summarise returns the latencies of all takes, how many failed, and one error.
func summarise(recs map[key][]record) (took []time.Duration, failed int, first error) {
	for _, list := range recs {
		for _, r := range list {
			took = append(took, r.ret-r.call)
			if r.err != nil {
				failed++
				first = r.err
			}
		}
	}
	return took, failed, first
}

// playRollingRestart compares where every slot lives before and after.
func playRollingRestart(ctx context.Context, a *arena, rounds int) error {
	for i := range rounds {
		where := fmt.Sprintf("round %d", i+1)
		slots, owners, err := a.placement(ctx)
		if err != nil {
			return err
		}
		for _, n := range a.fleet.Nodes {
			if err := a.stopAndStart(ctx, where+", node "+n.Name, n); err != nil {
				return err
			}
		}
		slotsAfter, ownersAfter, err := a.placement(ctx)
		if err != nil {
			return err
		}
		a.report.violate(where, moved(slots, slotsAfter)...)
		if !maps.Equal(owners, ownersAfter) {
			a.report.violate(where, fmt.Sprintf("owners were %v and are %v", owners, ownersAfter))
		}
		a.report.Rounds++
		a.report.show(where, "%d slots, none moved", len(slots))
	}
	return nil
}

// placement returns the group of each slot and the owner of each group.
func (a *arena) placement(ctx context.Context) (slots []uint32, owners map[uint32]string, err error) {
	st, err := a.fleet.Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	owners = make(map[uint32]string, len(st.GetGroups()))
	for _, g := range st.GetGroups() {
		owners[g.GetId()] = g.GetOwner()
	}
	conn, err := a.fleet.Nodes[0].Dial()
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	routing, err := pb.NewLimiterClient(conn).GetRouting(ctx, &pb.GetRoutingRequest{})
	if err != nil {
		return nil, nil, fmt.Errorf("routing of node %s: %w", a.fleet.Nodes[0].Name, err)
	}
	return routing.GetSlotGroups(), owners, nil
}

// moved says which slots changed their group, if any.
func moved(before, after []uint32) []string {
	if len(before) == 0 || len(before) != len(after) {
		return []string{fmt.Sprintf("%d slots before, %d after", len(before), len(after))}
	}
	n := 0
	for i := range before {
		if before[i] != after[i] {
			n++
		}
	}
	if n > 0 {
		return []string{fmt.Sprintf("%d of %d slots moved", n, len(before))}
	}
	return nil
}
