package client

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Sizes and times of leases. What a client holds of a key is what it needs for a short
// while: more would be taken from others, less would cost round trips.
const (
	leaseWorth = 100 * time.Millisecond // of its own demand, in one lease
	leaseAhead = leaseWorth / 2         // of it left when the next is asked for
	leastCalls = 4                      // that a lease would spare; with less demand the cluster is asked each time
	paceWindow = 25 * time.Millisecond  // over which demand is counted, at least
	leaseIdle  = 200 * time.Millisecond // without a call, and what is left is returned
	leasePause = 100 * time.Millisecond // at most, between a lease that was denied or failed and the next try
	strictTime = 5 * time.Second        // before the next try where the policies are not leased any more
	maxGrants  = 2                      // of one key: one that is spent and one that was asked for ahead
)

// holding is the leases of one key, and how much of it is wanted. It is told the time
// and knows no network: its methods say what is to be done.
type holding struct {
	request Request // of one unit; never changed
	key     string  // its encoding

	mu     sync.Mutex // guards what follows; held for arithmetic alone
	grants []grant    // oldest first, at most maxGrants, each with units left
	said   *granted   // the newest
	asking bool       // a lease is asked for
	pause  int64      // client time before which none is
	since  int64      // client time from which demand is counted
	calls  int64      // since then
	units  int64
	pace   pace
	last   int64 // client time of the newest call
}

// pace is demand: calls and units in a second.
type pace struct{ calls, units float64 }

// grant is what is left of one lease.
type grant struct {
	sequence uint64
	sent     int64 // client time before it was asked for
	until    int64 // client time from which it is void
	left     int64 // units
}

// granted is the answer that a lease came with, for the answers given from it.
type granted struct {
	decision Decision
	at       int64    // client time when it came
	unit     uint64   // what one unit costs, of the headline …
	units    []uint64 // … and of each of its Limits
}

// want spends cost units if they are held. ask is how many to ask for now, 0: none; the
// caller does, and tells refill or refuse. void are leases whose time is over.
func (h *holding) want(now, cost int64) (d Decision, ok bool, ask int64, void []grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	void = h.expire(now)
	h.count(now, cost)
	left := h.left()
	if left >= cost {
		left -= cost
		h.spend(cost)
		d, ok = h.said.answer(now, left), true
	}
	return d, ok, h.asks(now, left), void
}

// expire takes out the leases that are void at now.
func (h *holding) expire(now int64) (void []grant) {
	h.grants = slices.DeleteFunc(h.grants, func(g grant) bool {
		if g.until > now {
			return false
		}
		void = append(void, g)
		return true
	})
	return void
}

func (h *holding) left() (units int64) {
	for i := range h.grants {
		units += h.grants[i].left
	}
	return units
}

// spend takes units that are there, those that are void first.
func (h *holding) spend(units int64) {
	for i := range h.grants {
		n := min(units, h.grants[i].left)
		h.grants[i].left -= n
		units -= n
	}
}

// count notes a call in the pace, which follows demand within leaseWorth.
func (h *holding) count(now, cost int64) {
	if h.last = now; h.since == 0 {
		h.since = now
	}
	h.calls++
	h.units += cost
	gone := now - h.since
	if gone < int64(paceWindow) {
		return
	}
	weight := min(float64(gone)/float64(leaseWorth), 1)
	perSecond := float64(time.Second) / float64(gone)
	h.pace.calls += weight * (float64(h.calls)*perSecond - h.pace.calls)
	h.pace.units += weight * (float64(h.units)*perSecond - h.pace.units)
	h.since, h.calls, h.units = now, 0, 0
}

// inTime is how many of so many in a second are in d.
func inTime(perSecond float64, d time.Duration) int64 {
	return int64(math.Ceil(perSecond * d.Seconds()))
}

// asks says whether a lease is worth asking for at now, with so much left, and of how
// many units. Then it counts as asked for.
func (h *holding) asks(now, left int64) int64 {
	if h.asking || now < h.pause || len(h.grants) == maxGrants && h.grants[0].left > 0 {
		return 0
	}
	if inTime(h.pace.calls, leaseWorth) < leastCalls || left > inTime(h.pace.units, leaseAhead) {
		return 0
	}
	h.asking = true
	return min(inTime(h.pace.units, leaseWorth), maxUnits)
}

// refill takes a lease over that was asked for. What it returns is over: leases that are
// void, and the ones that are spent.
func (h *holding) refill(now int64, g grant, said *granted) (over []grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asking = false
	over = h.expire(now)
	over = append(over, h.spent()...)
	if g.until <= now || len(h.grants) == maxGrants {
		h.pause = now + int64(leasePause) // the next one may be no better
		return append(over, g)
	}
	h.grants, h.said = append(h.grants, g), said
	return over
}

// spent takes out the leases of which nothing is left.
func (h *holding) spent() (spent []grant) {
	h.grants = slices.DeleteFunc(h.grants, func(g grant) bool {
		if g.left > 0 {
			return false
		}
		spent = append(spent, g)
		return true
	})
	return spent
}

// refuse notes that none was granted, and that none is to be asked for in pause.
func (h *holding) refuse(now int64, pause time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asking = false
	h.pause = now + int64(pause)
}

// sweep takes out what is over, and, where nobody has called for leaseIdle or all is to
// go, what is to be returned. idle says that the key may be forgotten.
func (h *holding) sweep(now int64, all bool) (over, back []grant, idle bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	over = append(h.expire(now), h.spent()...)
	if all || now-h.last >= int64(leaseIdle) {
		back, h.grants = h.grants, nil
	}
	return over, back, len(h.grants) == 0 && !h.asking && now-h.last >= int64(holdingIdle)
}

// answer is a decision from a lease that came with g, with so many units left of all.
// It says what the cluster said then, less what was spent here.
func (g *granted) answer(now, left int64) Decision {
	d, gone := g.decision, time.Duration(now-g.at)
	d.lease(gone, uint64(left)*g.unit)
	if len(d.Limits) > 0 {
		d.Limits = slices.Clone(d.Limits)
		for i := range d.Limits {
			d.Limits[i].lease(gone, uint64(left)*g.units[i])
		}
	}
	return d
}

// lease brings an answer up to date: so old, and with so many tokens held here.
func (a *Answer) lease(old time.Duration, held uint64) {
	a.Remaining += held
	a.ResetAfter = max(a.ResetAfter-old, 0)
}
