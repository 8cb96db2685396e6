package check

import (
	"slices"
	"time"
)

// Time holds that slot time never steps back along a log and, in real time, for one
// bucket; and that it runs no faster than the checker's clock and the drift allowed:
// t_j − t_i ≤ (return_j − call_i)(1 + drift). A bucket that moves keeps its time; with
// its state it loses that too. A new leader goes by its own clock since an entry of
// the one before that is up to madeUp old, and so makes up for what that clock was
// slow since: over a change of leader drift × madeUp is added. What was judged at an applied state is held against
// the entries that this state had, and nothing against it: a leader that is deposed
// may be ahead of the next. Of clocks that are set (Setup.Bent) the first alone is asked. That time is not lost either is what Starved and Kept
// see. Cost: n log n.
func Time(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	return each("time", ops, func(v *Verdict, bucket string, ops []Op) {
		for _, l := range s.lives(timed(ops)) {
			committed, peeks := parted(l.ops)
			v.Checked += len(l.ops)
			neverBack(v, bucket, committed)
			if !s.Bent {
				neverFast(s, v, bucket, merge(committed, peeks))
			}
		}
	})
}

// timed are the operations that know their slot time.
func timed(ops []Op) (out []Op) {
	for i := range ops {
		if w := &ops[i].Witness; w.Index > 0 && w.SlotTime > 0 && !w.Repeated && ops[i].answered() && !ops[i].elsewhere() {
			out = append(out, ops[i])
		}
	}
	return out
}

// parted are what the log decided, in order of slot time, and what was judged at an
// applied state.
func parted(ops []Op) (committed, peeks []Op) {
	for i := range ops {
		if ops[i].Witness.Uncommitted {
			peeks = append(peeks, ops[i])
		} else {
			committed = append(committed, ops[i])
		}
	}
	sortBySlotTime(committed)
	return committed, peeks
}

func sortBySlotTime(ops []Op) {
	slices.SortStableFunc(ops, func(a, b Op) int {
		p, q := &a.Witness, &b.Witness
		switch {
		case p.SlotTime != q.SlotTime:
			return compare(p.SlotTime, q.SlotTime)
		case p.Group == q.Group && p.Epoch == q.Epoch:
			return inLog(p, q)
		}
		return compare(a.Call, b.Call)
	})
}

func neverBack(v *Verdict, bucket string, ops []Op) {
	last := make(map[logName]*Op)
	for i := range ops { // in slot time; so the index must not fall
		o := &ops[i]
		n := logName{o.Witness.Group, o.Witness.Epoch}
		if p := last[n]; p != nil && o.Witness.Index < p.Witness.Index {
			v.find(bucket, []Op{*o, *p}, "slot time stepped back from %v at index %d to %v at index %d",
				o.Witness.SlotTime, o.Witness.Index, p.Witness.SlotTime, p.Witness.Index)
			return
		}
		last[n] = o
	}
}

// madeUp is how far back a new leader may look for the stamp that says most.
const madeUp = 30 * time.Second

// neverFast keeps, of the operations so far, the one whose slot time is furthest
// behind its call.
func neverFast(s *Setup, v *Verdict, bucket string, ops []Op) {
	fast := 1 + s.drift()
	ahead := func(o *Op, at time.Duration) float64 { return float64(o.Witness.SlotTime) - fast*float64(at) }
	var base *Op // with the least of slot time − fast × call
	for i := range ops {
		o := &ops[i]
		if base != nil && ahead(o, o.Return) > ahead(base, base.Call)+s.slack(base, o) {
			v.find(bucket, []Op{*base, *o}, "slot time went on by %v in at most %v", o.Witness.SlotTime-base.Witness.SlotTime, o.Return-base.Call)
			return
		}
		if !o.Witness.Uncommitted && (base == nil || ahead(o, o.Call) < ahead(base, base.Call)) {
			base = o
		}
	}
}

// slack is how much further than time b may be from a, in ns.
func (s *Setup) slack(a, b *Op) float64 {
	if leaders(a, b) == 0 {
		return float64(time.Microsecond)
	}
	return float64(time.Microsecond) + s.drift()*float64(madeUp)
}
