package cluster

import (
	"context"
	"fmt"
	"strings"
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
		n.countEpochs()
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

// noteLead remembers since when this node leads the control group. What it saw
// under an earlier leadership of its own does not count.
func (n *Node) noteLead() {
	switch leads := n.control.Leads(); {
	case !leads:
		n.led.Store(nil)
		n.sight = nil
	case n.led.Load() == nil:
		n.led.Store(new(time.Now()))
	}
}

// linger is how long the link to a node that left the cluster is kept: by it the
// node learns that it has left.
const linger = 5 * time.Second

// followPeers keeps links to exactly the nodes of the cluster, and for a moment to
// those that have just left it.
func (n *Node) followPeers() {
	now := time.Now()
	var names []string
	keep := map[string]bool{n.self.name: true}
	for _, node := range n.control.State().Nodes {
		if node.Name == n.self.name {
			continue
		}
		if !node.Removed {
			keep[node.Name] = true
			n.linked[node.Name] = now
		}
		if now.Sub(n.linked[node.Name]) < linger {
			names = append(names, node.Name)
		} else {
			delete(n.linked, node.Name)
		}
	}
	n.peers.SetPeers(names)
	n.keepHints(n.control.State())
	if n.table.forget(keep) {
		n.leadersChanged()
	}
	n.hearSelf()
}

// governPlacement proposes the next steps of the placement.
func (n *Node) governPlacement(ctx context.Context) {
	s, now := n.control.State(), time.Now()
	look := n.survey(s, now)
	if s.Placed() && now.Sub(n.ledSince()) < newLeader {
		return // links take a moment: it does not know yet who is there
	}
	steps := control.Plan(s, look)
	n.sight.judge(steps, now)
	waits := false // a step that later ones may be built on
	for _, c := range steps {
		if n.notYet(c, now) {
			waits = true
			continue
		}
		if waits && !control.Accepts(n.control.State(), c) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := n.control.Propose(ctx, c)
		cancel()
		if err != nil {
			n.log.Info("placement step refused", "step", stepText(c), "error", err)
			return
		}
		n.log.Info("placement step", "step", stepText(c))
	}
}

// notYet says whether a step must wait for something that the planner does not see.
func (n *Node) notYet(c control.Command, now time.Time) bool {
	switch c := c.(type) {
	case control.Left:
		return n.votes(c.Name) // its control vote moves away first
	case control.NewEpoch:
		return !n.sight.patient(c.Group, now)
	}
	return false
}

// stepText is a command for the log, cut short: a wish names every slot.
func stepText(c control.Command) string {
	text := fmt.Sprintf("%T%+v", c, c)
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return strings.TrimPrefix(text, "control.")
}

// votes says whether a registered node has a vote in the control group, as far as
// this leader can tell.
func (n *Node) votes(name string) bool {
	node, _ := n.control.State().Node(name)
	servers, err := n.control.Servers()
	return err != nil || servers[controlID(node.Name, node.Directory)]
}

// governVoters does at most one change of the control group: see nextVoterStep.
func (n *Node) governVoters(ctx context.Context) error {
	s := n.control.State()
	members, err := n.controlMembers(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	step := nextVoterStep(members, s.Voters)
	if step.kind != voterNone {
		n.log.Info("control group step", "step", step)
	}
	switch step.kind {
	case voterAdd:
		return n.control.AddNonvoter(ctx, step.id)
	case voterRemove:
		return n.control.Remove(ctx, step.id)
	case voterPromote:
		return n.control.Promote(ctx, step.id)
	case voterDemote:
		return n.control.Demote(ctx, step.id)
	case voterHandOver:
		return n.control.HandOver(ctx, step.id)
	default:
		return nil
	}
}

// controlMembers are the control group's members and the registered nodes that
// are none yet.
func (n *Node) controlMembers(s *control.State) ([]controlMember, error) {
	servers, err := n.control.Servers()
	if err != nil {
		return nil, err
	}
	own := controlID(n.self.name, n.self.directory)
	var members []controlMember
	for _, node := range s.Nodes {
		if node.Removed {
			continue
		}
		id := controlID(node.Name, node.Directory)
		voter, member := servers[id]
		delete(servers, id)
		members = append(members, controlMember{
			id: id, self: id == own, member: member, voter: voter, registered: true,
			leaving: node.Draining, retired: node.Retired, alive: n.answers(node), caughtUp: n.controlCaughtUp(node),
		})
	}
	for id, voter := range servers {
		members = append(members, controlMember{id: id, self: id == own, member: true, voter: voter})
	}
	return members, nil
}

func (n *Node) controlCaughtUp(node control.Node) bool {
	h, ok := n.table.last(node.Name)
	return ok && h.incarnation == node.Incarnation && !h.digest.stopping && h.digest.control >= n.control.Applied()
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
