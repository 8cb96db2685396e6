package check

import (
	"fmt"
	"math"
	"math/big"

	"github.com/ringlimit/ringlimit/bucket"
)

// flow is a token bucket; or a leaky one, whose level is what may still be poured in.
// A token is window units, and a ns brings amount of them: nothing is ever rounded.
type flow struct {
	limit Limit
	unit  *big.Int // of a token
	full  *big.Int
	level span     // units
	least *big.Int // 0; of a leaky bucket whose burst was lowered less
	sure  *span    // the level if nothing hidden had happened; nil: as it is
	now   int64
}

func newFlow(l Limit, now int64) *flow {
	f := &flow{limit: l, unit: big.NewInt(l.Window), full: times(capacity(l), l.Window), least: new(big.Int), now: now}
	f.level = exactly(f.full)
	return f
}

func (f *flow) clone() model { c := *f; c.level = f.level.clone(); return &c }

func (f *flow) exact() bool { return false }

func (f *flow) advance(now int64) {
	if now <= f.now {
		return
	}
	f.level.add(times(f.limit.Amount, now-f.now))
	f.level.clamp(f.least, f.full)
	f.now = now
}

func (f *flow) widen(taken, given uint64) {
	sure := f.level.clone()
	f.sure = &sure
	f.level.low.Sub(f.level.low, times(taken, f.limit.Window))
	f.level.high.Add(f.level.high, times(given, f.limit.Window))
	f.level.clamp(f.least, f.full)
}

// become changes the limit at some time since the last answer. What a token bucket
// holds is then known only to be no more than the old rate and gained tokens could bring,
// unless it was full and is so again; of a leaky one the backlog stays, whatever the burst.
func (f *flow) become(l Limit, now int64, largest uint64, gained *big.Int) {
	old, fresh := f.clone().(*flow), newFlow(l, now)
	old.advance(now)
	fresh.level.low.SetInt64(0)
	switch {
	case l.Algorithm == bucket.LeakyBucket:
		fresh.owe(largest)
	case old.level.high.Cmp(old.full) < 0:
		most := ceil(old.level.high, old.unit)
		most.Add(most, gained)
		fresh.level.atMost(most.Mul(most, fresh.unit))
	}
	*f = *fresh
}

// owe allows that the backlog of a leaky bucket is as much as any of its limits had
// admitted: it stays when the burst is lowered, and nothing is left until it drains.
func (f *flow) owe(largest uint64) {
	f.least.Sub(f.full, times(max(largest, capacity(f.limit)), f.limit.Window))
	f.level.low.Set(f.least)
}

func (f *flow) judge(o *Op) (wrong string, taken, given uint64) {
	before := f.level.clone()
	if f.sure != nil {
		before, f.sure = *f.sure, nil
	}
	expected := f.describe()
	wrong, done := certain(f.limit, o)
	if done {
		return wrong, 0, 0
	}
	needed := times(need(o), f.limit.Window)
	if need(o) <= capacity(f.limit) {
		if o.Passed {
			f.level.atLeast(needed)
		} else {
			f.level.atMost(new(big.Int).Sub(needed, big.NewInt(1)))
			f.tells(needed, int64(o.RetryAfter))
		}
	}
	delayed := o.charged() && f.limit.Algorithm == bucket.LeakyBucket
	if delayed {
		f.tells(f.full, int64(o.Delay))
	}
	cost := new(big.Int)
	if o.charged() {
		cost = times(o.Cost, f.limit.Window)
		f.level.add(new(big.Int).Neg(cost))
	}
	if o.Remaining > 0 || f.least.Sign() == 0 {
		f.level.atLeast(times(o.Remaining, f.limit.Window))
	}
	f.level.atMost(new(big.Int).Sub(times(o.Remaining+1, f.limit.Window), big.NewInt(1)))
	if f.limit.Amount > 0 {
		f.tells(f.full, int64(o.ResetAfter))
	}
	if f.level.empty() {
		return fmt.Sprintf("%d left, retry after %v, reset after %v; before it there were %s", o.Remaining, o.RetryAfter, o.ResetAfter, expected), 0, 0
	}
	before.add(new(big.Int).Neg(cost))
	return "", f.tokens(before.low, f.level.high), f.tokens(f.level.low, before.high)
}

// tokens is the least number of tokens that make the difference a − b.
func (f *flow) tokens(a, b *big.Int) uint64 {
	d := new(big.Int).Sub(a, b)
	if d.Sign() <= 0 {
		return 0
	}
	return ceil(d, f.unit).Uint64()
}

// tells narrows the level by the ns after which it is at least so high: the least
// that are enough.
func (f *flow) tells(units *big.Int, ns int64) {
	if f.limit.Amount == 0 || ns == math.MaxInt64 {
		return // longer than can be said
	}
	f.level.atLeast(new(big.Int).Sub(units, times(f.limit.Amount, ns)))
	if ns > 0 {
		f.level.atMost(new(big.Int).Sub(new(big.Int).Sub(units, times(f.limit.Amount, ns-1)), big.NewInt(1)))
	}
}

// describe says what the bucket holds, for people.
func (f *flow) describe() string {
	low, _ := new(big.Rat).SetFrac(f.level.low, f.unit).Float64()
	if f.level.known() {
		return fmt.Sprintf("%.6f", low)
	}
	high, _ := new(big.Rat).SetFrac(f.level.high, f.unit).Float64()
	return fmt.Sprintf("%.6f to %.6f", low, high)
}
