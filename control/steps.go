package control

import (
	"slices"

	"github.com/ringlimit/ringlimit/api/fault"
)

func (c Replace) apply(s *State) (bool, error) {
	g, err := s.find(c.Group, c.Epoch)
	if err != nil {
		return false, err
	}
	old, ok := g.Replica(c.OldSerial)
	switch {
	case !g.Formed:
		return false, fault.New(fault.Conflict, "group %d has not formed yet", g.ID)
	case !ok || old.Role == Leaving:
		return false, fault.New(fault.Conflict, "group %d has no replica %d to replace", g.ID, c.OldSerial)
	}
	if _, ok := s.registered(c.Node); !ok {
		return false, fault.New(fault.NotFound, "node %q is not registered", c.Node)
	}
	if busy, ok := g.inFlight(); ok && old.Role != Joining {
		return false, fault.New(fault.Conflict, "replica %d of group %d is still %s: one step at a time", busy.Serial, g.ID, busy.Role)
	}
	if g.occupied(c.Node, old.Serial) {
		return false, fault.New(fault.Conflict, "node %q has a replica of group %d", c.Node, g.ID)
	}
	g.setRole(old.Serial, Leaving)
	g.Replicas = append(g.Replicas, s.replica(c.Node, Joining))
	s.Revision++
	return true, nil
}

// inFlight returns a replica whose step is not finished.
func (g Group) inFlight() (Replica, bool) {
	if r, ok := g.with(Joining); ok {
		return r, true
	}
	return g.with(Leaving)
}

// setRole changes one replica in a slice of its own.
func (g *Group) setRole(serial uint64, role Role) {
	g.Replicas = slices.Clone(g.Replicas)
	for i := range g.Replicas {
		if g.Replicas[i].Serial == serial {
			g.Replicas[i].Role = role
		}
	}
}

func (c Promoted) apply(s *State) (bool, error) {
	g, r, err := s.member(c.Group, c.Epoch, c.Serial)
	switch {
	case err != nil:
		return false, err
	case r.Role == Voter:
		return false, nil
	case r.Role != Joining:
		return false, fault.New(fault.Conflict, "replica %d of group %d is %s", c.Serial, g.ID, r.Role)
	}
	g.setRole(c.Serial, Voter)
	s.settleOwner(g)
	s.Revision++
	return true, nil
}

func (c Dropped) apply(s *State) (bool, error) {
	g, err := s.find(c.Group, c.Epoch)
	if err != nil {
		return false, err
	}
	r, ok := g.Replica(c.Serial)
	switch {
	case !ok && c.Serial != 0 && c.Serial < s.NextSerial:
		return false, nil // dropped before
	case !ok:
		return false, errNoReplica(c.Group, c.Serial)
	case r.Role != Leaving:
		return false, fault.New(fault.Conflict, "replica %d of group %d is %s, only a leaving one is dropped", c.Serial, g.ID, r.Role)
	}
	g.Replicas = slices.DeleteFunc(slices.Clone(g.Replicas), func(r Replica) bool { return r.Serial == c.Serial })
	s.Revision++
	return true, nil
}

func (c Miss) apply(s *State) (bool, error) {
	g, r, err := s.member(c.Group, c.Epoch, c.Serial)
	if err != nil {
		return false, err
	}
	_, here := s.registered(r.Node)
	switch {
	case r.Role == Missing:
		return false, nil
	case r.Role == Leaving || !g.Formed:
		return false, fault.New(fault.Conflict, "replica %d of group %d is %s, formed %v", c.Serial, g.ID, r.Role, g.Formed)
	case here:
		return false, fault.New(fault.Conflict, "node %q is registered, so replica %d of group %d can be replaced there", r.Node, c.Serial, g.ID)
	}
	g.setRole(c.Serial, Missing)
	s.settleOwner(g)
	s.Revision++
	return true, nil
}

// member returns a replica and its group.
func (s *State) member(group, epoch uint32, serial uint64) (*Group, Replica, error) {
	g, err := s.find(group, epoch)
	if err != nil {
		return nil, Replica{}, err
	}
	r, ok := g.Replica(serial)
	if !ok {
		return nil, Replica{}, errNoReplica(group, serial)
	}
	return g, r, nil
}

func errNoReplica(group uint32, serial uint64) error {
	return fault.New(fault.NotFound, "group %d has no replica %d", group, serial)
}

// Replaceable says whether a Replace of a replica would be accepted now.
func (g Group) Replaceable(serial uint64) bool {
	r, ok := g.Replica(serial)
	if !ok || !g.Formed || r.Role == Leaving {
		return false
	}
	_, busy := g.inFlight()
	return !busy || r.Role == Joining
}
