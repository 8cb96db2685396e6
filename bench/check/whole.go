package check

// Whole judges answers under several limits: each is all or nothing. Admitted means
// that no limit that counts denied; denied means that one did; and the limits of one
// answer name one version of each policy. Cost: linear.
func Whole(_ *Setup, ops []Op) Verdict {
	v := Verdict{Checker: "whole"}
	by, order := make(map[uint64][]Op), []uint64(nil)
	for i := range ops {
		o := &ops[i]
		if o.Request == 0 || !o.takes() && o.Kind != Look || !o.answered() {
			continue
		}
		if by[o.Request] == nil {
			order = append(order, o.Request)
		}
		by[o.Request] = append(by[o.Request], *o)
	}
	for _, r := range order {
		v.Checked++
		judgeWhole(&v, by[r])
	}
	return v
}

func judgeWhole(v *Verdict, ops []Op) {
	denied := false
	versions := make(map[string]uint64)
	for i := range ops {
		o := &ops[i]
		if o.Outcome != ops[0].Outcome {
			v.find("", ops, "one answer is admitted and denied at once")
			return
		}
		if !o.Passed && !o.Shadow {
			denied = true
			if o.Outcome == Admitted {
				v.find(o.Bucket, ops, "a request was admitted although this bucket denied it")
				return
			}
		}
		if was, ok := versions[o.Policy]; ok && was != o.Version && o.Policy != "" {
			v.find(o.Bucket, ops, "one answer mixes versions %d and %d of policy %s", was, o.Version, o.Policy)
			return
		}
		versions[o.Policy] = o.Version
	}
	if !denied && ops[0].Outcome == Denied {
		v.find("", ops, "a request was denied although no bucket denied it")
	}
}
