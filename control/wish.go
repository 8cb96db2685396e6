package control

import (
	"slices"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/ring"
)

// Wish is where slots shall be. It is computed by the proposer and stored, so
// that a new version of the ring's code moves nothing by itself.
type Wish struct {
	Groups []uint32 `json:"groups"` // that shall stay, ascending, of distinct owners; any other is to be dissolved
	Slots  []uint32 `json:"slots"`  // wished group of each slot, one of Groups
}

// Keeps says whether a group shall stay.
func (w *Wish) Keeps(group uint32) bool {
	_, ok := slices.BinarySearch(w.Groups, group)
	return ok
}

// Rebalance replaces the Wish. Its groups must have formed, and be owned by
// distinct nodes that shall own slots (State.Owners). Moves that are open go on;
// Plan cancels those which the new wish does not want.
type Rebalance struct {
	Wish Wish `json:"wish"`
}

func (Rebalance) kind() string { return "rebalance" }

// Members returns the names of the nodes that count for placement, sorted: the
// registered ones that are neither draining nor retired. The control leader
// notes when it changes, for Look.Quiet.
func (s *State) Members() []string {
	var names []string
	for _, n := range s.Nodes {
		if n.member() {
			names = append(names, n.Name)
		}
	}
	return names
}

func (n Node) member() bool { return !n.Removed && !n.Draining && !n.Retired }

// Owners returns the members that shall own a group each, sorted: all, or as many
// as GroupCount says. Those that own one of the groups that stay do go on, so
// that a node more moves nothing then; rendezvous chooses the others.
func (s *State) Owners() []string {
	members := s.Members()
	most := ring.MaxNodes
	if s.GroupCount > 0 {
		most = min(most, s.GroupCount)
	}
	if len(members) <= most {
		return members
	}
	owns := make(map[string]bool)
	for _, g := range s.Groups {
		if s.keeps(g) {
			owns[g.Owner] = true
		}
	}
	members = ring.Rendezvous(s.ClusterID, members)
	slices.SortStableFunc(members, func(a, b string) int {
		switch {
		case owns[a] == owns[b]:
			return 0
		case owns[a]:
			return -1
		}
		return 1
	})
	members = members[:most]
	slices.Sort(members)
	return members
}

// keeps says whether a group is among those that share the slots by the present
// wish; before there is one, those of the first placement do.
func (s *State) keeps(g Group) bool {
	if s.Wish == nil {
		return !g.Added
	}
	return s.Wish.Keeps(g.ID)
}

func (c Rebalance) apply(s *State) (bool, error) {
	w := c.Wish
	if !s.Placed() || len(w.Slots) != s.Slots {
		return false, fault.Field("wish.slots", "%d, want %d after the first placement", len(w.Slots), s.Slots)
	}
	if err := w.check(s); err != nil {
		return false, fault.Field("wish", "%v", err)
	}
	owners := s.Owners()
	for _, id := range w.Groups {
		g, _ := s.Group(id)
		if _, ok := slices.BinarySearch(owners, g.Owner); !ok || !g.Formed {
			return false, fault.New(fault.Conflict, "group %d of %s may not stay: formed %v, owner wished for %v", id, g.Owner, g.Formed, ok)
		}
		owners = slices.DeleteFunc(owners, func(name string) bool { return name == g.Owner })
	}
	if s.Wish != nil && slices.Equal(s.Wish.Groups, w.Groups) && slices.Equal(s.Wish.Slots, w.Slots) {
		return false, nil
	}
	s.Wish = &w
	return true, nil
}
