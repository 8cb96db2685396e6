package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/control"
)

// controlLoop does the duties of the control leader, whenever this node is it:
// proposing what the planner says is next, and keeping the control group's own
// members in line with the registered nodes.
func (n *Node) controlLoop(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		n.followPeers()
		n.noteLead()
		if n.control.Leads() && !n.stopping.Load() {
			n.governPlacement(ctx)
			n.endOverrides(ctx)
			if err := n.governVoters(ctx); err != nil && ctx.Err() == nil {
				n.log.Info("control group step will be tried again", "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-n.changes:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// noteLead remembers since when this node leads the control group.
func (n *Node) noteLead() {
	switch leads := n.control.Leads(); {
	case !leads:
		n.led.Store(nil)
	case n.led.Load() == nil:
		n.led.Store(new(time.Now()))
	}
}

// followPeers keeps links to exactly the nodes of the cluster.
func (n *Node) followPeers() {
	var names []string
	keep := map[string]bool{n.self.name: true}
	for _, node := range n.control.State().Nodes {
		if !node.Removed && node.Name != n.self.name {
			names = append(names, node.Name)
			keep[node.Name] = true
		}
	}
	n.peers.SetPeers(names)
	n.keepHints(n.control.State())
	if n.table.forget(keep) {
		n.leadersChanged()
	}
	n.hearSelf()
}

func (n *Node) governPlacement(ctx context.Context) {
	for _, c := range control.Next(n.control.State()) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := n.control.Propose(ctx, c)
		cancel()
		if err != nil {
			n.log.Info("placement step refused", "step", fmt.Sprintf("%T%+v", c, c), "error", err)
			return
		}
		n.log.Info("placement step", "step", fmt.Sprintf("%T%+v", c, c))
	}
}

// governVoters does at most one change of the control group: a replica of a
// directory that is no longer registered goes, and caught-up ones are given a
// vote until there are as many as asked for.
func (n *Node) governVoters(ctx context.Context) error {
	servers, err := n.control.Servers()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s := n.control.State()
	wanted := make(map[string]control.Node)
	for _, node := range s.Nodes {
		if !node.Removed {
			wanted[controlID(node.Name, node.Directory)] = node
		}
	}
	voters, live := 0, 0
	for id, voter := range servers {
		if node, ok := wanted[id]; voter {
			voters++
			if ok && n.answers(node) {
				live++
			}
		}
	}
	for id, voter := range servers {
		if _, ok := wanted[id]; ok {
			continue
		}
		if voter && live < (voters-1)/2+1 {
			continue // the rest would have no live majority
		}
		n.log.Info("control replica goes", "replica", id)
		return n.control.Remove(ctx, id)
	}
	var candidates []string
	for id, node := range wanted {
		if voter, member := servers[id]; member && voter || !n.answers(node) {
			continue
		} else if !member {
			return n.control.AddNonvoter(ctx, id)
		}
		if n.controlCaughtUp(node) && live+1 >= (voters+1)/2+1 {
			candidates = append(candidates, id)
		}
	}
	// An even number of voters survives no more deaths than the odd one below it.
	if missing := s.Voters - voters; missing > 0 && (voters%2 == 0 || missing > 1 && len(candidates) > 1) && len(candidates) > 0 {
		n.log.Info("control replica gets a vote", "replica", candidates[0])
		return n.control.Promote(ctx, candidates[0])
	}
	return nil
}

func (n *Node) controlCaughtUp(node control.Node) bool {
	h, ok := n.table.last(node.Name)
	return ok && h.incarnation == node.Incarnation && h.digest.control >= n.control.Applied()
}

// endOverrides ends those whose deadline has come by this node's clock, which
// becomes a fact of the control log.
func (n *Node) endOverrides(ctx context.Context) {
	now := time.Now()
	deadline, ok := n.control.State().NextDeadline()
	if !ok || deadline > now.UnixNano() {
		return
	}
	err := n.control.Propose(ctx, control.ExpireOverrides{
		Now: now.UnixNano(), By: control.Author{Who: n.self.name, When: now.UTC().Format(time.RFC3339)},
	})
	if err != nil {
		n.log.Info("overrides whose deadline has come will be ended later", "error", err)
	}
}
