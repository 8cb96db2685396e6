package bucket

import (
	"math"
	"math/bits"
)

// A lease is a take of several units at once, which its holder spends by itself
// until a deadline. To the bucket they are spent from then on: whoever never comes
// back has only taken. All it adds is how many units are taken, of what is there,
// and what a return of unspent ones may give back.

// Leasable says whether tokens of this algorithm may be handed out ahead. The
// others would have to know when a token is really used: a queue and a log count by
// the time of each, a sliding window by how long ago, a permit by its end.
func (a Algorithm) Leasable() bool { return a == TokenBucket || a == FixedWindow }

// leasable says whether all that a request takes may be leased: by algorithms that
// can, each unit at a cost, and with a take that bounds them.
func leasable(asks []ask, uses []use) bool {
	firm := false
	for i := range asks {
		if asks[i].cost == 0 || !uses[asks[i].use].Limit.Algorithm.Leasable() {
			return false
		}
		firm = firm || !asks[i].shadow
	}
	return firm
}

// lease makes a request of one unit, which was weighed and passes, one of as many as
// j may have, and weighs it anew. A shadow counts all units or, if it cannot afford
// them, none.
func (t *Table) lease(j *job, asks []ask, uses []use, commit bool) {
	n := max(j.number, 1)
	for i := range t.judge.tallies {
		if k := &t.judge.tallies[i]; k.firm {
			l := &uses[k.use].Limit
			n = min(n, l.kind().room(l, k.view, k.now)/max(j.share, 1)/k.spent)
		}
	}
	if n = max(n, 1); n > 1 {
		for i := range asks {
			asks[i].cost = min(asks[i].cost*n, MaxAmount+1) // n is at most the room of a bucket
		}
		t.weigh(asks, uses, commit)
	}
	t.judge.units = n
}

// leaseExtra is kind.spend's extra of a lease.
func leaseExtra(units, unit uint64) uint64 { return units<<32 | unit }

// leased is the units of a lease and the cost of each; 0: it is none.
func leased(extra uint64) (units, unit uint64) { return extra >> 32, extra & math.MaxUint32 }

// leases says whether a result is that of a lease.
func (r *rules) leases(list []stored) bool {
	for i := range list {
		s := &list[i]
		if s.flags&flagDenied == 0 && s.extra != 0 && r.version(s.rule).Limit.Algorithm.Leasable() {
			return true
		}
	}
	return false
}

// unspent is what comes back of s, which was charged at the slot time at as part of
// a lease, by a return of n units (0: all) at now. newest is the version that counts
// now.
//
// What a bucket has gained meanwhile is taken off a token bucket's return. Otherwise
// tokens could be kept beyond the burst: leased, and leased again with each return
// while the bucket fills up behind them. With it the level and what may still come
// back never exceed the burst together, so that what is spent in any interval is at
// most burst + rate × (time + lease's time), whatever holders do. A window needs
// no such care: only within the one that was charged anything comes back.
func (r *rules) unspent(s *stored, n uint64, at, now int64, newest uint32) uint64 {
	units, unit := leased(s.extra)
	if n == 0 || n > units {
		n = units
	}
	if s.rule != newest || s.cost == 0 || at == math.MinInt64 {
		return 0 // another rate, or for who knows how long, may have filled the bucket since
	}
	cost := min(n*unit, uint64(s.cost))
	if l := &r.version(s.rule).Limit; l.Algorithm == TokenBucket {
		return less(cost, l.gain(at, now))
	}
	return cost
}

// gain is what a token bucket gains from one time to a later one, rounded up.
func (l *Limit) gain(from, to int64) uint64 {
	if to <= from {
		return 0
	}
	hi, lo := bits.Mul64(uint64(to)-uint64(from), l.Amount)
	if hi >= uint64(l.Window) {
		return math.MaxUint64
	}
	whole, rest := bits.Div64(hi, lo, uint64(l.Window))
	if rest > 0 {
		whole++
	}
	return whole
}
