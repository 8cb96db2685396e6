package control

import (
	"slices"
	"strconv"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/ring"
)

// replication returns how many replicas each group gets among n nodes.
func replication(n int) int {
	if n >= 3 {
		return 3
	}
	return 1
}

func (Place) apply(s *State) (bool, error) {
	nodes := s.Registered()
	switch {
	case s.ClusterID == "":
		return false, errNotFounded()
	case s.Placed():
		return false, nil
	case len(nodes) < s.Expect || len(nodes) == 0:
		return false, fault.New(fault.NotReady, "%d nodes are registered, the first placement waits for %d", len(nodes), s.Expect)
	}
	owners := nodes
	if s.GroupCount > 0 && s.GroupCount < len(nodes) {
		owners = ring.Rendezvous(s.ClusterID, nodes)[:s.GroupCount]
		slices.Sort(owners)
	}
	slots, err := ring.Plan(make([]string, s.Slots), owners)
	if err != nil {
		return false, fault.New(fault.Conflict, "no placement: %v", err)
	}
	s.Replication = replication(len(nodes))
	s.Groups = make([]Group, len(owners))
	for i, on := range ring.Spread(owners, nodes, s.Replication) {
		s.Groups[i] = Group{ID: uint32(i), Epoch: 1, Owner: on[0], Replicas: s.fresh(on)}
	}
	s.SlotGroup = make([]uint32, s.Slots)
	for slot, owner := range slots {
		g, _ := slices.BinarySearch(owners, owner)
		s.SlotGroup[slot] = uint32(g)
	}
	s.restored()
	s.Revision++
	return true, nil
}

// fresh returns new voters on the present incarnations of nodes, all registered.
func (s *State) fresh(nodes []string) []Replica {
	out := make([]Replica, len(nodes))
	for i, name := range nodes {
		out[i] = s.replica(name, Voter)
	}
	return out
}

// replica returns a replica with the next serial.
func (s *State) replica(node string, role Role) Replica {
	n, _ := s.Node(node)
	r := Replica{Serial: s.NextSerial, Node: node, Incarnation: n.Incarnation, Role: role}
	s.NextSerial++
	return r
}

// find returns the group of a command, or why it may not be changed by it.
func (s *State) find(id, epoch uint32) (*Group, error) {
	i, ok := s.group(id)
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no group %d", id)
	}
	g := &s.Groups[i]
	if g.Epoch != epoch {
		return nil, fault.New(fault.Conflict, "group %d has epoch %d, not %d", id, g.Epoch, epoch)
	}
	return g, nil
}

func (c Form) apply(s *State) (bool, error) {
	g, err := s.find(c.Group, c.Epoch)
	if err != nil || g.Formed {
		return false, err
	}
	g.Formed = true
	s.Revision++
	return true, nil
}

func (c Reform) apply(s *State) (bool, error) {
	g, err := s.find(c.Group, c.Epoch)
	if err != nil {
		return false, err
	}
	if g.Formed {
		return false, fault.New(fault.Conflict, "group %d has formed; its state may not be given up", g.ID)
	}
	nodes := s.Members()
	if len(nodes) == 0 {
		nodes = s.Registered()
	}
	keep := func(name string) bool {
		return slices.ContainsFunc(g.Replicas, func(r Replica) bool { return r.Node == name })
	}
	var members []string // where it was, then where rendezvous says
	ranked := ring.Replicas(g.Owner, nodes, len(nodes)+1)
	for _, kept := range []bool{true, false} {
		for _, name := range ranked {
			if _, ok := s.registered(name); ok && keep(name) == kept {
				members = append(members, name)
			}
		}
	}
	if len(members) == 0 {
		return false, fault.New(fault.Conflict, "no node is left for group %d", g.ID)
	}
	g.Epoch++
	g.Replicas = s.fresh(members[:min(s.Replication, len(members))])
	s.settleOwner(g)
	s.Revision++
	return true, nil
}

// settleOwners settles the owner of every group.
func (s *State) settleOwners() {
	changed := false
	for g := range s.Groups {
		changed = s.settleOwner(&s.Groups[g]) || changed
	}
	if changed {
		s.Revision++
	}
}

// settleOwner gives a group another owner when the present one has no place in
// it, or is retired: the node of a voter that owns the fewest groups, rather one
// that does not drain. It says whether it did.
func (s *State) settleOwner(g *Group) bool {
	var voters []string
	for _, r := range g.Replicas {
		n, ok := s.registered(r.Node)
		if ok && !n.Retired && r.Node == g.Owner && (r.Role == Voter || r.Role == Joining) {
			return false
		}
		if ok && !n.Retired && r.Role == Voter {
			voters = append(voters, r.Node)
		}
	}
	var best string
	least := 2 * (len(s.Groups) + 1)
	for _, name := range ring.Rendezvous(groupKey(g.ID), voters) {
		owns := 0
		if n, _ := s.Node(name); n.Draining {
			owns = len(s.Groups) + 1
		}
		for _, other := range s.Groups {
			if other.Owner == name {
				owns++
			}
		}
		if owns < least {
			best, least = name, owns
		}
	}
	if best == "" || best == g.Owner {
		return false
	}
	g.Owner = best
	return true
}

// groupKey is a group in rendezvous.
func groupKey(id uint32) string { return strconv.FormatUint(uint64(id), 10) }
