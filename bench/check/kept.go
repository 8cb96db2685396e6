package check

import "time"

// Kept holds that the time that passes is kept (I3): between two answers of one log
// about one bucket slot time goes on by no less than
//
//	(call of the later − return of the earlier) × (1 − drift) − lost time
//
// where each fault that overlaps costs Setup.LostTime, and so does each term. Only
// neighbours are judged, so that what was lost at one fault is not hidden by the
// next. Nothing is held against what was judged at an applied state, which a deposed
// leader may have done, ahead of the next. Starved asks what came of it, and sees
// nothing of an outage in which a bucket would have become full, nor where as much may
// have been taken by requests without an outcome. Cost: n log n.
func Kept(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	return each("kept", ops, func(v *Verdict, bucket string, ops []Op) {
		for _, l := range s.lives(timed(ops)) {
			v.Checked += len(l.ops)
			kept(s, v, bucket, l.ops)
		}
	})
}

// kept judges each operation against the latest slot time that had been answered
// before it was called; it finds at most one thing.
func kept(s *Setup, v *Verdict, bucket string, ops []Op) {
	ended, next := byReturn(ops), 0
	var last *Op
	for _, o := range byCall(ops) {
		for ; next < len(ended) && ended[next].precedes(&o); next++ {
			if p := &ended[next]; !p.Witness.Uncommitted && (last == nil || p.Witness.SlotTime >= last.Witness.SlotTime) {
				last = p
			}
		}
		if last == nil || last.Witness.Group != o.Witness.Group || last.Witness.Epoch != o.Witness.Epoch ||
			o.Witness.Uncommitted && o.Witness.Index < last.Witness.Index {
			continue
		}
		times := max(s.faultsIn(last.Call, o.Return), int(o.Witness.Term-min(o.Witness.Term, last.Witness.Term)))
		least := time.Duration(float64(o.Call-last.Return)*(1-s.drift())) - time.Duration(times)*s.lostTime() - time.Microsecond
		if went := o.Witness.SlotTime - last.Witness.SlotTime; went < least {
			v.find(bucket, []Op{*last, o}, "slot time went on by %v in at least %v", went, o.Call-last.Return)
			return
		}
	}
}
