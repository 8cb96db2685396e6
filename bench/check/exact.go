package check

// Exact holds the strongest promise, I1, for buckets that refill nothing: never is
// more charged than they hold, each logical request counted once; and of a bucket
// in Setup.Exactly, no less: all of it is charged, and no request stays unknown.
//
// It cannot see a charge that stands twice unless the bucket is in Exactly. A bucket
// that may have lost its state may admit less, and more only by what Setup.OnLoss
// grants it. Cost: linear.
func Exact(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	exactly := set(s.Exactly)
	return each("exact", ops, func(v *Verdict, bucket string, ops []Op) {
		l, ok := frozen(s, bucket, ops)
		if !ok {
			return
		}
		t := tallyOf(ops)
		v.Checked = t.answers
		have := capacity(l) + t.refunded
		for _, g := range s.gifts(bucket, ops) {
			have += g.Tokens
		}
		if t.charged > have {
			v.find(bucket, t.last(), "%d tokens admitted of %d (%d refunded)", t.charged, capacity(l), t.refunded)
		}
		if !exactly[bucket] || len(s.lossesOf(ops)) > 0 {
			return
		}
		for i := range ops {
			if o := &ops[i]; o.takes() && o.Outcome != Admitted && o.Outcome != Denied && !t.settled[logical(o, i)] {
				v.find(bucket, ops[i:i+1], "a take that should have been retried until it got an answer ended without: %v %s", o.Outcome, o.Code)
			}
			if ops[i].Degraded {
				v.find(bucket, ops[i:i+1], "an answer was given without the cluster")
			}
		}
		if wanted := min(have, t.asked); t.charged < wanted && len(v.Findings) == 0 {
			v.find(bucket, nil, "%d tokens admitted, %d were asked for and %d are there: exactly %d must be", t.charged, t.asked, have, wanted)
		}
	})
}

// tally is what logical requests asked and got.
type tally struct {
	answers        int
	asked, charged uint64 // tokens
	refunded       uint64 // at most: also by refunds whose outcome is unknown
	settled        map[any]bool
	admitted       []Op
}

func tallyOf(ops []Op) tally {
	t := tally{settled: make(map[any]bool)}
	seen, charged := make(map[any]bool), make(map[any]bool)
	took := make(map[string]uint64)
	for i := range ops {
		if o := &ops[i]; o.ID != "" && o.takes() {
			took[o.ID] = max(took[o.ID], o.Cost)
		}
	}
	for i := range ops {
		o := &ops[i]
		name := logical(o, i)
		if o.Kind == Refund && o.Outcome != Denied && o.Outcome != Refused {
			t.refunded += refundOf(o, took[o.ID])
			continue
		}
		if !o.takes() {
			continue
		}
		if !seen[name] {
			seen[name] = true
			t.asked += o.Cost
		}
		if o.Outcome == Admitted || o.Outcome == Denied {
			t.answers++
			t.settled[name] = true
		}
		if o.charged() && !charged[name] {
			charged[name] = true
			t.charged += o.Cost
			t.admitted = append(t.admitted, *o)
		}
	}
	return t
}

// refundOf is the most that a refund gave back of what its id had taken; 0: not
// known.
func refundOf(o *Op, took uint64) uint64 {
	switch {
	case o.Cost == 0:
		return took
	case took == 0:
		return o.Cost
	}
	return min(o.Cost, took)
}

// last are the last few admissions.
func (t *tally) last() []Op { return t.admitted[max(0, len(t.admitted)-3):] }
