package client

import (
	"errors"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// How redirects and retries are spaced.
const (
	freeRedirects = 3 // at once; later ones wait a little
	redirectPause = 20 * time.Millisecond
	busyPause     = 10 * time.Millisecond // the first, at most; doubling
)

// place puts a live call where it belongs now: in a lane, or parked. mu is held.
func (c *Client) place(k *call) {
	switch {
	case c.isClosed:
		c.fail(k, errClosed)
		return
	case !k.live():
		return
	}
	if k.slot >= 0 {
		k.group = c.table.Load().slots[k.slot]
	}
	g := k.group
	if via := k.via; via != nil {
		k.via = nil
		if via.lane(g).put(k, false) {
			return
		}
	}
	if !g.down.Load() {
		if l := g.lane.Load(); l != nil && l.put(k, false) {
			return
		}
		if l := c.aim(g); l != nil && l.put(k, false) {
			return
		}
	}
	c.park(k)
}

func (c *Client) park(k *call) {
	c.counts.parked.Add(1)
	k.group.parked.add(k)
	c.wakeClock()
}

// fail ends a call with an error. mu is held.
func (c *Client) fail(k *call, err error) {
	if k.settle(abandoned) {
		k.refused = err
		c.end(k, honest(k.unknown, err))
	}
}

func (c *Client) failAll(calls []*call, err error) {
	for _, k := range calls {
		c.fail(k, err)
	}
}

// failed treats one copy of a call that came back without a decision.
func (c *Client) failed(k *call, attempt uint32, m *message, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !k.live() || k.attempt.Load() != attempt {
		return // given up, or a newer copy is on its way
	}
	var e *fault.Error
	if !errors.As(err, &e) {
		c.fail(k, err)
		return
	}
	k.cause = err
	k.unknown = k.unknown || mayHaveHappened(err)
	switch e.Kind {
	case fault.NotLeader:
		c.redirect(k, m, e.Leader)
	case fault.Busy:
		c.retryBusy(k, err)
	case fault.NotHeld:
		c.retryElsewhere(k)
	case fault.NoLeader, fault.NotReady, fault.Unavailable, fault.OutcomeUnknown, fault.Deadline:
		c.outage(k, m) // the node's deadline is not the caller's
	default:
		c.fail(k, err)
	}
}

// redirect follows a hint to the leader. A hint that leads nowhere is an outage:
// the old leader's death has not got about yet.
func (c *Client) redirect(k *call, m *message, hint *pb.LeaderHint) {
	addr := hint.GetGrpc()
	known := c.nodes[addr]
	if addr == "" || addr == m.lane.node.addr || known != nil && !known.isUp() {
		c.outage(k, m)
		return
	}
	n, err := c.node(addr, false)
	if err != nil {
		c.outage(k, m)
		return
	}
	c.counts.redirects.Add(1)
	g := k.group
	if !g.nowhere && hint.GetGroup() == g.id && hint.GetEpoch() >= g.epoch.Load() && g.lane.Load() == m.lane && g.term.Load() == m.term {
		g.leader, g.hinted = addr, true
		c.release(g)
	}
	k.via = n
	k.redirects++
	if k.redirects <= freeRedirects && n.isUp() {
		c.place(k)
		return
	}
	c.delay(k, jitter(int64(redirectPause)))
}

// retryBusy asks the same leader again later, if the budget allows. That a copy was
// refused says nothing about those before it.
func (c *Client) retryBusy(k *call, err error) {
	if !c.budget.spend() {
		c.fail(k, err)
		return
	}
	c.counts.retries.Add(1)
	c.delay(k, fullJitter(busyPause, k.busy))
	k.busy++
}

// retryElsewhere waits for the routing that says where the call's slot has gone. The
// group is well otherwise. A slot is on its way for some ms, and nothing tells when
// the new group has it after its routing is there, so the first tries come soon.
func (c *Client) retryElsewhere(k *call) {
	c.counts.retries.Add(1)
	c.delay(k, jitter(min(int64(leastPause)<<min(k.moved/4, 4), int64(mostPause))))
	k.moved++
	c.ask(c.now())
}

// outage keeps a call for the next leader. One parked call of the group tries
// now and then whether the present one has recovered.
func (c *Client) outage(k *call, m *message) {
	g := k.group
	c.counts.retries.Add(1)
	if !g.nowhere && (g.lane.Load() != m.lane || g.term.Load() != m.term) {
		c.place(k) // there is a new leader already
		return
	}
	if g.lane.Load() == m.lane && !g.down.Load() {
		g.down.Store(true)
		g.probe.begin(c.now())
		c.turn++ // where any node will do, not this one again
		c.aim(g)
	}
	c.park(k)
}

// recovered is called after a decision by a group that was down.
func (c *Client) recovered(g *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(g)
}

// release sends what is parked. mu is held.
func (c *Client) release(g *group) {
	g.down.Store(false)
	if c.aim(g) == nil {
		return
	}
	for _, k := range g.parked.take() {
		c.place(k)
	}
}

// aim chooses the lane of a group, its leader's or, while that cannot be
// reached, any node's, which will forward; and moves what waits in the old one.
// nil: no node is up. mu is held.
func (c *Client) aim(g *group) *lane {
	old := g.lane.Load()
	l := c.choose(g, old)
	if l == old {
		return l
	}
	g.lane.Store(l)
	if old == nil {
		return l
	}
	for _, k := range old.take() {
		c.place(k)
	}
	return l
}

func (c *Client) choose(g *group, old *lane) *lane {
	if n := c.nodes[g.leader]; n != nil && n.isUp() {
		return n.lane(g)
	}
	for i := range c.order {
		if n := c.order[(c.turn+i)%len(c.order)]; n.isUp() {
			return n.lane(g)
		}
	}
	return nil
}
