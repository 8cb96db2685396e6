package check

import "slices"

// logName is one log: an epoch of a group.
type logName struct{ group, epoch uint32 }

// logs sorts the operations that say where they were decided by log, in order of
// index and position; those judged at an applied state come behind its index.
func logs(ops []Op) map[logName][]Op {
	by := make(map[logName][]Op)
	for i := range ops {
		if w := &ops[i].Witness; w.Index > 0 && ops[i].answered() {
			n := logName{w.Group, w.Epoch}
			by[n] = append(by[n], ops[i])
		}
	}
	for _, list := range by {
		slices.SortStableFunc(list, func(a, b Op) int { return inLog(&a.Witness, &b.Witness) })
	}
	return by
}

// inLog orders two places in one log.
func inLog(a, b *Witness) int {
	switch {
	case a.Index != b.Index:
		return compare(a.Index, b.Index)
	case a.Uncommitted != b.Uncommitted:
		if a.Uncommitted {
			return 1
		}
		return -1
	}
	return compare(a.Position, b.Position)
}

// Terms holds that along a log the term never falls, one index has one term (I12), and one
// place in an entry has one request. Cost: n log n.
func Terms(_ *Setup, ops []Op) Verdict {
	v := Verdict{Checker: "terms"}
	for name, list := range logs(ops) {
		var last *Op
		for i := range list {
			o := &list[i]
			if o.Witness.Uncommitted {
				continue
			}
			v.Checked++
			if last != nil {
				judgeTerms(&v, name, last, o)
			}
			last = o
		}
	}
	return v
}

func judgeTerms(v *Verdict, n logName, a, b *Op) {
	p, q := &a.Witness, &b.Witness
	switch {
	case q.Term < p.Term:
		v.find("", []Op{*a, *b}, "in group %d epoch %d, index %d came from term %d, index %d from term %d", n.group, n.epoch, p.Index, p.Term, q.Index, q.Term)
	case p.Index != q.Index:
	case p.Term != q.Term:
		v.find("", []Op{*a, *b}, "in group %d epoch %d, index %d came from term %d and from term %d", n.group, n.epoch, p.Index, p.Term, q.Term)
	case p.Position != 0 && p.Position == q.Position && (a.Request == 0 || a.Request != b.Request):
		v.find("", []Op{*a, *b}, "in group %d epoch %d, place %d of index %d answered two requests", n.group, n.epoch, p.Position, p.Index)
	}
}

// Order holds that what had returned before a request was called stands before it in
// the log
// (I6, linearizability of one group); a look that was answered from an applied state
// has that in it. Denials that the log did not decide are left out: a deposed leader
// may for a moment deny from what it knows. Looks that may be stale are no part of a
// history. Cost: n log n.
func Order(_ *Setup, ops []Op) Verdict {
	v := Verdict{Checker: "order"}
	for name, list := range logs(ops) {
		list = slices.DeleteFunc(list, func(o Op) bool { return o.Witness.Uncommitted && o.Kind != Look })
		v.Checked += len(list)
		ended, next := slices.DeleteFunc(byReturn(list), func(o Op) bool { return o.Witness.Uncommitted }), 0
		var latest *Op
		for _, o := range byCall(list) {
			for ; next < len(ended) && ended[next].precedes(&o); next++ {
				if latest == nil || ended[next].Witness.Index > latest.Witness.Index {
					latest = &ended[next]
				}
			}
			switch {
			case latest == nil || o.Witness.Index > latest.Witness.Index, o.Witness.Uncommitted && o.Witness.Index == latest.Witness.Index:
				continue
			case o.Witness.Uncommitted:
				v.find(o.Bucket, []Op{*latest, o}, "in group %d epoch %d, a look that was called after index %d had answered knew nothing beyond index %d",
					name.group, name.epoch, latest.Witness.Index, o.Witness.Index)
			default:
				v.find(o.Bucket, []Op{*latest, o}, "in group %d epoch %d, a request that was called after index %d had answered was decided at index %d",
					name.group, name.epoch, latest.Witness.Index, o.Witness.Index)
			}
			break
		}
	}
	return v
}
