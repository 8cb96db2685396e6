package client

import (
	"context"
	"math"

	"github.com/ringlimit/ringlimit/client/internal/fallback"
	"github.com/ringlimit/ringlimit/policy"
)

// expiring collects the calls that have waited for long enough, and finds when the
// next one has: those without a deadline of their own whose time is up, and those that
// the client decides without the cluster. Such calls cost no timer: the clock looks
// at all that is under way a few times per timeout.
type expiring struct {
	now       int64
	rules     *fallback.Rules // nil: only the cluster decides
	unreached bool
	due       []*call
	early     []*call // that the client decides
	next      int64   // client time; 0: none
}

// see looks at a call where it cannot be answered and used again meanwhile: in a
// place that is locked.
func (e *expiring) see(k *call) {
	if !k.live() {
		return
	}
	if k.timed && k.expires <= e.now {
		if k.settle(abandoned) {
			e.due = append(e.due, k)
		}
		return
	}
	if k.timed {
		e.soon(k.expires)
	}
	if e.rules == nil || k.began == 0 {
		return
	}
	if !e.unreached {
		if k.due <= e.now && !k.judged {
			e.judge(k)
		}
		if k.due > e.now {
			e.soon(k.due)
			return
		}
	}
	if k.settle(abandoned) {
		e.early = append(e.early, k)
	}
}

// judge finds when a call is due by its own policies. Until the least time that any
// policy waits that costs nothing, and by then most calls are answered.
func (e *expiring) judge(k *call) {
	k.judged, k.due = true, math.MaxInt64
	q := k.request.policyRequest()
	if q.Validate() != nil {
		return // a node will say so
	}
	if after := e.rules.After(q); after != policy.AfterDeadline {
		k.due = k.began + int64(after)
	}
}

func (e *expiring) soon(at int64) {
	if at < math.MaxInt64 && (e.next == 0 || at < e.next) {
		e.next = at
	}
}

// expire ends calls whose time is up and returns the time of the next; 0: none. mu is held.
func (c *Client) expire(now int64) (next int64) {
	e := expiring{now: now, rules: c.rules.Load(), unreached: c.unreached.Load()}
	for _, n := range c.order {
		n.expire(&e)
	}
	for _, g := range c.allGroups() {
		for _, k := range g.parked.calls {
			e.see(k)
		}
	}
	for _, d := range c.delayed {
		e.see(d.call)
	}
	for _, k := range e.due {
		c.end(k, c.outOfTime(k, context.DeadlineExceeded))
	}
	why := errOverdue
	if e.unreached {
		why = errUnreached
	}
	for _, k := range e.early {
		c.end(k, why)
	}
	return e.next
}

// end tells the caller of a call that was settled how it ended.
func (c *Client) end(k *call, err error) {
	k.err = err
	c.acks.end(k.ends())
	k.wake()
}

func (n *node) expire(e *expiring) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.flight {
		for _, k := range m.calls {
			e.see(k)
		}
	}
	for _, l := range n.lanes {
		for _, k := range l.queue {
			e.see(k)
		}
	}
}
