package cluster

import (
	"sync"
	"time"
)

// controlLagAllowed is how long a node may take to apply what another has applied of
// the control group's log: it takes milliseconds, some seconds for a very large policy
// file, and longer only if its disk or its links fail it.
const controlLagAllowed = 5 * time.Second

// controlLag remembers which nodes are behind in the control group's log, and since
// when. A node whose disk was full follows again only once raft has tried again,
// which takes seconds: until then its vote is no help to anybody.
type controlLag struct {
	mu     sync.Mutex // guards the rest
	behind map[string]lag
}

// lag is the way that one process is behind.
type lag struct {
	incarnation string
	index       uint64    // that it has yet to apply
	since       time.Time // when others had
}

// applied is what one process has applied of the control group's log.
type applied struct {
	incarnation string
	index       uint64
}

// observe takes in what each node has applied, by name.
func (c *controlLag) observe(nodes map[string]applied, now time.Time) {
	var newest uint64
	for _, a := range nodes {
		newest = max(newest, a.index)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	behind := make(map[string]lag)
	for name, a := range nodes {
		l, ok := c.behind[name]
		if !ok || l.incarnation != a.incarnation || a.index >= l.index {
			l = lag{a.incarnation, newest, now}
		}
		if a.index < l.index {
			behind[name] = l
		}
	}
	c.behind = behind
}

// late says whether a node has been behind for longer than is allowed.
func (c *controlLag) late(name string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.behind[name]
	return ok && now.Sub(l.since) > controlLagAllowed
}

// observeControlLag compares what this node and those that answer have applied.
func (n *Node) observeControlLag(now time.Time) {
	nodes := map[string]applied{n.self.name: {n.self.incarnation, n.control.Applied()}}
	for _, node := range n.control.State().Nodes {
		if node.Name == n.self.name || !n.answers(node) {
			continue
		}
		if h, ok := n.table.last(node.Name); ok {
			nodes[node.Name] = applied{h.incarnation, h.digest.control}
		}
	}
	n.lag.observe(nodes, now)
}
