package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// layout is where everything is, as the cluster has agreed.
type layout struct {
	slots    []string            // the node that owns each
	owners   map[uint32]string   // of each group
	leaders  map[uint32]string   // of each group, empty if none
	epochs   map[uint32]uint32   // of each group
	replicas map[uint32][]string // nodes of each group
	nodes    []string            // registered, in order
	dead     []string            // of those
	cluster  string
}

// layout asks the cluster where everything is.
func (a *arena) layout(ctx context.Context) (layout, error) {
	st, err := a.fleet.Status(ctx)
	if err != nil {
		return layout{}, err
	}
	l := layout{owners: map[uint32]string{}, leaders: map[uint32]string{}, epochs: map[uint32]uint32{}, replicas: map[uint32][]string{}, cluster: st.GetClusterId()}
	for _, g := range st.GetGroups() {
		l.owners[g.GetId()], l.leaders[g.GetId()] = g.GetOwner(), g.GetLeader()
		l.epochs[g.GetId()] = g.GetEpoch()
		l.replicas[g.GetId()] = slices.Sorted(slices.Values(g.GetReplicas()))
	}
	for _, n := range st.GetNodes() {
		l.nodes = append(l.nodes, n.GetName())
		if n.GetState() == "dead" {
			l.dead = append(l.dead, n.GetName())
		}
	}
	slices.Sort(l.nodes)
	routing, err := a.routing(ctx)
	if err != nil {
		return layout{}, err
	}
	for _, g := range routing.GetSlotGroups() {
		l.slots = append(l.slots, l.owners[g])
	}
	return l, nil
}

// routing asks the first node that runs which group has each slot.
func (a *arena) routing(ctx context.Context) (*pb.Routing, error) {
	for _, n := range a.fleet.Nodes {
		if n.PID() == 0 {
			continue
		}
		conn, err := n.Dial()
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		r, err := pb.NewLimiterClient(conn).GetRouting(ctx, &pb.GetRoutingRequest{})
		if err != nil {
			return nil, fmt.Errorf("routing of node %s: %w", n.Name, err)
		}
		return r, nil
	}
	return nil, fmt.Errorf("routing: no node runs")
}

// unmoved wants every slot and replica where it was.
func (a *arena) unmoved(ctx context.Context, where string, before layout) error {
	after, err := a.layout(ctx)
	if err != nil {
		return err
	}
	a.report.violate(where, checkUnmoved(before, after)...)
	a.report.show("slots", "%d, none moved", len(after.slots))
	return nil
}

// checkUnmoved says what differs between two layouts that should be equal.
func checkUnmoved(before, after layout) (broken []string) {
	if n := moved(before.slots, after.slots); n != 0 || len(before.slots) == 0 {
		broken = append(broken, fmt.Sprintf("%d of %d slots moved", n, len(before.slots)))
	}
	if !maps.EqualFunc(before.replicas, after.replicas, slices.Equal) {
		broken = append(broken, fmt.Sprintf("replicas were on %v and are on %v", before.replicas, after.replicas))
	}
	return append(broken, checkEpochs(before, after)...)
}

// checkEpochs: a group that is still there is in the epoch it was in.
func checkEpochs(before, after layout) (broken []string) {
	for id, epoch := range before.epochs {
		if now, there := after.epochs[id]; there && now != epoch {
			broken = append(broken, fmt.Sprintf("group %d is in epoch %d, was in %d", id, now, epoch))
		}
	}
	return broken
}

// moved counts the slots of which another node is the owner.
func moved(before, after []string) (n int) {
	if len(before) != len(after) {
		return max(len(before), len(after))
	}
	for i := range before {
		if before[i] != after[i] {
			n++
		}
	}
	return n
}

// checkBalance: each of these nodes, and nobody else, owns slots, at most 1.25
// times the mean of them.
func checkBalance(l layout, nodes []string) (broken []string) {
	count := map[string]int{}
	for _, owner := range l.slots {
		count[owner]++
	}
	for _, n := range nodes {
		if c := count[n]; c == 0 || 4*c*len(nodes) > 5*len(l.slots) {
			broken = append(broken, fmt.Sprintf("node %s owns %d of %d slots", n, c, len(l.slots)))
		}
		delete(count, n)
	}
	if len(count) > 0 {
		broken = append(broken, fmt.Sprintf("slots of nodes that should have none: %v", count))
	}
	return broken
}

// checkMoved: a change from one number of nodes to another moves at most twice
// the slots that it must.
func checkMoved(before, after layout, from, to int) (n int, broken []string) {
	n = moved(before.slots, after.slots)
	larger, changed := max(from, to), max(from, to)-min(from, to)
	if n*larger > 2*changed*len(after.slots) {
		broken = append(broken, fmt.Sprintf("%d of %d slots moved, want at most %d", n, len(after.slots), 2*changed*len(after.slots)/larger))
	}
	return n, broken
}

// incomplete says what a layout lacks to be that of so many live nodes, each
// with a group of its own and all groups whole; empty if nothing.
func (l layout) incomplete(nodes int) string {
	var lacks []string
	if len(l.nodes) != nodes || len(l.dead) > 0 {
		lacks = append(lacks, fmt.Sprintf("nodes %v, dead %v, want %d", l.nodes, l.dead, nodes))
	}
	if len(l.epochs) != nodes {
		lacks = append(lacks, fmt.Sprintf("%d groups, want %d", len(l.epochs), nodes))
	}
	for id, r := range l.replicas {
		if len(r) != min(3, nodes) && nodes != 2 {
			lacks = append(lacks, fmt.Sprintf("group %d is on %v", id, r))
		}
	}
	return strings.Join(lacks, "; ")
}
