package cluster

import (
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/control"
)

// readiness is what /readyz says. A node becomes ready once it has seen all its
// replicas promoted and every group it belongs to whole; from then on it stays
// ready while it can reach a leader, so that the restart of another node does not
// take this one out of rotation.
type readiness struct {
	mu   sync.Mutex // guards the rest
	born time.Time  // when the node was made; never changes
	once bool       // has been whole since its start
	why  string     // why not ready; empty: ready
}

func (r *readiness) state() (ready bool, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why == "", r.why
}

// observe judges again and tells gRPC health.
func (r *readiness) observe(n *Node) {
	r.mu.Lock()
	once := r.once
	r.mu.Unlock()
	var why string
	if !once {
		once, why = n.whole()
	}
	reach, lost := n.reachesLeaders()
	r.mu.Lock()
	r.once = r.once || once
	before := r.why
	switch {
	case n.draining.Load():
		r.why = "stopping"
	case !r.once:
		r.why = why
	case !reach:
		r.why = lost
	default:
		r.why = ""
	}
	now := r.why
	if now != before {
		n.server.SetServing(now == "") // under mu: a later judgement must not be overtaken
	}
	r.mu.Unlock()
	if now == before {
		return
	}
	if now == "" {
		n.log.Info("ready: this node serves", "grpc", n.self.advertise.GRPC, "http", n.self.advertise.HTTP)
	} else {
		n.log.Info("not ready", "because", now)
	}
}

// whole says whether all replicas of this node are promoted and all its groups
// have a leader and all their replicas, the control group its voters.
func (n *Node) whole() (ok bool, why string) {
	s := n.control.State()
	switch {
	case s.ClusterID == "":
		return false, n.alone()
	case !n.registered():
		return false, "not registered with the control group yet"
	case len(s.Groups) == 0:
		return false, "no placement yet: waiting for the expected nodes"
	}
	if slices.Contains(s.Owners(), n.self.name) && !slices.ContainsFunc(s.Groups, func(g control.Group) bool { return g.Owner == n.self.name }) {
		return false, "its group has yet to be made"
	}
	for _, g := range s.Groups {
		if !hasNode(g, n.self.name) {
			continue
		}
		if st := n.groupStatus(s, g); !st.Healthy {
			return false, "group not whole yet: " + st.Problem
		}
	}
	if why := n.votersMissing(s); why != "" {
		return false, why
	}
	return true, ""
}

// reachesLeaders says whether any group has a leader that this node reaches: one
// that is cut off reaches none, while a group between two leaders is no reason to
// take all nodes out of rotation.
func (n *Node) reachesLeaders() (ok bool, why string) {
	s := n.control.State()
	for _, g := range s.Groups {
		if _, led := n.groupLeader(s, g); led {
			return true, ""
		}
	}
	return false, "no group has a leader within reach"
}

func hasNode(g control.Group, name string) bool {
	for _, r := range g.Replicas {
		if r.Node == name {
			return true
		}
	}
	return false
}
