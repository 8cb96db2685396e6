package control

import "github.com/ringlimit/ringlimit/api/fault"

// Revert ends a step that does not get on: the replica that was to come goes, and
// the one that it was to replace stays. That one has never been without its vote, or,
// if it has, the group's leader gives it back as it does for any replica.
type Revert struct {
	Group  uint32 `json:"group"`
	Epoch  uint32 `json:"epoch"`
	Serial uint64 `json:"serial"` // Joining
	Keep   uint64 `json:"keep"`   // Leaving, of a process that is its node's present one
}

func (Revert) kind() string { return "revert" }

func (c Revert) apply(s *State) (bool, error) {
	g, r, err := s.member(c.Group, c.Epoch, c.Serial)
	if err != nil {
		return false, err
	}
	keep, ok := g.Replica(c.Keep)
	switch {
	case !ok:
		return false, errNoReplica(c.Group, c.Keep)
	case r.Role == Leaving && keep.Role == Voter:
		return false, nil
	case r.Role != Joining || keep.Role != Leaving:
		return false, fault.New(fault.Conflict, "replica %d of group %d is %s and %d is %s, want one that joins and one that leaves",
			r.Serial, g.ID, r.Role, keep.Serial, keep.Role)
	case s.Gone(keep) || g.occupied(keep.Node, r.Serial):
		return false, fault.New(fault.Conflict, "replica %d of group %d on node %q cannot stay: its process has ended, or another has its place",
			keep.Serial, g.ID, keep.Node)
	}
	g.setRole(r.Serial, Leaving)
	g.setRole(keep.Serial, Voter)
	s.settleOwner(g)
	s.Revision++
	return true, nil
}

// planStep helps a step whose target is gone, leaves, or does not answer. The group
// goes on with what it had where that is to stay: then repairs need not wait. Else
// another node becomes the target.
func (p *planner) planStep(g Group, r Replica) {
	gone := p.s.Gone(r)
	late := p.look.Silent[r.Node] >= patience
	if !gone && (p.frozen || !late && !p.leaves(g, r)) {
		return
	}
	if keep, ok := p.predecessor(g); ok && p.do(Revert{g.ID, g.Epoch, r.Serial, keep.Serial}) {
		return
	}
	if late && !gone && p.stays(g) {
		if node, ok := p.target(g, r, false); ok && !p.holds(g, node) {
			p.do(Replace{g.ID, g.Epoch, r.Serial, node})
		}
		return
	}
	p.mend(g, r)
}

// predecessor returns the replica that the one which joins is to replace, if there
// is no doubt which it is, and its node is there and not to be left.
func (p *planner) predecessor(g Group) (Replica, bool) {
	var found []Replica
	for _, r := range g.Replicas {
		if r.Role == Leaving {
			found = append(found, r)
		}
	}
	if len(found) != 1 || p.s.Gone(found[0]) || !p.alive(found[0].Node) {
		return Replica{}, false
	}
	n, _ := p.s.Node(found[0].Node)
	return found[0], n.member()
}

// holds says whether the present process of a node has a replica of g that leaves.
func (p *planner) holds(g Group, node string) bool {
	for _, r := range g.Replicas {
		if r.Node == node && !p.s.Gone(r) {
			return true
		}
	}
	return false
}
