package bucket

import "math/bits"

// slidingWindow estimates the cost of the last window from two counters: of the
// window that began at last, a, and of the one before it, b, of which the part
// still in view counts. It takes the cost of that one as spread evenly: an
// approximation, a few per cent off.
type slidingWindow struct{ plain }

func (slidingWindow) blank(*Limit, int64) level { return level{} }

func (slidingWindow) view(x *site, l *Limit, now int64) level {
	window := uint64(l.Window)
	gone := uint64(now) - uint64(x.raw.last)
	switch {
	case x.raw.a|x.raw.b == 0 || gone >= 2*window:
		return level{last: x.windowStart(l, now)}
	case gone >= window:
		return level{last: x.raw.last + l.Window, b: x.raw.a}
	}
	return x.raw
}

// estimate is floor(b × part in view) + a; now is in v's window.
func (slidingWindow) estimate(l *Limit, v level, now int64) uint64 {
	if v.b == 0 {
		return uint64(v.a)
	}
	window := uint64(l.Window)
	hi, lo := bits.Mul64(uint64(v.b), window-(uint64(now)-uint64(v.last)))
	part, _ := bits.Div64(hi, lo, window) // ≤ v.b
	return part + uint64(v.a)
}

func (k slidingWindow) room(l *Limit, v level, now int64) uint64 {
	return less(l.Amount, k.estimate(l, v, now))
}

// until is the least ns after now at which the estimate is at most most.
func (k slidingWindow) until(l *Limit, v level, most uint64, now int64) int64 {
	gone := now - v.last
	if most >= uint64(v.a) {
		at := shrinksTo(l, v.b, most-uint64(v.a))
		return max(at-gone, 0)
	}
	return l.Window - gone + shrinksTo(l, v.a, most)
}

// shrinksTo is how far into the next window a counter of n contributes at most
// most: 0 … window. floor(n × (window − at) / window) ≤ most exactly when
// window − at < (most + 1) × window / n.
func shrinksTo(l *Limit, n uint32, most uint64) int64 {
	if uint64(n) <= most {
		return 0
	}
	hi, lo := bits.Mul64(most+1, uint64(l.Window))
	left, rest := bits.Div64(hi, lo, uint64(n)) // most + 1 ≤ n, so left ≤ window
	if rest == 0 {
		left--
	}
	return l.Window - int64(left)
}

func (k slidingWindow) wait(_ *site, l *Limit, v level, need uint64, now int64) int64 {
	return k.until(l, v, l.Amount-need, now)
}

func (k slidingWindow) reset(_ *site, l *Limit, v level, now int64) int64 {
	return k.until(l, v, 0, now)
}

func (slidingWindow) spend(x *site, _ *Limit, v level, cost uint64, _ int64) (level, uint64) {
	v.a += uint32(cost)
	x.raw = v
	return v, 0
}

// credit counts only in the window that was charged.
func (k slidingWindow) credit(x *site, l *Limit, c *credit, now int64) {
	x.raw = k.view(x, l, now)
	switch {
	case c.at >= x.raw.last:
		x.raw.a = uint32(less(uint64(x.raw.a), c.cost))
	case c.at >= x.raw.last-l.Window:
		x.raw.b = uint32(less(uint64(x.raw.b), c.cost))
	}
}

func (k slidingWindow) fresh(x *site, l *Limit, now int64) bool {
	return k.used(x, l, now) == 0
}

func (k slidingWindow) used(x *site, l *Limit, at int64) uint64 {
	return k.estimate(l, k.view(x, l, at), at)
}

func (k slidingWindow) carry(x *site, from, to *Limit, at int64) {
	if from.Window != to.Window {
		k.begin(x, to, k.used(x, from, at), at)
	}
}

func (slidingWindow) begin(x *site, l *Limit, used uint64, at int64) {
	x.raw = level{last: x.windowStart(l, at), a: uint32(min(used, MaxAmount))}
}
