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
	if len(n.overdue(n.client.now()-int64(silence))) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut != nil {
		n.cut()
	}
}

// overdue returns the messages in flight that were sent before a time. They
// stay in flight: the answers may yet come.
func (n *node) overdue(before int64) []*message {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*message
	for _, m := range n.flight {
		if m.sent <= before {
			all = append(all, &message{lane: m.lane, term: m.term, calls: append([]*call(nil), m.calls...), attempt: append([]uint32(nil), m.attempt...)})
		}
	}
	return all
}
