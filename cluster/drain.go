package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/control"
)

// Drain begins to move a node's slots, replicas and control vote to the others.
// The control leader's loop does the rest, whether or not anybody waits.
func (n *Node) Drain(ctx context.Context, r *pb.DrainRequest) (*pb.DrainResponse, error) {
	if !n.control.Leads() {
		return callLeader(ctx, n, methodDrain, r, new(pb.DrainResponse))
	}
	node, err := n.registeredNode(r.GetNode())
	if err != nil {
		return nil, err
	}
	if node.Draining {
		return &pb.DrainResponse{Already: true, Index: n.control.State().Index}, nil
	}
	if !n.looksAlive(n.control.State(), node) {
		return nil, fault.New(fault.Conflict, "node %s does not answer: start it to drain it; if it will never return, remove it", node.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	index, err := n.control.ProposeAt(ctx, control.Drain{Name: node.Name})
	if err != nil {
		return nil, err
	}
	n.log.Info("node drains", "drained", node.Name)
	return &pb.DrainResponse{Index: index, Warnings: fewer(n.control.State())}, nil
}

// fewer warns when the drains under way leave too few nodes for the replicas that
// groups have.
func fewer(s *control.State) []string {
	stay, want := s.Staying()
	if !s.Placed() || want >= s.Replication {
		return nil
	}
	return []string{fmt.Sprintf("%s left when it is done: each group will have %s instead of %d, and the loss of one node then costs state; "+
		"with %[3]d nodes there are %[3]d again", amount(stay, "node is", "nodes are"), amount(want, "replica", "replicas"), s.Replication)}
}

// amount is a number of things in words.
func amount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Undrain lets a draining node stay.
func (n *Node) Undrain(ctx context.Context, r *pb.UndrainRequest) (*pb.UndrainResponse, error) {
	if !n.control.Leads() {
		return callLeader(ctx, n, methodUndrain, r, new(pb.UndrainResponse))
	}
	node, err := n.registeredNode(r.GetNode())
	if err != nil {
		return nil, err
	}
	if !node.Draining {
		return nil, fault.New(fault.Conflict, "node %s is not draining", node.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := n.control.Propose(ctx, control.Undrain{Name: node.Name}); err != nil {
		return nil, err
	}
	n.log.Info("node stays", "node_that_stays", node.Name)
	return &pb.UndrainResponse{}, nil
}

// registeredNode finds a node of the cluster for a command that names it. Only the
// control leader may say that there is none: the state of others is of the past, and
// empty in a process that has just started.
func (n *Node) registeredNode(name string) (control.Node, error) {
	s := n.control.State()
	node, ok := s.Node(name)
	if !ok || node.Removed {
		return control.Node{}, fault.New(fault.NotFound, "no node is named %q; there are %s", name, strings.Join(s.Registered(), ", "))
	}
	return node, nil
}

// progress is what is still on a draining node, for a person.
func progress(s *control.State, node control.Node, votes bool) string {
	var parts []string
	count := func(n int, what string) {
		if n > 0 {
			parts = append(parts, amount(n, what, what+"s"))
		}
	}
	slots, replicas := 0, 0
	for _, g := range s.Groups {
		if g.Owner == node.Name {
			slots += s.CountSlots(g.ID)
		}
		if hasNode(g, node.Name) {
			replicas++
		}
	}
	count(slots, "slot")
	count(replicas, "replica")
	if votes {
		parts = append(parts, "its control vote")
	}
	if parts == nil {
		return "nothing is left on it"
	}
	text := "to move away: " + strings.Join(parts, ", ")
	if m := len(s.Moves); m > 0 {
		text += fmt.Sprintf(" (%d on the move)", m)
	}
	return text
}

// hasLeft says whether this process was drained and has left the cluster.
func (n *Node) hasLeft() bool {
	node, ok := n.control.State().Node(n.self.name)
	return ok && left(node, n.self.incarnation)
}

// left says whether a process was drained and has left, unlike one that was
// removed although it is there.
func left(node control.Node, incarnation string) bool {
	return node.Removed && node.Draining && node.Incarnation == incarnation
}
