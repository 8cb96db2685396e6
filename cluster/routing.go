package cluster

import (
	"slices"
	"sync"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/control"
)

// routingCache is the newest routing for clients, and whom to tell when it changes.
type routingCache struct {
	mu     sync.Mutex // guards newest
	newest *pb.Routing
	news   signal
}

// changed drops the routing and wakes who waits for a new one.
func (c *routingCache) changed() {
	c.mu.Lock()
	c.newest = nil
	c.mu.Unlock()
	c.news.fire()
}

// RoutingChanged returns a channel that is closed at the next change of the routing.
func (n *Node) RoutingChanged() <-chan struct{} { return n.routing.news.wait() }

// reroutes says whether clients must be told of the step from a to b: moves that
// begin or are settled change no routing, and every policy change makes a state.
func reroutes(a, b *control.State) bool {
	if a.Revision != b.Revision || a.ClusterID != b.ClusterID || len(a.Nodes) != len(b.Nodes) || !slices.Equal(a.SlotGroup, b.SlotGroup) {
		return true
	}
	for i := range a.Nodes {
		if x, y := &a.Nodes[i], &b.Nodes[i]; x.Name != y.Name || x.GRPC != y.GRPC || x.Removed != y.Removed {
			return true
		}
	}
	return a.Policies != b.Policies && (a.Policies == nil || b.Policies == nil || !slices.Equal(a.Policies.Home, b.Policies.Home))
}

// Routing is where clients should send what; it is shared and never changed.
func (n *Node) Routing() *pb.Routing {
	c := &n.routing
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest == nil {
		c.newest = n.makeRouting()
	}
	return c.newest
}

func (n *Node) makeRouting() *pb.Routing {
	v := n.view.Load()
	if v == nil || v.state.ClusterID == "" {
		return &pb.Routing{}
	}
	s := v.state
	r := &pb.Routing{
		ClusterId: s.ClusterID, Revision: s.Revision, RoutingKey: s.RoutingKey,
		Slots: uint32(s.Slots), Home: s.Policies.Home, SlotGroups: s.SlotGroup,
	}
	for _, node := range s.Nodes {
		if !node.Removed {
			r.Nodes = append(r.Nodes, node.GRPC)
		}
	}
	for _, g := range s.Groups {
		route := &pb.GroupRoute{Group: g.ID, Epoch: g.Epoch}
		if c, ok := n.table.leader(g.ID); ok && c.epoch == g.Epoch && c.serving {
			if node, ok := s.Node(c.node); ok {
				route.Leader, route.Grpc, route.Term = c.node, node.GRPC, c.term
			}
		}
		r.Groups = append(r.Groups, route)
	}
	return r
}

// leadersChanged tells clients that a group has another leader, or none.
func (n *Node) leadersChanged() { n.routing.changed() }
