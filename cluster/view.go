package cluster

import (
	"maps"

	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/cluster/intake"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/policy"
)

// view is everything a decision reads, frozen: the control state, its policies
// compiled, and the replicas that run here by group id. A new one replaces it.
type view struct {
	state    *control.State
	index    *policy.Index
	replicas map[uint32]*group.Replica // of the current epoch only
	onTheWay map[uint16]bool           // slots of open moves
	queues   map[uint32]*intake.Queue  // what waits for each group; they outlive the view
	unread   string                    // a node that cannot read leases, "": all can
}

// refreshView makes a new view when the control state or the replicas changed.
func (n *Node) refreshView() {
	s := n.control.State()
	old := n.view.Load()
	v := &view{
		state: s, replicas: make(map[uint32]*group.Replica), onTheWay: onTheWay(s),
		queues: queues(old, s), unread: cannotLease(s),
	}
	for _, x := range n.hosts.all() {
		if g, ok := s.Group(x.parsed.Group); ok && g.Epoch == x.parsed.Epoch && member(g, x.parsed.Serial) {
			v.replicas[g.ID] = x.replica
		}
	}
	switch {
	case old != nil && old.index != nil && old.state.Policies == s.Policies:
		v.index = old.index
	case s.Policies != nil:
		index, err := compile(old, s)
		if err != nil {
			// The set was validated before it was agreed on: a node that cannot
			// read it must not decide by an older one.
			n.fail(err)
			return
		}
		v.index = index
	}
	n.view.Store(v)
	if old == nil || old.state != s || !maps.Equal(old.replicas, v.replicas) {
		n.views.fire()
	}
	if old == nil || reroutes(old.state, s) {
		n.routing.changed()
	}
}

// queues are those of the view before, and one for each group that is new.
func queues(old *view, s *control.State) map[uint32]*intake.Queue {
	list := make(map[uint32]*intake.Queue, len(s.Groups))
	for i := range s.Groups {
		id := s.Groups[i].ID
		if old != nil {
			list[id] = old.queues[id]
		}
		if list[id] == nil {
			list[id] = intake.New(maxWaiting)
		}
	}
	return list
}

// compile makes the index of the agreed policies, from the last one if there is one.
func compile(old *view, s *control.State) (*policy.Index, error) {
	if old != nil && old.index != nil {
		return old.index.Update(s.Policies)
	}
	return policy.Compile(s.Policies, keys(s))
}

func member(g control.Group, serial uint64) bool {
	for _, r := range g.Replicas {
		if r.Serial == serial {
			return true
		}
	}
	return false
}

func keys(s *control.State) policy.Keys {
	k := policy.Keys{Slots: s.Slots}
	copy(k.Secret[:], s.Secret)
	copy(k.Routing[:], s.RoutingKey)
	return k
}

// behind says whether decisions still go by older policies than those of s.
func (v *view) behind(s *control.State) bool {
	return v == nil || v.state.PolicyVersion < s.PolicyVersion
}

// placed says whether requests can be decided at all.
func (v *view) placed() bool {
	return v != nil && v.index != nil && len(v.state.Groups) > 0
}
