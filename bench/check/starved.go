package check

import (
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// Starved holds that a bucket that refills gives what time has given it (I3). Between two
// denials that are too close for the bucket to have become full in between, what
// was admitted, or perhaps was, is at least
//
//	rate × time × (1 − drift) − the cost of the later denial − rate × lost time
//
// where each fault that overlaps costs Setup.LostTime, and so does a change of the
// leader or of the group between two denials. Where the state may have been lost
// between two, nothing is demanded. Every two neighbours are
// judged, and every denial against the first of its chain, so that a clock a little
// slow shows as well as one that stood still. Token and leaky buckets only. Cost:
// n log n, and denials times faults.
func Starved(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	return each("starved", ops, func(v *Verdict, name string, ops []Op) {
		l, ok := s.steady(name)
		if !ok || !l.Algorithm.HasBurst() || l.Amount == 0 || l.Algorithm == bucket.Concurrency {
			return
		}
		spent := newSpendings(ops)
		var first, last *Op
		changes := 0 // of the leader, since first
		denials := byReturn(denied(ops))
		for i := range denials {
			o := &denials[i]
			if last != nil {
				v.Checked++
				full := time.Duration((float64(capacity(l)) - float64(o.Cost)) / perNano(l) / (1 + s.drift()))
				changed := leaders(last, o)
				changes += changed
				if o.Return-last.Call >= full || s.lost(last, o) {
					first, changes = nil, 0
				} else if !enough(s, v, name, l, spent, last, o, changed) || !enough(s, v, name, l, spent, first, o, changes) {
					return
				}
			}
			if first == nil {
				first = o
			}
			last = o
		}
	})
}

// denied are the denials for want of tokens, by the bucket itself.
func denied(ops []Op) (out []Op) {
	for i := range ops {
		if o := &ops[i]; o.takes() && o.Outcome == Denied && o.answered() && !o.Passed && o.RetryAfter > 0 && o.Cost > 0 {
			out = append(out, *o)
		}
	}
	return out
}

// leaders is 1 if a and b are known to be from different leaders.
func leaders(a, b *Op) int {
	p, q := &a.Witness, &b.Witness
	if p.Index == 0 || q.Index == 0 || p.Group == q.Group && p.Epoch == q.Epoch && p.Term == q.Term {
		return 0
	}
	return 1
}

// enough judges the time between two denials, with so many changes of the leader; it
// finds at most one thing.
func enough(s *Setup, v *Verdict, name string, l Limit, spent *spendings, a, b *Op, changes int) bool {
	if a == nil || b.Call <= a.Return {
		return true
	}
	lost := time.Duration(s.faultsIn(a.Call, b.Return)+changes) * s.lostTime()
	gave := perNano(l) * float64(b.Call-a.Return-lost) * (1 - s.drift())
	got := spent.around(a.Call, b.Return)
	if float64(got)+float64(b.Cost)+1 >= gave {
		return true
	}
	v.find(name, []Op{*a, *b}, "%.1f tokens came in within %v, but at most %d were given out before a take of %d was denied",
		gave, b.Call-a.Return, got, b.Cost)
	return false
}

// spendings tells how much may have been taken around a time.
type spendings struct {
	calls, ended        []time.Duration // in order …
	calledSum, endedSum []uint64        // … and the costs of the first n of them
}

// newSpendings counts whatever was taken, or may have been, every copy by itself.
func newSpendings(ops []Op) *spendings {
	var took []Op
	for i := range ops {
		if o := &ops[i]; o.charged() && o.Cost > 0 || o.maybe() {
			took = append(took, *o)
		}
	}
	s := &spendings{calledSum: []uint64{0}, endedSum: []uint64{0}}
	for _, o := range byCall(took) {
		s.calls = append(s.calls, o.Call)
		s.calledSum = append(s.calledSum, s.calledSum[len(s.calledSum)-1]+o.Cost)
	}
	for _, o := range byReturn(took) {
		s.ended = append(s.ended, o.Return)
		s.endedSum = append(s.endedSum, s.endedSum[len(s.endedSum)-1]+o.Cost)
	}
	return s
}

// around is what was called by b and had not returned before a.
func (s *spendings) around(a, b time.Duration) uint64 {
	return s.calledSum[upTo(s.calls, b)] - s.endedSum[upTo(s.ended, a-1)]
}
