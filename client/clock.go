package client

import (
	"time"
)

// delayed is a call that waits for a moment.
type delayed struct {
	call *call
	at   int64 // client time
}

// A node that leaves a message unanswered for silence is suspected: the client
// asks the others who leads now.
const silence = 400 * time.Millisecond

// clock is the one goroutine that acts when time has passed. It sleeps until
// there is something to watch.
func (c *Client) clock() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next := c.tick()
		if next < 0 {
			c.asleep.Store(true)
			if c.flying.Load() > 0 {
				c.asleep.Store(false)
				continue
			}
			select {
			case <-c.nudge:
			case <-c.ctx.Done():
				return
			}
			c.asleep.Store(false)
			continue
		}
		timer.Reset(max(next, time.Millisecond))
		select {
		case <-timer.C:
		case <-c.nudge:
		case <-c.ctx.Done():
			return
		}
	}
}

// watch makes sure that the clock runs while messages are in flight.
func (c *Client) watch() {
	if c.asleep.Load() && c.asleep.CompareAndSwap(true, false) {
		c.wakeClock()
	}
}

func (c *Client) wakeClock() {
	select {
	case c.nudge <- struct{}{}:
	default:
	}
}

// delay places a call again after d ns. mu is held.
func (c *Client) delay(k *call, d int64) {
	c.delayed = append(c.delayed, delayed{k, c.now() + d})
	c.wakeClock()
}

// tick does what is due and returns the time until it should be called again;
// negative: not before something happens.
func (c *Client) tick() time.Duration {
	silent := c.moveFromSilent()
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	expiry := c.expire(now)
	next := int64(-1)
	sooner := func(at int64) {
		if d := max(at-now, 0); next < 0 || d < next {
			next = d
		}
	}
	if expiry > 0 {
		sooner(expiry)
	}
	if c.flying.Load() > 0 {
		look := min(silence, c.options.timeout) / 4
		if rules := c.rules.Load(); rules != nil {
			look = min(look, rules.Soonest()) // so that no call is found later than it is due
		}
		sooner(now + int64(look))
	}
	c.placeDelayed(now, sooner)
	for _, g := range c.allGroups() {
		if !g.down.Load() && len(g.parked.calls) == 0 {
			continue
		}
		silent = true
		if g.probe.until <= now {
			c.tryGroup(g, now)
		}
		if len(g.parked.calls) > 0 {
			sooner(g.probe.until)
		}
	}
	if silent {
		c.ask(now)
	}
	return time.Duration(next)
}

// tryGroup lets one parked call find out whether its group decides again.
func (c *Client) tryGroup(g *group, now int64) {
	if g.probe.length == 0 {
		g.probe.begin(now)
	} else {
		g.probe.next(now)
	}
	l := c.aim(g)
	if l == nil {
		return
	}
	if k := g.parked.next(); k != nil && !l.put(k, false) {
		g.parked.add(k)
	}
}

func (c *Client) placeDelayed(now int64, sooner func(int64)) {
	due := c.delayed
	c.delayed = nil
	for _, d := range due {
		switch {
		case !d.call.live():
		case d.at <= now:
			c.place(d.call)
		default:
			c.delayed = append(c.delayed, d)
			sooner(d.at)
		}
	}
}

// moveFromSilent sends takes that a silent node holds to the leader that has
// followed it, if there is one. It says whether any node is silent.
func (c *Client) moveFromSilent() (silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.order {
		overdue, left := n.overdue(c.now() - int64(silence))
		silent = silent || overdue
		c.counts.retries.Add(uint64(len(left)))
		for _, k := range left {
			k.unknown = true
			c.place(k)
		}
	}
	return silent
}
