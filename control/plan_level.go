package control

import (
	"fmt"
	"slices"

	"github.com/ringlimit/ringlimit/ring"
)

// planLevel moves one replica from a node that has most of them to one that has
// least, as long as that makes them more even (ring.Level). A step is what it is for
// a drain: the fresh replica is caught up and has its vote before the old one goes.
//
// It costs a snapshot of a whole group and mends nothing. So it waits until there is
// nothing else to do, and nothing is to be expected; and there is one such step at a
// time in the cluster.
func (p *planner) planLevel() {
	if len(p.out) > 0 || !p.calm() {
		return
	}
	step, ok := p.s.shift()
	if !ok {
		return
	}
	g := p.s.Groups[step.Group]
	i := slices.IndexFunc(g.Replicas, func(r Replica) bool { return r.Node == step.From })
	if r := g.Replicas[i]; p.safe(g, r, true) {
		p.do(Replace{g.ID, g.Epoch, r.Serial, step.To})
	}
}

// shift returns the next step that levels the replicas, by place in Groups.
func (s *State) shift() (ring.Shift, bool) {
	copies := make([]ring.Copies, len(s.Groups))
	for i, g := range s.Groups {
		copies[i].Owner = g.Owner
		for _, r := range g.Replicas {
			if r.Role != Leaving {
				copies[i].Nodes = append(copies[i].Nodes, r.Node)
			}
		}
	}
	return ring.Level(copies, s.Members())
}

// Unlevel names two nodes between which a replica is to be moved because one has at
// least two more than the other; empty if there are none.
func (s *State) Unlevel() string {
	step, ok := s.shift()
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s has %d, %s has %d", step.From, s.CountReplicas(step.From), step.To, s.CountReplicas(step.To))
}

// CountReplicas counts the replicas of a node, without those that leave.
func (s *State) CountReplicas(node string) (n int) {
	for _, g := range s.Groups {
		if g.occupied(node, 0) {
			n++
		}
	}
	return n
}

// calm says whether all nodes have been there for a while, the slots are where they
// shall be, and every group is whole.
func (p *planner) calm() bool {
	if p.frozen || p.look.Quiet < Hysteresis || p.look.Steady < Hysteresis || p.s.drains() || len(p.s.Moves) > 0 {
		return false
	}
	for _, n := range p.s.Nodes {
		if !n.Removed && !n.Retired && !p.alive(n.Name) {
			return false
		}
	}
	for _, g := range p.s.Groups {
		if !g.Formed || len(g.Births) > 0 || len(g.Replicas) != p.s.Replication || p.live(g) != len(g.Replicas) {
			return false
		}
	}
	homes := p.homes()
	return p.wishes(homes) && len(homes) == len(p.s.Groups) && p.arrived()
}

// arrived says whether each slot is where it is wished.
func (p *planner) arrived() bool {
	return p.s.Wish == nil || slices.Equal(p.s.SlotGroup, p.s.Wish.Slots)
}
