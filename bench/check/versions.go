package check

import "slices"

// Versions holds that policy versions never go back (I14). For one bucket, an answer that was
// asked for after another had returned names no older version; and along one log,
// the versions of a policy do not fall. Whole sees those mixed in one answer.
//
// Repetitions tell of their first decision and are left out, and so are answers
// from a leader's applied state: a deposed one may for a moment deny by what it
// knows. Cost: n log n.
func Versions(_ *Setup, ops []Op) Verdict {
	v := Verdict{Checker: "versions"}
	copies := make(map[string]int)
	for i := range ops {
		if o := &ops[i]; o.ID != "" && o.takes() {
			copies[o.ID+"\x00"+o.Bucket]++
		}
	}
	type place struct {
		policy, bucket string
		group, epoch   uint32
	}
	inTime, inLog := make(map[place][]Op), make(map[place][]Op)
	for i := range ops {
		o, w := &ops[i], &ops[i].Witness
		repeated := w.Repeated || w.Position == 0 && copies[o.ID+"\x00"+o.Bucket] > 1
		if o.Policy == "" || !o.answered() || repeated || w.Uncommitted {
			continue
		}
		v.Checked++
		p := place{policy: o.Policy, bucket: o.Bucket}
		inTime[p] = append(inTime[p], *o)
		if w.Index > 0 {
			p = place{policy: o.Policy, group: w.Group, epoch: w.Epoch}
			inLog[p] = append(inLog[p], *o)
		}
	}
	for p, ops := range inTime {
		versionsInTime(&v, p.policy, ops)
	}
	for p, ops := range inLog {
		versionsInLog(&v, p.policy, ops)
	}
	return v
}

func versionsInTime(v *Verdict, policy string, ops []Op) {
	ended, newest, next := byReturn(ops), (*Op)(nil), 0
	for _, o := range byCall(ops) {
		for ; next < len(ended) && ended[next].precedes(&o); next++ {
			if newest == nil || ended[next].Version > newest.Version {
				newest = &ended[next]
			}
		}
		if newest != nil && o.Version < newest.Version {
			v.find(o.Bucket, []Op{*newest, o}, "policy %s went back from version %d to %d", policy, newest.Version, o.Version)
			return
		}
	}
}

func versionsInLog(v *Verdict, policy string, ops []Op) {
	slices.SortStableFunc(ops, func(a, b Op) int { return compare(a.Witness.Index, b.Witness.Index) })
	newest := 0 // of the entries before this one
	for i, first := 1, 0; i < len(ops); i++ {
		if ops[i].Witness.Index != ops[first].Witness.Index {
			for ; first < i; first++ {
				if ops[first].Version > ops[newest].Version {
					newest = first
				}
			}
		} else {
			continue
		}
		if ops[i].Version < ops[newest].Version {
			v.find(ops[i].Bucket, []Op{ops[newest], ops[i]}, "along the log of group %d, policy %s went back from version %d to %d",
				ops[i].Witness.Group, policy, ops[newest].Version, ops[i].Version)
			return
		}
	}
}
