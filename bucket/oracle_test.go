package bucket

import (
	"math"
	"math/big"
	"slices"
)

// oracle is a bucket of any algorithm in rational numbers and whole lists. It
// knows nothing of levels, lists of records or closed formulas for windows: it
// asks itself at other times.
type oracle struct {
	limit  Limit
	key    Key
	at     int64
	level  *big.Rat // tokens, or backlog
	pinned bool     // full, but not fresh before thaw
	thaw   int64

	start     int64 // of the window
	cur, prev uint64
	entries   []oracleEntry // of a log, or permits
}

// oracleEntry is an entry of a log, or a permit with its deadline as time.
type oracleEntry struct {
	time  int64
	cost  uint64
	token uint64
}

func newOracle(l Limit, now int64) *oracle { return newOracleOf(l, Key{1, 1}, now) }

func newOracleOf(l Limit, k Key, now int64) *oracle {
	o := &oracle{limit: l, key: k, at: now, level: new(big.Rat), thaw: math.MinInt64}
	if l.Algorithm == TokenBucket {
		o.level = rat(l.Capacity())
	}
	o.start = o.window(now)
	return o
}

func (o *oracle) clone() *oracle {
	c := *o
	c.level = new(big.Rat).Set(o.level)
	c.entries = slices.Clone(o.entries)
	return &c
}

func rat(n uint64) *big.Rat { return new(big.Rat).SetInt(new(big.Int).SetUint64(n)) }

// gained is what ns of time give: rate × time.
func gained(l Limit, ns int64) *big.Rat {
	n := new(big.Int).Mul(new(big.Int).SetUint64(l.Amount), big.NewInt(ns))
	return new(big.Rat).SetFrac(n, big.NewInt(l.Window))
}

func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) }

// window is the start of the window of t.
func (o *oracle) window(t int64) int64 {
	w := big.NewInt(o.limit.Window)
	phase := new(big.Int).Mod(new(big.Int).SetUint64(o.key.Lo), w)
	into := new(big.Int).Sub(big.NewInt(t), phase)
	return t - into.Mod(into, w).Int64()
}

func (o *oracle) advance(now int64) {
	if now <= o.at {
		return
	}
	switch ns := now - o.at; o.limit.Algorithm { // times here are ≥ 0
	case TokenBucket:
		o.level.Add(o.level, gained(o.limit, ns))
		if c := rat(o.limit.Capacity()); o.level.Cmp(c) > 0 {
			o.level.Set(c)
		}
	case LeakyBucket:
		o.level.Sub(o.level, gained(o.limit, ns))
		if o.level.Sign() < 0 {
			o.level.SetInt64(0)
		}
	case FixedWindow, SlidingWindow:
		if s := o.window(now); s != o.start {
			o.prev = 0
			if s-o.start == o.limit.Window && o.limit.Algorithm == SlidingWindow {
				o.prev = o.cur
			}
			o.start, o.cur = s, 0
		}
	case SlidingLog:
		o.entries = slices.DeleteFunc(o.entries, func(e oracleEntry) bool { return now-e.time >= o.limit.Window })
	case Concurrency:
		o.entries = slices.DeleteFunc(o.entries, func(e oracleEntry) bool { return e.time <= now })
	}
	o.at = now
}

// used is what is missing of a fresh bucket, in whole tokens, rounded up.
func (o *oracle) used() uint64 {
	switch o.limit.Algorithm {
	case TokenBucket:
		missing := new(big.Rat).Sub(rat(o.limit.Capacity()), o.level)
		return new(big.Int).Neg(floor(missing.Neg(missing))).Uint64()
	case LeakyBucket:
		return new(big.Int).Neg(floor(new(big.Rat).Neg(o.level))).Uint64()
	case FixedWindow:
		return o.cur
	case SlidingWindow:
		view := big.NewRat(o.limit.Window-(o.at-o.start), o.limit.Window)
		return floor(view.Mul(view, rat(o.prev))).Uint64() + o.cur
	}
	n := uint64(0)
	for _, e := range o.entries {
		n += e.cost
	}
	return n
}

func (o *oracle) full() bool {
	if o.limit.Algorithm == LeakyBucket && o.limit.Amount == 0 && o.at >= o.thaw {
		return true
	}
	return o.used() == 0 && !(o.pinned && o.at < o.thaw)
}

func (o *oracle) remaining() uint64 {
	return o.limit.Capacity() - min(o.used(), o.limit.Capacity())
}

// wait is the least ns after which need is admitted.
func (o *oracle) wait(need uint64) int64 {
	switch o.limit.Algorithm {
	case TokenBucket:
		return o.timeFor(new(big.Rat).Sub(rat(need), o.level))
	case LeakyBucket:
		return o.timeFor(new(big.Rat).Add(new(big.Rat).Sub(rat(need), rat(o.limit.Capacity())), o.level))
	}
	return o.search(func(p *oracle) bool { return p.remaining() >= need })
}

