package check

import (
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// Window holds that in any interval no more is admitted than its limit allows (I2),
// whatever became of requests without an answer:
//
//	token_bucket, leaky_bucket  burst + rate × time × (1 + drift) + 1; leased: and rate × the time of a lease
//	fixed_window                twice the amount in any window, as around an edge
//	sliding_window              the same: its estimate is of traffic spread evenly,
//	                            and traffic at the end of one window may pass again
//	                            by the end of the next
//	sliding_log                 the amount in any window
//
// An admission counts if it was called and had returned within the interval. Tokens
// refunded or given meanwhile are added, as is a burst for each loss of its state if
// Setup.OnLoss grants it. It is blind for charges that stand twice.
// Cost: n log n.
func Window(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	return each("window", ops, func(v *Verdict, name string, ops []Op) {
		l, ok := s.loosest(name)
		if !ok || l.Algorithm == bucket.Concurrency {
			return
		}
		spent := spending(ops)
		v.Checked = len(spent)
		if len(spent) == 0 {
			return
		}
		extra := returned(s, name, ops)
		switch l.Algorithm {
		case bucket.TokenBucket, bucket.LeakyBucket:
			rateBound(s, v, name, l, spent, extra)
		case bucket.SlidingLog:
			windowBound(s, v, name, l, spent, extra, 1)
		default:
			windowBound(s, v, name, l, spent, extra, 2)
		}
	})
}

// spending are the admissions, one for each id: it was charged after the first call
// of any copy, and before the first return of one that was admitted.
func spending(ops []Op) []Op {
	at := make(map[string]int)
	var out []Op
	for i := range ops {
		o := &ops[i]
		if !o.charged() || o.Cost == 0 {
			continue
		}
		k, copied := at[o.ID]
		if o.ID == "" || !copied {
			at[o.ID] = len(out)
			out = append(out, *o)
			continue
		}
		out[k].Return = min(out[k].Return, o.Return)
	}
	for i := range ops {
		if k, copied := at[ops[i].ID]; copied && ops[i].ID != "" && ops[i].takes() {
			out[k].Call = min(out[k].Call, ops[i].Call)
		}
	}
	return out
}

// returned are the times in which a bucket got tokens back, and how many at most.
func returned(s *Setup, name string, ops []Op) []Given {
	var out []Given
	took := make(map[string]uint64)
	for i := range ops {
		if o := &ops[i]; o.ID != "" && o.takes() {
			took[o.ID] = max(took[o.ID], o.Cost)
		}
	}
	for i := range ops {
		if o := &ops[i]; o.Kind == Refund && (o.Outcome == Admitted || o.Outcome == Unknown) {
			out = append(out, Given{name, refundOf(o, took[o.ID]), Span{o.Call, o.Return}})
		}
	}
	for _, g := range s.Given {
		if g.Bucket == "" || g.Bucket == name {
			out = append(out, g)
		}
	}
	return append(out, s.gifts(name, ops)...)
}

// rateBound finds the interval with the largest excess. For each end b, in order, a
// tree over the possible beginnings a holds what was admitted in [a, b], plus rate ×
// a; the best of them is asked for.
func rateBound(s *Setup, v *Verdict, name string, l Limit, spent []Op, extra []Given) {
	rate := perNano(l) * (1 + s.drift())
	most := float64(capacity(l)) + rate*float64(s.Leased[name])
	calls := starts(spent)
	t := newTree(len(calls))
	for i, a := range calls {
		t.add(i, i+1, rate*float64(a))
	}
	slices.SortFunc(extra, func(a, b Given) int { return compare(a.From, b.From) })
	next := 0
	for _, o := range byReturn(spent) {
		for ; next < len(extra) && extra[next].From <= o.Return; next++ {
			t.add(0, upTo(calls, extra[next].To), -float64(extra[next].Tokens))
		}
		t.add(0, upTo(calls, o.Call), float64(o.Cost))
		best, at := t.most(upTo(calls, o.Return))
		if excess := best - rate*float64(o.Return) - most; excess > 1 {
			a := calls[at]
			within := inside(spent, a, o.Return)
			v.find(name, ends(within), "%d tokens admitted within %v: %.1f more than %.0f at once and %.1f in that time",
				sum(within), o.Return-a, excess, most, rate*float64(o.Return-a))
			return
		}
	}
}

// windowBound slides a window over the beginnings, the latest first; a tree over the
// ends counts what was called after it.
func windowBound(s *Setup, v *Verdict, name string, l Limit, spent []Op, extra []Given, times uint64) {
	width := time.Duration(float64(l.Window)/(1+s.drift())) - 1
	ended := make([]time.Duration, len(spent))
	for i := range spent {
		ended[i] = spent[i].Return
	}
	slices.Sort(ended)
	counts := newFenwick(len(ended))
	calls := byCall(spent)
	for i := len(calls) - 1; i >= 0; i-- {
		counts.add(upTo(ended, calls[i].Return)-1, calls[i].Cost)
		a := calls[i].Call
		allowed := times * l.Amount
		for _, g := range extra {
			if g.overlaps(a, a+width) {
				allowed += g.Tokens
			}
		}
		if n := counts.sum(upTo(ended, a+width)); n > allowed {
			v.find(name, ends(inside(spent, a, a+width)), "%d tokens admitted within %v, at most %d may be", n, width, allowed)
			return
		}
	}
}

// starts are the calls of operations, in order.
func starts(ops []Op) []time.Duration {
	at := make([]time.Duration, len(ops))
	for i := range ops {
		at[i] = ops[i].Call
	}
	slices.Sort(at)
	return at
}

// upTo is how many of sorted times are not after t.
func upTo(times []time.Duration, t time.Duration) int {
	n, _ := slices.BinarySearchFunc(times, t, func(e, t time.Duration) int {
		if e <= t {
			return -1
		}
		return 1
	})
	return n
}

func inside(ops []Op, a, b time.Duration) (in []Op) {
	for i := range ops {
		if ops[i].Call >= a && ops[i].Return <= b {
			in = append(in, ops[i])
		}
	}
	return byCall(in)
}

func sum(ops []Op) (tokens uint64) {
	for i := range ops {
		tokens += ops[i].Cost
	}
	return tokens
}

// ends are the first and the last few of many operations.
func ends(ops []Op) []Op {
	if len(ops) <= 6 {
		return ops
	}
	return append(slices.Clone(ops[:3]), ops[len(ops)-3:]...)
}
