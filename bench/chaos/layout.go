package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

// layout is where everything is, as the cluster has agreed.
type layout struct {
	slots    []string            // the node that owns each
	owners   map[uint32]string   // of each group
	leaders  map[uint32]string   // of each group, empty if none
	terms    map[uint32]uint64   // of those leaders
	epochs   map[uint32]uint32   // of each group
	replicas map[uint32][]string // nodes of each group
	voters   map[uint32][]string // of those that vote, node/serial: no serial is ever used twice
	control  []string            // nodes that vote in the control group, in order
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
	l := layout{owners: map[uint32]string{}, leaders: map[uint32]string{}, terms: map[uint32]uint64{}, epochs: map[uint32]uint32{}, replicas: map[uint32][]string{}, voters: map[uint32][]string{}, cluster: st.GetClusterId()}
	for _, g := range st.GetGroups() {
		l.owners[g.GetId()], l.leaders[g.GetId()] = g.GetOwner(), g.GetLeader()
		l.epochs[g.GetId()], l.terms[g.GetId()] = g.GetEpoch(), g.GetTerm()
		l.replicas[g.GetId()] = slices.Sorted(slices.Values(g.GetReplicas()))
		for _, m := range g.GetMembers() {
			if m.GetRole() == "voter" {
				l.voters[g.GetId()] = append(l.voters[g.GetId()], fmt.Sprintf("%s/%d", m.GetNode(), m.GetSerial()))
			}
		}
		slices.Sort(l.voters[g.GetId()])
	}
	for _, n := range st.GetNodes() {
		l.nodes = append(l.nodes, n.GetName())
		if n.GetState() == "dead" {
			l.dead = append(l.dead, n.GetName())
		}
		if n.GetControl() == "voter" {
			l.control = append(l.control, n.GetName())
		}
	}
	slices.Sort(l.nodes)
	slices.Sort(l.control)
	routing, err := a.routing(ctx)
	if err != nil {
		return layout{}, err
	}
	for _, g := range routing.GetSlotGroups() {
		l.slots = append(l.slots, l.owners[g])
	}
	return l, nil
}

// routing asks the nodes that run, in order, which group has each slot, and returns
// the first answer.
func (a *arena) routing(ctx context.Context) (*pb.Routing, error) {
	err := errors.New("routing: no node runs")
	for _, n := range a.fleet.Nodes {
		if n.PID() == 0 {
			continue
		}
		var r *pb.Routing
		if r, err = routingOf(ctx, n); err == nil {
			return r, nil
		}
	}
	return nil, err
}

func routingOf(ctx context.Context, n *fleet.Node) (*pb.Routing, error) {
	conn, err := n.Dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := pb.NewLimiterClient(conn).GetRouting(ctx, &pb.GetRoutingRequest{})
	if err != nil {
		return nil, fmt.Errorf("routing of node %s: %w", n.Name, err)
	}
	return r, nil
}

// checkKept: a change that no process ended for leaves every voter of every group,
// and of the control group, the very one it was.
func checkKept(before, after layout) (broken []string) {
	if !maps.EqualFunc(before.voters, after.voters, slices.Equal) || len(before.voters) == 0 {
		broken = append(broken, fmt.Sprintf("voters (node/serial) were %v and are %v", before.voters, after.voters))
	}
	if !slices.Equal(before.control, after.control) || len(before.control) == 0 {
		broken = append(broken, fmt.Sprintf("voters of the control group were %v and are %v", before.control, after.control))
	}
	return broken
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

// copies counts the replicas on each node, ascending.
func (l layout) copies() []int {
	count := make(map[string]int)
	for _, n := range l.nodes {
		count[n] = 0
	}
	for _, on := range l.replicas {
		for _, n := range on {
			count[n]++
		}
	}
	return slices.Sorted(maps.Values(count))
}

// checkLevel: no node has two replicas more than another.
func checkLevel(l layout) (broken []string) {
	if c := l.copies(); c[len(c)-1]-c[0] > 1 {
		broken = append(broken, fmt.Sprintf("replicas per node are %v: groups are on %v", c, l.replicas))
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
