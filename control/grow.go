package control

import (
	"math"
	"slices"

	"github.com/ringlimit/ringlimit/api/fault"
)

// AddGroup makes a group without slots for a node that shall own one and owns
// none. It forms like one of the first placement; then slots move in.
type AddGroup struct {
	Owner string   `json:"owner"`
	Nodes []string `json:"nodes"` // of its voters: the owner, and others up to the replication; all registered
}

// Dissolve ends a group that is not wished for, has no slots, and no open moves.
// Its replicas stop.
type Dissolve struct {
	Group uint32 `json:"group"`
	Epoch uint32 `json:"epoch"`
}

// AddReplica begins a step that gives a group one replica more, Joining, up to the replication.
type AddReplica struct {
	Group uint32 `json:"group"`
	Epoch uint32 `json:"epoch"`
	Node  string `json:"node"` // registered, without a place in the group
}

// DropReplica begins a step that takes a replica from a group that has more than
// the replication: it is Leaving, and no other takes its place.
type DropReplica struct {
	Group  uint32 `json:"group"`
	Epoch  uint32 `json:"epoch"`
	Serial uint64 `json:"serial"`
}

func (AddGroup) kind() string    { return "add_group" }
func (Dissolve) kind() string    { return "dissolve" }
func (AddReplica) kind() string  { return "add_replica" }
func (DropReplica) kind() string { return "drop_replica" }

func (c AddGroup) apply(s *State) (bool, error) {
	switch {
	case !s.Placed():
		return false, fault.New(fault.NotReady, "there is no placement yet")
	case !slices.Contains(s.Owners(), c.Owner):
		return false, fault.New(fault.Conflict, "node %q shall not own a group", c.Owner)
	case len(c.Nodes) == 0 || c.Nodes[0] != c.Owner:
		return false, fault.Field("nodes", "%q, want the owner first", c.Nodes)
	}
	if err := s.checkVoters(c.Nodes); err != nil {
		return false, err
	}
	for _, g := range s.Groups {
		if g.Owner == c.Owner {
			return false, fault.New(fault.Conflict, "node %q owns group %d", c.Owner, g.ID)
		}
	}
	id := s.nextGroup()
	if id == math.MaxUint32 {
		return false, fault.New(fault.Conflict, "there are no group ids left")
	}
	s.NextGroup = id + 1
	s.Groups = append(s.Groups, Group{ID: id, Epoch: max(1, s.FirstEpoch), Owner: c.Owner, Added: true, Replicas: s.fresh(c.Nodes)})
	s.Revision++
	return true, nil
}

// nextGroup returns an id above that of all groups that are or were; the last one
// there is is never given out.
func (s *State) nextGroup() uint32 {
	last := s.Groups[len(s.Groups)-1].ID
	return max(s.NextGroup, last+min(1, math.MaxUint32-last))
}

// checkVoters judges the nodes that shall hold fresh voters.
func (s *State) checkVoters(nodes []string) error {
	if len(nodes) < 1 || len(nodes) > s.Replication {
		return fault.Field("nodes", "%d, want 1 … %d", len(nodes), s.Replication)
	}
	for i, name := range nodes {
		if _, ok := s.registered(name); !ok {
			return fault.New(fault.NotFound, "node %q is not registered", name)
		}
		if slices.Contains(nodes[:i], name) {
			return fault.Field("nodes", "%q twice", name)
		}
	}
	return nil
}

func (c Dissolve) apply(s *State) (bool, error) {
	if _, ok := s.group(c.Group); !ok && c.Group < s.NextGroup {
		return false, nil // dissolved before
	}
	g, err := s.find(c.Group, c.Epoch)
	switch {
	case err != nil:
		return false, err
	case s.Wish == nil || s.Wish.Keeps(g.ID) || slices.Contains(s.Wish.Slots, g.ID):
		return false, fault.New(fault.Conflict, "group %d is wished for", g.ID)
	case s.CountSlots(g.ID) > 0:
		return false, fault.New(fault.Conflict, "group %d has %d slots", g.ID, s.CountSlots(g.ID))
	case len(s.MovesOf(g.ID)) > 0:
		return false, fault.New(fault.Conflict, "group %d has open moves", g.ID)
	}
	s.NextGroup = s.nextGroup()
	i, _ := s.group(c.Group)
	s.Groups = slices.Delete(s.Groups, i, i+1)
	s.Revision++
	return true, nil
}

func (c AddReplica) apply(s *State) (bool, error) {
	g, err := s.find(c.Group, c.Epoch)
	if err != nil {
		return false, err
	}
	if err := g.idle(); err != nil {
		return false, err
	}
	if _, ok := s.registered(c.Node); !ok {
		return false, fault.New(fault.NotFound, "node %q is not registered", c.Node)
	}
	if len(g.Replicas) >= s.Replication || g.occupied(c.Node, 0) {
		return false, fault.New(fault.Conflict, "group %d has %d replicas of %d, one on node %q: %v",
			g.ID, len(g.Replicas), s.Replication, c.Node, g.occupied(c.Node, 0))
	}
	g.Replicas = append(slices.Clone(g.Replicas), s.replica(c.Node, Joining))
	s.Revision++
	return true, nil
}

func (c DropReplica) apply(s *State) (bool, error) {
	g, r, err := s.member(c.Group, c.Epoch, c.Serial)
	if err != nil {
		return false, err
	}
	if r.Role == Leaving {
		return false, nil
	}
	if err := g.idle(); err != nil {
		return false, err
	}
	if len(g.Replicas) <= s.Replication || g.voters() == 1 && r.Role == Voter {
		return false, fault.New(fault.Conflict, "group %d has %d replicas of %d, %d of them voters", g.ID, len(g.Replicas), s.Replication, g.voters())
	}
	g.setRole(c.Serial, Leaving)
	s.settleOwner(g)
	s.Revision++
	return true, nil
}

// idle says why no step of a group may begin.
func (g Group) idle() error {
	if !g.Formed {
		return fault.New(fault.Conflict, "group %d has not formed yet", g.ID)
	}
	if busy, ok := g.inFlight(); ok {
		return fault.New(fault.Conflict, "replica %d of group %d is still %s: one step at a time", busy.Serial, g.ID, busy.Role)
	}
	return nil
}

func (g Group) voters() int {
	n := 0
	for _, r := range g.Replicas {
		if r.Role == Voter {
			n++
		}
	}
	return n
}
