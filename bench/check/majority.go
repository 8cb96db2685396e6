package check

// Majority holds that no answer comes from a group while it has no live majority (I18), as
// Setup.Silences has it: asked for and given within such a time. Cost: operations
// times silences.
func Majority(s *Setup, ops []Op) Verdict {
	v := Verdict{Checker: "majority"}
	for i := range ops {
		o := &ops[i]
		for _, q := range s.Silences {
			if q.Group != o.Witness.Group || o.Witness.Index == 0 || !o.answered() {
				continue
			}
			v.Checked++
			if o.Call >= q.From && o.Return <= q.To {
				v.find(o.Bucket, ops[i:i+1], "group %d answered between %v and %v, when it had no majority", q.Group, q.From, q.To)
			}
		}
	}
	return v
}
