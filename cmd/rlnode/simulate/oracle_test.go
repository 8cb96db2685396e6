package simulate_test

import (
	"fmt"
	"math/big"
	"sort"
)

// What follows decides by the words of the contract alone, in rational numbers,
// without a look at how package bucket does it. Times are rational ns, and all
// that is counted is kept for ever.

// spec is a limit.
type spec struct {
	algorithm            string
	amount, burst, width int64 // width: of the window, in ns
}

func (s spec) capacity() int64 {
	if s.algorithm == "token_bucket" || s.algorithm == "leaky_bucket" {
		return s.burst
	}
	return s.amount
}

// charge is what was admitted once.
type charge struct{ at, cost int64 }

// oracle is one bucket.
type oracle struct {
	spec
	charges []charge
	level   *big.Rat // token_bucket: tokens; leaky_bucket: backlog; at last
	last    int64
}

// verdict is what an answer has to say.
type verdict struct {
	allowed                        bool
	remaining, retry, reset, delay int64
	reason                         string
}

func newOracle(s spec) *oracle {
	o := &oracle{spec: s, level: new(big.Rat)}
	if s.algorithm == "token_bucket" {
		o.level.SetInt64(s.burst)
	}
	return o
}

// ask decides a request.
func (o *oracle) ask(now, cost int64) verdict {
	o.flow(now)
	need := max(cost, 1)
	v := verdict{allowed: o.room(now) >= need}
	switch {
	case v.allowed:
		if o.algorithm == "leaky_bucket" {
			v.delay = o.flowTime(o.level)
		}
		o.take(now, cost)
	case need > o.capacity():
		v.reason, v.retry = "cost_exceeds_capacity", -1
	default:
		v.reason = "rate_limited"
		v.retry = o.firstTime(now, func(at int64) bool { return o.room(at) >= need })
	}
	v.remaining = o.room(now)
	v.reset = o.untilFresh(now)
	return v
}

func (o *oracle) take(now, cost int64) {
	switch o.algorithm {
	case "token_bucket":
		o.level.Sub(o.level, ratio(cost, 1))
	case "leaky_bucket":
		o.level.Add(o.level, ratio(cost, 1))
	}
	if cost > 0 {
		o.charges = append(o.charges, charge{now, cost})
	}
}

func ratio(a, b int64) *big.Rat { return big.NewRat(a, b) }

// flow brings the level to a time.
func (o *oracle) flow(now int64) {
	o.level, o.last = o.levelAt(now), now
}

func (o *oracle) levelAt(now int64) *big.Rat {
	moved := new(big.Rat).Mul(ratio(now-o.last, 1), ratio(o.amount, o.width))
	switch o.algorithm {
	case "token_bucket":
		moved.Add(o.level, moved)
		if full := ratio(o.burst, 1); moved.Cmp(full) > 0 {
			return full
		}
		return moved
	default:
		moved.Sub(o.level, moved)
		if moved.Sign() < 0 {
			return new(big.Rat)
		}
		return moved
	}
}

// flowTime is how long an amount takes to flow, rounded up to whole ns.
func (o *oracle) flowTime(tokens *big.Rat) int64 {
	return ceil(new(big.Rat).Mul(tokens, ratio(o.width, o.amount)))
}

func floor(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() } // Euclidean, r ≥ 0

func ceil(r *big.Rat) int64 {
	n := floor(r)
	if new(big.Rat).SetInt64(n).Cmp(r) < 0 {
		n++
	}
	return n
}

// room is the largest cost admitted at a time, if nothing else is until then.
func (o *oracle) room(at int64) int64 {
	switch o.algorithm {
	case "token_bucket":
		return floor(o.levelAt(at))
	case "leaky_bucket":
		return floor(new(big.Rat).Sub(ratio(o.burst, 1), o.levelAt(at)))
	default:
		return o.amount - o.counted(at)
	}
}

// counted is what a window algorithm counts at a time.
func (o *oracle) counted(at int64) int64 {
	var whole int64
	part := new(big.Rat)
	window := at / o.width
	for _, c := range o.charges {
		switch o.algorithm {
		case "fixed_window":
			if c.at/o.width == window {
				whole += c.cost
			}
		case "sliding_window":
			switch c.at / o.width {
			case window:
				whole += c.cost
			case window - 1:
				left := ratio((window+1)*o.width-at, o.width)
				part.Add(part, left.Mul(left, ratio(c.cost, 1)))
			}
		default: // sliding_log, and permits that nobody releases
			if at-c.at < o.width {
				whole += c.cost
			}
		}
	}
	return whole + floor(part)
}

// untilFresh is how long it takes until the bucket is as if it had never been
// used; of a fixed window, until its edge.
func (o *oracle) untilFresh(now int64) int64 {
	switch o.algorithm {
	case "token_bucket":
		return o.flowTime(new(big.Rat).Sub(ratio(o.burst, 1), o.level))
	case "leaky_bucket":
		return o.flowTime(o.level)
	default:
		return o.firstTime(now, func(at int64) bool { return o.counted(at) == 0 })
	}
}

// firstTime is how long it takes until something holds that goes on to hold, as
// room only grows while nothing is taken. It holds after two windows at most,
// or when the level has flowed to its end.
func (o *oracle) firstTime(now int64, holds func(at int64) bool) int64 {
	most := 2*o.width + 1
	if o.algorithm == "token_bucket" || o.algorithm == "leaky_bucket" {
		most = o.flowTime(ratio(o.burst, 1)) + 1
	}
	n := sort.Search(int(most), func(d int) bool { return holds(now + int64(d)) })
	if int64(n) == most && !holds(now+most) {
		panic(fmt.Sprintf("%+v never recovers", o.spec))
	}
	return int64(n)
}
