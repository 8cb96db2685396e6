package check

import (
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// Early holds that a lost state gives nothing early. Where all counts as used after
// a loss (Setup.OnLoss), what a new epoch admits of a bucket is
//
//	token_bucket, leaky_bucket  at most rate × time since the epoch began × (1 + drift)
//	all others                  nothing within a window of its beginning
//
// Where it does not, Window, Exact and Hints allow for one more burst and no more.
// Buckets that were not answered in the group's epoch before are left out, unless no
// slot moves: a bucket that moved in was not lost. Tokens refunded or given count too.
// Cost: n log n.
func Early(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	return each("early", ops, func(v *Verdict, name string, ops []Op) {
		l, ok := s.loosest(name)
		if !ok || s.OnLoss[name] != bucket.LossEmpty || len(s.lossesOf(ops)) == 0 {
			return
		}
		back := returned(s, name, ops)
		for _, life := range s.lives(timed(ops)) {
			if life.begins == beginsLost {
				tooEarly(s, v, name, l, &life, back)
			}
		}
	})
}

// tooEarly judges the beginning of one life; it finds at most one thing.
func tooEarly(s *Setup, v *Verdict, name string, l Limit, x *life, back []Given) {
	sum, rate := uint64(0), perNano(l)*(1+s.drift())
	window := time.Duration(float64(l.Window) * (1 - s.drift()))
	for _, o := range byReturn(x.ops) {
		if !o.charged() || o.Cost == 0 || o.Witness.Uncommitted {
			continue
		}
		v.Checked++
		sum += o.Cost
		allowed, since := 0.0, o.Return-x.from
		switch {
		case l.Algorithm == bucket.TokenBucket || l.Algorithm == bucket.LeakyBucket:
			allowed = rate*float64(since) + 1
		case since >= window:
			return
		}
		for _, g := range back {
			if g.overlaps(x.from, o.Return) {
				allowed += float64(g.Tokens)
			}
		}
		if float64(sum) > allowed {
			v.find(name, []Op{o}, "%d tokens admitted within %v of the beginning of epoch %d, at most %.1f may be", sum, since, o.Witness.Epoch, allowed)
			return
		}
	}
}
