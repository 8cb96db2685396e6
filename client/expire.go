package client

import "context"

// expiring collects the calls without a deadline of their own whose time is up,
// and finds when the next one's is. Such calls cost no timer: the clock looks
// at all that is under way a few times per timeout.
type expiring struct {
	now  int64
	due  []*call
	next int64 // client time; 0: none
}

// see looks at a call where it cannot be answered and used again meanwhile: in a
// place that is locked.
func (e *expiring) see(k *call) {
	switch {
	case !k.timed || !k.live():
	case k.expires > e.now:
		if e.next == 0 || k.expires < e.next {
			e.next = k.expires
		}
	case k.settle(abandoned):
		e.due = append(e.due, k)
	}
}

// expire ends calls whose time is up and returns the time of the next; 0: none. mu is held.
func (c *Client) expire(now int64) (next int64) {
	e := expiring{now: now}
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
		k.err = c.outOfTime(k, context.DeadlineExceeded)
		c.acks.end(k.seq)
		k.wake()
	}
	return e.next
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
