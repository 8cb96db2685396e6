package bucket

import (
	"math/big"
	"slices"
)

// change carries the bucket over to another limit at o.at.
func (o *oracle) change(l Limit, thaw int64) {
	old := *o
	switch {
	case old.full():
		*o = *newOracleOf(l, old.key, old.at)
	case l.Algorithm != old.limit.Algorithm:
		*o = *newOracleOf(l, old.key, old.at)
		o.use(old.used())
	default:
		o.limit = l
		o.keep(&old)
	}
	o.thaw = thaw
}

// use makes a fresh bucket one that n was used of.
func (o *oracle) use(n uint64) {
	o.pinned = o.limit.Algorithm == TokenBucket
	switch o.limit.Algorithm {
	case TokenBucket:
		o.level.Sub(o.level, rat(min(n, o.limit.Capacity())))
	case LeakyBucket:
		o.level = rat(n)
	case FixedWindow, SlidingWindow:
		o.cur = n
	case SlidingLog:
		o.entries = []oracleEntry{{time: o.at, cost: n}}
	case Concurrency:
		o.entries = []oracleEntry{{time: o.at + o.limit.Window, cost: n}}
	}
}

// keep carries over what another limit of the same algorithm left.
func (o *oracle) keep(old *oracle) {
	l, from := o.limit, old.limit
	switch l.Algorithm {
	case TokenBucket:
		o.pinned = old.pinned && o.at < old.thaw || l.Capacity() < from.Capacity()
		if o.level.Cmp(rat(l.Capacity())) >= 0 {
			o.level = rat(l.Capacity())
			return
		}
		o.level = roundedTo(o.level, l.Window, false)
		if from.Amount == 0 {
			o.level = new(big.Rat)
		}
	case LeakyBucket:
		if l.Amount == 0 || from.Amount == 0 {
			o.level = rat(old.used())
			return
		}
		o.level = roundedTo(o.level, l.Window, true)
	case FixedWindow, SlidingWindow:
		if l.Window != from.Window {
			o.start, o.prev, o.cur = o.window(o.at), 0, old.used()
		}
	case SlidingLog:
		o.entries = slices.DeleteFunc(o.entries, func(e oracleEntry) bool { return o.at-e.time >= l.Window })
	}
}

// roundedTo is r with its fraction in whole parts of window, down or up.
func roundedTo(r *big.Rat, window int64, up bool) *big.Rat {
	n := new(big.Rat).Mul(r, new(big.Rat).SetInt64(window))
	if up {
		return n.SetFrac(new(big.Int).Neg(floor(n.Neg(n))), big.NewInt(window))
	}
	return n.SetFrac(floor(n), big.NewInt(window))
}
