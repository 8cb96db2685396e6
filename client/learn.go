package client

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/status"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/route"
)

// view is the newest placement the client knows.
type view struct {
	cluster  string
	revision uint64
	nodes    []string
}

// maxEager is how many nodes a client connects to before it needs them. Of a larger cluster
// it connects to the first by address, beside those that it was given and the leaders: all
// clients ask the same ones how many clients there are, also if some of them are gone.
const (
	maxEager    = 16
	alwaysEager = 2*prepareNodes - 1
)

// node returns the node at addr, starting it if it is new. mu is held.
func (c *Client) node(addr string, seed bool) (*node, error) {
	if n := c.nodes[addr]; n != nil {
		n.seed = n.seed || seed
		return n, nil
	}
	if c.isClosed {
		return nil, errClosed
	}
	n, err := c.newNode(addr, seed)
	if err != nil {
		return nil, err
	}
	c.nodes[addr] = n
	c.order = append(c.order, n)
	return n, nil
}

// learn takes over what is newer in a routing: the placement by its revision,
// each group's leader by epoch and term. A client never goes back.
func (c *Client) learn(r *pb.Routing, from *node) {
	hash, ok := route.New(r.GetRoutingKey(), int(r.GetSlots()))
	if !ok || len(r.GetSlotGroups()) != int(r.GetSlots()) {
		return // the node knows no placement yet
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.isClosed:
		return
	case c.view.cluster == "":
		c.view.cluster = r.GetClusterId()
	case c.view.cluster != r.GetClusterId():
		c.options.logger.Warn("ringlimit: a node of another cluster is not used", "node", from.addr, "cluster", r.GetClusterId(), "want", c.view.cluster)
		return
	}
	moved := r.GetRevision() > c.view.revision || c.table.Load() == nil
	if moved {
		c.learnPlacement(r, hash)
	}
	for _, gr := range r.GetGroups() {
		c.learnLeader(gr)
	}
	if moved {
		c.placeParked()
		c.retire()
	}
}

// placeParked looks anew where waiting calls belong.
func (c *Client) placeParked() {
	for i := range c.delayed {
		if c.delayed[i].call.moved > 0 {
			c.delayed[i].at = 0
		}
	}
	c.wakeClock()
	for _, g := range c.allGroups() {
		for _, k := range g.parked.take() {
			c.place(k)
		}
	}
}

func (c *Client) learnPlacement(r *pb.Routing, hash route.Hash) {
	t := &table{hash: hash, home: r.GetHome(), slots: make([]*group, len(r.GetSlotGroups()))}
	for slot, id := range r.GetSlotGroups() {
		t.slots[slot] = c.group(id)
	}
	c.view.revision, c.view.nodes = r.GetRevision(), r.GetNodes()
	c.table.Store(t)
	eager := slices.Sorted(slices.Values(c.view.nodes))
	if len(eager) > maxEager {
		eager = eager[:alwaysEager]
	}
	for _, addr := range eager {
		_, _ = c.node(addr, false) // a bad address is met again when it is needed
	}
}

// retire lets go of nodes that have left.
func (c *Client) retire() {
	for addr, n := range c.nodes {
		if n.seed || slices.Contains(c.view.nodes, addr) || c.leads(addr) {
			continue
		}
		delete(c.nodes, addr)
		c.order = slices.DeleteFunc(c.order, func(o *node) bool { return o == n })
		n.cancel()
	}
	c.judgeReach()
}

func (c *Client) leads(addr string) bool {
	for g := range maps.Values(c.groups) {
		if g.leader == addr {
			return true
		}
	}
	return false
}

func (c *Client) group(id uint32) *group {
	g := c.groups[id]
	if g == nil {
		g = &group{id: id}
		c.groups[id] = g
		c.aim(g)
	}
	return g
}

func (c *Client) learnLeader(r *pb.GroupRoute) {
	g := c.group(r.GetGroup())
	epoch, term := g.epoch.Load(), g.term.Load()
	newer := r.GetEpoch() > epoch || r.GetEpoch() == epoch && r.GetTerm() > term
	same := r.GetEpoch() == epoch && r.GetTerm() == term
	switch {
	case newer:
	case same && r.GetGrpc() != "" && r.GetGrpc() != g.leader && (g.leader == "" || g.hinted && g.down.Load()):
	default:
		return
	}
	g.epoch.Store(r.GetEpoch())
	g.term.Store(r.GetTerm())
	g.leader, g.hinted = r.GetGrpc(), false
	if g.leader != "" {
		_, _ = c.node(g.leader, false)
		c.release(g)
		c.wakeClock() // takes at a silent old leader go over now
		return
	}
	c.aim(g)
}

// nodeFound uses a node whose stream has opened.
func (c *Client) nodeFound(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastLoss = nil
	n.refuses = false
	c.judgeReach()
	select {
	case c.found <- struct{}{}:
	default:
	}
	if n.missed {
		n.missed = false
		c.options.logger.Info("ringlimit: node found again", "node", n.addr)
	}
	for _, g := range c.allGroups() {
		was := g.lane.Load()
		if l := c.aim(g); l != was && l != nil {
			c.release(g)
		}
	}
}

// nodeLost treats all that was on its way to a node whose stream has broken.
func (c *Client) nodeLost(n *node, why error) {
	was, flight, queued := n.fall()
	c.mu.Lock()
	if why != nil && n.ctx.Err() == nil && !c.reached() {
		c.lastLoss = fmt.Errorf("%s: %s", n.addr, status.Convert(why).Message())
	}
	if was && n.ctx.Err() == nil {
		n.missed = true
		c.options.logger.Info("ringlimit: node lost", "node", n.addr, "error", why)
	}
	for _, g := range c.allGroups() {
		if l := g.lane.Load(); l != nil && l.node == n {
			c.aim(g)
		}
	}
	for _, k := range queued {
		c.place(k)
	}
	c.mu.Unlock()
	err := lost(n, why)
	for _, m := range flight {
		for i, k := range m.calls {
			c.failed(k, m.attempt[i], m, err)
		}
	}
}

// reached says whether any node is up. mu is held.
func (c *Client) reached() bool {
	return slices.ContainsFunc(c.order, (*node).isUp)
}

func (c *Client) allGroups() []*group {
	all := make([]*group, 0, len(c.groups)+1)
	for _, g := range c.groups {
		all = append(all, g)
	}
	return append(all, c.nowhere)
}
