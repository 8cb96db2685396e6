package check

// Final holds that once a bucket that refills nothing has denied a take, no take of
// the same cost or more that was called later is admitted, unless tokens were given
// back, or it may have lost its state and be full by that (Setup.OnLoss).
//
// A denial that leaves r tokens forbids every later cost > r. Buckets whose charges
// may be undone are left alone. Cost: n log n.
func Final(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	undone := set(s.Spread)
	return each("final", ops, func(v *Verdict, bucket string, ops []Op) {
		if _, ok := frozen(s, bucket, ops); !ok || undone[bucket] {
			return
		}
		admitted := make(map[any]bool) // ids that some copy was admitted for: a later copy repeats that
		for i := range ops {
			if ops[i].Kind == Refund && ops[i].Outcome != Refused {
				return
			}
		}
		ended, calls := byReturn(ops), byCall(ops)
		var strictest *Op
		next := 0
		for i := range calls {
			o := &calls[i]
			for ; next < len(ended) && ended[next].precedes(o); next++ {
				p := &ended[next]
				if p.ID != "" && p.charged() {
					admitted[p.ID] = true
				}
				if p.takes() && p.Outcome == Denied && p.answered() && !p.elsewhere() && (strictest == nil || p.Remaining < strictest.Remaining) {
					strictest = p
				}
			}
			if strictest == nil || !o.charged() {
				continue
			}
			v.Checked++
			again := len(s.gifts(bucket, ops)) > 0 && s.lost(strictest, o)
			if o.Cost > strictest.Remaining && !admitted[o.ID] && !unknownBefore(ops, o) && !again {
				v.find(bucket, []Op{*strictest, *o}, "a take of %d was admitted, although a denial had said before it was called that %d are left", o.Cost, strictest.Remaining)
			}
		}
	})
}

// unknownBefore says whether a copy of o was under way before it, which may have
// been charged then.
func unknownBefore(ops []Op, o *Op) bool {
	if o.ID == "" {
		return false
	}
	for i := range ops {
		if p := &ops[i]; p.ID == o.ID && p.Call < o.Call {
			return true
		}
	}
	return false
}
