package bucket

import (
	"math"
	"math/bits"
)

// tokenBucket starts full and refills continuously. Its level: at time last it
// holds a whole tokens and b/window of one more.
//
// Each ns adds amount/window of a token, so a fraction of a token is a count of
// ns and a rest below one ns' worth. The ns are kept in last, moved back; hence
// b < amount, 16 bytes hold the state without loss for every valid limit, and
// nothing is ever rounded. One level is one line through (last, a + b/window):
// advancing it twice equals advancing it once.
//
// The highest bit of b is pinBit.
type tokenBucket struct{ plain }

// pinBit marks a bucket that was carried over, when it was not fresh, to a limit
// of less capacity. Filled up to that it does not count as fresh until
// version.thaw: else to lower a limit and raise it again would mint.
const pinBit = 1 << 31

func (tokenBucket) blank(l *Limit, now int64) level { return l.full(now) }

func (tokenBucket) view(x *site, l *Limit, now int64) level {
	pin := x.raw.b & pinBit
	x.raw.b &^= pinBit
	v := l.advance(x.raw, now)
	x.raw.b |= pin
	if pin != 0 && now < x.thaw {
		v.b |= pinBit
	}
	return v
}

func (tokenBucket) room(l *Limit, v level, _ int64) uint64 { return min(uint64(v.a), l.Capacity()) }

func (tokenBucket) wait(_ *site, l *Limit, v level, need uint64, now int64) int64 {
	v.b &^= pinBit
	return l.wait(v, need, now)
}

func (k tokenBucket) reset(x *site, l *Limit, v level, now int64) int64 {
	return k.wait(x, l, v, l.Capacity(), now)
}

func (tokenBucket) spend(x *site, _ *Limit, v level, cost uint64, _ int64) (level, uint64) {
	v.a -= uint32(cost)
	x.raw = v
	return v, 0
}

func (k tokenBucket) credit(x *site, l *Limit, c *credit, now int64) {
	v := k.view(x, l, now)
	if x.raw = v; uint64(v.a)+c.cost >= l.Capacity() {
		x.raw = l.full(max(now, v.last))
		x.raw.b |= v.b & pinBit
		return
	}
	x.raw.a += uint32(c.cost)
}

func (tokenBucket) fresh(x *site, l *Limit, now int64) bool {
	s := x.raw
	if s.b&pinBit != 0 {
		if now < x.thaw {
			return false
		}
		s.b &^= pinBit
	}
	return l.fresh(s, now)
}

func (k tokenBucket) used(x *site, l *Limit, at int64) uint64 {
	if k.fresh(x, l, at) {
		return 0
	}
	return less(l.Capacity(), uint64(k.view(x, l, at).a))
}

// carry leaves min(level, new burst). A fresh bucket stays fresh, as an absent
// one would be.
func (k tokenBucket) carry(x *site, from, to *Limit, at int64) {
	if k.fresh(x, from, at) {
		x.raw = to.full(at)
		return
	}
	pinned := x.raw.b&pinBit != 0 && at < x.thaw
	x.raw.b &^= pinBit
	x.raw = from.rebase(x.raw, to, at)
	if pinned || to.Capacity() < from.Capacity() {
		x.raw.b |= pinBit
	}
}

func (tokenBucket) begin(x *site, l *Limit, used uint64, at int64) {
	x.raw = l.full(at)
	if used > 0 {
		x.raw.a = uint32(less(l.Capacity(), used))
		x.raw.b = pinBit // what was used may have been more than this capacity
	}
}

// full is the bucket that nothing was taken from.
func (l *Limit) full(now int64) level {
	return level{last: now, a: uint32(l.Capacity())}
}

// advance refills s up to now. Time never steps back: a now before s.last is s.last.
// The result is full, or now − last < window/amount.
func (l *Limit) advance(s level, now int64) level {
	burst := l.Capacity()
	if now <= s.last && uint64(s.a) < burst {
		return s
	}
	if uint64(s.a) >= burst {
		return l.full(max(now, s.last))
	}
	whole, rest, ok := l.accrued(s, now)
	if !ok || whole >= burst-uint64(s.a) {
		return l.full(now)
	}
	s.a += uint32(whole)
	return l.settle(s.a, rest, now)
}

// settle is the state with tokens and rest/window more at now; rest < window.
func (l *Limit) settle(tokens uint32, rest uint64, now int64) level {
	return level{
		last: now - int64(rest/l.Amount),
		a:    tokens,
		b:    uint32(rest % l.Amount),
	}
}

// accrued is what s gained beyond its whole tokens by now, now ≥ s.last: whole
// tokens and rest/window of one more. Not ok: more than 64 bits, beyond every burst.
func (l *Limit) accrued(s level, now int64) (whole, rest uint64, ok bool) {
	window := uint64(l.Window)
	hi, lo := bits.Mul64(uint64(now)-uint64(s.last), l.Amount)
	lo, carry := bits.Add64(lo, uint64(s.b), 0)
	hi += carry
	if hi == 0 {
		return lo / window, lo % window, true
	}
	if hi >= window {
		return 0, 0, false
	}
	whole, rest = bits.Div64(hi, lo, window)
	return whole, rest, true
}

// fresh says whether s is full at now, without a division.
func (l *Limit) fresh(s level, now int64) bool {
	burst := l.Capacity()
	if uint64(s.a) >= burst {
		return true
	}
	if now < s.last {
		return false
	}
	needHi, needLo := bits.Mul64(burst-uint64(s.a), uint64(l.Window))
	haveHi, haveLo := bits.Mul64(uint64(now)-uint64(s.last), l.Amount)
	haveLo, carry := bits.Add64(haveLo, uint64(s.b), 0)
	haveHi += carry
	return haveHi > needHi || haveHi == needHi && haveLo >= needLo
}

// wait is the least number of ns after now ≥ s.last at which s, advanced to now,
// holds need tokens; math.MaxInt64 where it is more than that. need ≤ capacity.
func (l *Limit) wait(s level, need uint64, now int64) int64 {
	if need <= uint64(s.a) {
		return 0
	}
	if l.Amount == 0 {
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(need-uint64(s.a), uint64(l.Window))
	lo, borrow := bits.Sub64(lo, uint64(s.b), 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, l.Amount-1, 0)
	hi += carry
	if hi >= l.Amount {
		return math.MaxInt64
	}
	ns, _ := bits.Div64(hi, lo, l.Amount) // from s.last, rounded up
	ns -= min(ns, uint64(now)-uint64(s.last))
	return int64(min(ns, math.MaxInt64))
}

// rebase carries a bucket that is not fresh over from limit l to limit n at now:
// elapsed time is priced at l, then min(level, new burst) tokens stay. The
// fraction of a token is rounded down, once.
func (l *Limit) rebase(s level, n *Limit, now int64) level {
	s = l.advance(s, now)
	now = max(now, s.last)
	if uint64(s.a) >= n.Capacity() {
		return n.full(now)
	}
	rest := (uint64(now)-uint64(s.last))*l.Amount + uint64(s.b) // < l.Window, but in a damaged state
	if uint64(s.a) >= l.Capacity() {
		rest = 0 // s.last means nothing
	}
	rest = min(rest, uint64(l.Window)-1)
	hi, lo := bits.Mul64(rest, uint64(n.Window))
	rest, _ = bits.Div64(hi, lo, uint64(l.Window)) // rest < l.Window, so hi < l.Window
	return n.settle(s.a, rest, now)
}