// search is the least ns after which ok, which stays true once it is.
func (o *oracle) search(ok func(*oracle) bool) int64 {
	low, high := int64(-1), 3*int64(MaxWindow)
	for high-low > 1 {
		mid := low + (high-low)/2
		p := o.clone()
		if p.advance(later(o.at, mid)); ok(p) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// timeFor is the least ns in which so many tokens come in.
func (o *oracle) timeFor(missing *big.Rat) int64 {
	if missing.Sign() <= 0 {
		return 0
	}
	if o.limit.Amount == 0 {
		return math.MaxInt64
	}
	missing.Quo(missing, gained(o.limit, 1))
	ns := new(big.Int).Neg(floor(missing.Neg(missing)))
	if !ns.IsInt64() {
		return math.MaxInt64
	}
	return ns.Int64()
}

// weigh says how need tokens would be judged.
func (o *oracle) weigh(need uint64) (Reason, int64) {
	switch {
	case o.limit.Amount == 0:
		return ReasonNothingAllowed, -1
	case need > o.limit.Capacity():
		return ReasonCostExceedsCapacity, -1
	case o.remaining() < need:
		return ReasonRateLimited, o.wait(need)
	}
	return ReasonNone, 0
}

// spend charges cost and returns the delay of a leaky bucket.
func (o *oracle) spend(cost, token uint64) (delay int64) {
	switch o.limit.Algorithm {
	case TokenBucket:
		o.level.Sub(o.level, rat(cost))
	case LeakyBucket:
		delay = o.timeFor(new(big.Rat).Set(o.level))
		o.level.Add(o.level, rat(cost))
	case FixedWindow, SlidingWindow:
		o.cur += cost
	case SlidingLog:
		o.entries = append(o.entries, oracleEntry{time: o.at, cost: cost})
	case Concurrency:
		o.entries = append(o.entries, oracleEntry{time: o.at + o.limit.Window, cost: cost, token: token})
	}
	return delay
}

// giveBack returns cost that was charged at a time, for a permit if token is not 0.
func (o *oracle) giveBack(cost uint64, at int64, token uint64) {
	switch o.limit.Algorithm {
	case TokenBucket:
		if o.level.Add(o.level, rat(cost)); o.level.Cmp(rat(o.limit.Capacity())) > 0 {
			o.level = rat(o.limit.Capacity())
		}
	case LeakyBucket:
		if o.level.Sub(o.level, rat(cost)); o.level.Sign() < 0 {
			o.level = new(big.Rat)
		}
	case FixedWindow, SlidingWindow:
		if at >= o.start {
			o.cur -= min(cost, o.cur)
		} else if at >= o.start-o.limit.Window {
			o.prev -= min(cost, o.prev)
		}
	default:
		at = o.charged(at)
		for i := range o.entries {
			e := &o.entries[i]
			if token != 0 && e.token == token || o.limit.Algorithm == SlidingLog && e.time == at {
				n := min(cost, e.cost)
				e.cost -= n
				if cost -= n; cost == 0 {
					return
				}
			}
		}
	}
}

// charged is the time that a log has a charge under which was made at a time. A
// moment later another limit's use may have become the log's first entry.
func (o *oracle) charged(at int64) int64 {
	for _, e := range o.entries {
		if o.limit.Algorithm == SlidingLog && e.time >= at {
			if e.time <= o.limit.edge(at) {
				return e.time
			}
			break
		}
	}
	return at
}

// take judges and charges one take of cost at now, as Apply would alone.
func (o *oracle) take(rule Rule, now int64, cost uint64) Answer {
	o.advance(now)
	need := max(cost, 1)
	a := Answer{Rule: rule, Capacity: o.limit.Capacity()}
	a.Reason, a.RetryAfter = o.weigh(need)
	a.Allowed = a.Reason == ReasonNone
	if a.Allowed {
		a.Delay = o.spend(cost, 0)
	}
	o.fill(&a)
	return a
}

func (o *oracle) fill(a *Answer) {
	a.Remaining = o.remaining()
	switch {
	case o.limit.Algorithm == TokenBucket:
		a.ResetAfter = o.wait(o.limit.Capacity())
	case o.limit.Algorithm == LeakyBucket && o.limit.Amount == 0:
		if !o.full() {
			a.ResetAfter = o.thaw - o.at
		}
	case o.limit.Algorithm == LeakyBucket:
		a.ResetAfter = o.timeFor(new(big.Rat).Set(o.level))
	default:
		a.ResetAfter = o.search(func(p *oracle) bool { return p.used() == 0 })
	}
}
