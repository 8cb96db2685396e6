package check

import "slices"

// Once holds that there is one charge per id (I7). All admitted copies have the same answer; one that
// was judged after an admission is not denied; at most one copy was charged rather
// than repeated (this one needs witnesses); and what comes with another body under
// an admitted id is refused as id_reused or too_old.
//
// An id that was refunded or that another group denied may be denied later: ids with
// a Refund, and buckets whose charges may be undone, are spared that part. What lost
// its state has lost its ids: copies between which that may have been are not
// compared. Cost: linear, and for each id the square of its copies, at most 64.
func Once(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	undone := set(s.Spread)
	return each("once", ops, func(v *Verdict, bucket string, ops []Op) {
		copies, order := make(map[string][]Op), []string(nil)
		for i := range ops {
			if o := &ops[i]; o.ID != "" && o.Kind != Look {
				if copies[o.ID] == nil {
					order = append(order, o.ID)
				}
				copies[o.ID] = append(copies[o.ID], *o)
			}
		}
		for _, id := range order {
			if c := copies[id]; len(c) > 1 {
				v.Checked += len(c)
				once(s, v, bucket, c, undone[bucket])
			}
		}
	})
}

const maxCopies = 64

// once judges the copies of one id, each against the first admission before it that
// it must know of; it finds at most one thing of a kind.
func once(s *Setup, v *Verdict, bucket string, ops []Op, undone bool) {
	ops = ops[:min(len(ops), maxCopies)]
	refunded := slices.ContainsFunc(ops, func(o Op) bool { return o.Kind == Refund && o.Outcome != Refused })
	var charged, firsts []Op // firsts: one for each time that the state was lost
	for i := range ops {
		if o := &ops[i]; o.charged() && o.Cost > 0 {
			charged = append(charged, *o)
			if f := known(s, firsts, o); f == nil {
				firsts = append(firsts, *o)
			} else {
				alike(v, bucket, f, o)
			}
		}
	}
	chargedOnce(s, v, bucket, charged)
	for i := range ops {
		o := &ops[i]
		f := known(s, firsts, o)
		if f == nil || !o.takes() || !f.precedes(o) || o.Outcome == Unknown {
			continue
		}
		switch {
		case o.Body != f.Body && (o.Outcome != Refused || o.Code != "id_reused" && NotCharged(o.Code) && isJudgement(o.Code)):
			v.find(bucket, []Op{*f, *o}, "another body under the admitted id %s was not refused as reused", o.ID)
		case o.Body == f.Body && o.Outcome == Denied && !undone && !refunded && !o.Degraded:
			v.find(bucket, []Op{*f, *o}, "a copy of id %s was denied after another had been admitted", o.ID)
		case o.Body == f.Body && o.Code == "id_reused":
			v.find(bucket, []Op{*f, *o}, "a copy of id %s with the same body was refused as reused", o.ID)
		}
	}
}

// known is the admission that certainly was not lost before o, or o before it.
func known(s *Setup, firsts []Op, o *Op) *Op {
	for i := range firsts {
		if !s.lost(&firsts[i], o) {
			return &firsts[i]
		}
	}
	return nil
}

func alike(v *Verdict, bucket string, first, o *Op) {
	if o.Body != first.Body {
		v.find(bucket, []Op{*first, *o}, "id %s was admitted with two different bodies", o.ID)
	} else if !sameAnswer(first, o) {
		v.find(bucket, []Op{*first, *o}, "two copies under id %s got different answers", o.ID)
	}
}

// chargedOnce finds copies that were charged rather than repeated.
func chargedOnce(s *Setup, v *Verdict, bucket string, ops []Op) {
	var charges []Op
	for i := range ops {
		if w := &ops[i].Witness; w.Index > 0 && !w.Repeated && w.Position > 0 {
			charges = append(charges, ops[i])
		}
	}
	for i := range charges {
		same := slices.DeleteFunc(slices.Clone(charges[i:]), func(o Op) bool { return s.lost(&charges[i], &o) })
		if len(same) > 1 {
			v.find(bucket, same, "id %s was charged %d times", same[0].ID, len(same))
			return
		}
	}
}

// isJudgement says whether a refusal comes from a bucket table and not from the way
// there; too_old is right for any copy of an id that is forgotten.
func isJudgement(code string) bool { return code == "store_full" || code == "invalid_argument" }

// sameAnswer compares what must not differ between an answer and its repetition:
// all that it says about the bucket, but not where the repetition was made.
func sameAnswer(a, b *Op) bool {
	return a.Passed == b.Passed && a.Capacity == b.Capacity && a.Remaining == b.Remaining &&
		a.ResetAfter == b.ResetAfter && a.RetryAfter == b.RetryAfter && a.Delay == b.Delay && a.Reason == b.Reason &&
		a.Version == b.Version && a.Permit == b.Permit && a.Token == b.Token && a.Shadow == b.Shadow &&
		(a.Witness.Index == 0 || b.Witness.Index == 0 || a.Witness.SlotTime == b.Witness.SlotTime || a.Witness.Position == 0)
}
