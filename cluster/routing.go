package cluster

import (
	"sync"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// routingCache is the newest routing for clients, and whom to tell when it changes.
type routingCache struct {
	mu     sync.Mutex // guards both
	newest *pb.Routing
	signal chan struct{} // closed at the next change; nil until somebody waits
}

// changed drops the routing and wakes who waits for a new one.
func (c *routingCache) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest = nil
	if c.signal != nil {
		close(c.signal)
		c.signal = nil
	}
}

// RoutingChanged returns a channel that is closed at the next change of the routing.
func (n *Node) RoutingChanged() <-chan struct{} {
	c := &n.routing
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.signal == nil {
		c.signal = make(chan struct{})
	}
	return c.signal
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
