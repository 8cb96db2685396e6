package client

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// How often the nodes are asked for the routing while something is wrong, and
// how long an answer may take. Mostly a node's push is faster.
const (
	askEvery   = 100 * time.Millisecond
	askTimeout = 300 * time.Millisecond
)

// ask asks all nodes for the routing, unless that was done a moment ago. mu is held.
func (c *Client) ask(now int64) {
	if c.probing || c.isClosed || c.probed != 0 && now-c.probed < int64(askEvery) {
		return
	}
	c.probing, c.probed = true, max(now, 1)
	c.counts.probes.Add(1)
	nodes := append([]*node(nil), c.order...)
	c.running.Go(func() {
		c.askAll(nodes)
		c.mu.Lock()
		c.probing = false
		c.mu.Unlock()
	})
}

func (c *Client) askAll(nodes []*node) {
	ctx, cancel := context.WithTimeout(c.ctx, askTimeout)
	defer cancel()
	answered := make(chan struct{})
	for _, n := range nodes {
		c.running.Go(func() {
			defer func() { answered <- struct{}{} }()
			r, err := pb.NewLimiterClient(n.conn).GetRouting(ctx, &pb.GetRoutingRequest{})
			if err == nil {
				c.learn(r, n)
			} else if status.Code(err) == codes.DeadlineExceeded {
				n.cutSilent()
			}
		})
	}
	for range nodes {
		<-answered
	}
}

// lost is the error of takes in flight when a stream breaks.
func lost(n *node, why error) error {
	return fault.New(fault.OutcomeUnknown, "connection to %s lost: %v", n.addr, why)
}

// cutSilent gives up a stream that owes an answer, after the node did not even
// tell the routing: the process hangs or is out of reach. Its takes go elsewhere.
func (n *node) cutSilent() {
	before := n.client.now() - int64(silence)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.flight {
		if m.sent <= before && n.cut != nil {
			n.cut()
			return
		}
	}
}

// overdue says whether a message in flight was sent before a time, and returns
// the calls of such messages whose group has another leader now, with their
// attempt raised: the copies here no longer count, though an answer still does.
func (n *node) overdue(before int64) (found bool, left []*call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.flight {
		if m.sent > before {
			continue
		}
		found = true
		g := m.lane.group
		if g.lane.Load() == m.lane && g.term.Load() == m.term {
			continue
		}
		for i, k := range m.calls {
			// As long as m is in flight here, k is no other call than it was.
			if k.live() && k.attempt.CompareAndSwap(m.attempt[i], m.attempt[i]+1) {
				left = append(left, k)
			}
		}
	}
	return found, left
}
