package bucket

import (
	"math"
	"math/bits"
)

// level is the state of a token bucket: at time last it holds tokens whole
// tokens and rem/window of one more.
//
// Each ns adds amount/window of a token, so a fraction of a token is a count of
// ns and a rest below one ns' worth. The ns are kept in last, moved back; hence
// rem < amount, 16 bytes hold the state without loss for every valid limit, and
// nothing is ever rounded. One state is one line through (last, tokens + rem/window):
// advancing it twice equals advancing it once.
type level struct {
	last   int64  // ns of slot time
	tokens uint32 // 0 … burst
	rem    uint32 // in 1/window of a token, < amount
}

// full is the bucket that nothing was taken from.
func (l *Limit) full(now int64) level {
	return level{last: now, tokens: uint32(l.Capacity())}
}

// advance refills s up to now. Time never steps back: a now before s.last is s.last.
// The result is full, or now − last < window/amount.
func (l *Limit) advance(s level, now int64) level {
	burst := l.Capacity()
	if now <= s.last && uint64(s.tokens) < burst {
		return s
	}
	if uint64(s.tokens) >= burst {
		return l.full(max(now, s.last))
	}
	whole, rest, ok := l.accrued(s, now)
	if !ok || whole >= burst-uint64(s.tokens) {
		return l.full(now)
	}
	s.tokens += uint32(whole)
	return l.settle(s.tokens, rest, now)
}

// settle is the state with tokens and rest/window more at now; rest < window.
func (l *Limit) settle(tokens uint32, rest uint64, now int64) level {
	return level{
		last:   now - int64(rest/l.Amount),
		tokens: tokens,
		rem:    uint32(rest % l.Amount),
	}
}

// accrued is what s gained beyond its whole tokens by now, now ≥ s.last: whole
// tokens and rest/window of one more. Not ok: more than 64 bits, beyond every burst.
func (l *Limit) accrued(s level, now int64) (whole, rest uint64, ok bool) {
	window := uint64(l.Window)
	hi, lo := bits.Mul64(uint64(now)-uint64(s.last), l.Amount)
	lo, carry := bits.Add64(lo, uint64(s.rem), 0)
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
	if uint64(s.tokens) >= burst {
		return true
	}
	if now < s.last {
		return false
	}
	needHi, needLo := bits.Mul64(burst-uint64(s.tokens), uint64(l.Window))
	haveHi, haveLo := bits.Mul64(uint64(now)-uint64(s.last), l.Amount)
	haveLo, carry := bits.Add64(haveLo, uint64(s.rem), 0)
	haveHi += carry
	return haveHi > needHi || haveHi == needHi && haveLo >= needLo
}

// wait is the least number of ns after now ≥ s.last at which s, advanced to now,
// holds need tokens; math.MaxInt64 where it is more than that. need ≤ capacity.
func (l *Limit) wait(s level, need uint64, now int64) int64 {
	if need <= uint64(s.tokens) {
		return 0
	}
	if l.Amount == 0 {
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(need-uint64(s.tokens), uint64(l.Window))
	lo, borrow := bits.Sub64(lo, uint64(s.rem), 0)
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

// rebase carries a bucket over from limit l to limit n at now: elapsed time is
// priced at l, then min(level, new burst) tokens stay. A fresh bucket stays
// fresh, as an absent one would be. The fraction of a token is rounded down, once.
func (l *Limit) rebase(s level, n *Limit, now int64) level {
	s = l.advance(s, now)
	if uint64(s.tokens) >= l.Capacity() || uint64(s.tokens) >= n.Capacity() {
		return n.full(max(now, s.last))
	}
	now = max(now, s.last)
	rest := (uint64(now)-uint64(s.last))*l.Amount + uint64(s.rem) // < l.Window
	hi, lo := bits.Mul64(rest, uint64(n.Window))
	rest, _ = bits.Div64(hi, lo, uint64(l.Window)) // rest < l.Window, so hi < l.Window
	return n.settle(s.tokens, rest, now)
}
