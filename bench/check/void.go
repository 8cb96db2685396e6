package check

// Void says why a run proves nothing, in its Doubts: too few admissions, none while
// a fault was on or none after it, or faults that no request met. A void run is not
// green. Cost: operations times faults.
func Void(s *Setup, ops []Op) Verdict {
	v := Verdict{Checker: "void"}
	least := s.MinAnswers
	if least <= 0 {
		least = DefaultMinAnswers
	}
	for i := range ops {
		if ops[i].charged() {
			v.Checked++
		}
	}
	if v.Checked < least {
		v.doubt("only %d admissions, want %d", v.Checked, least)
	}
	for _, f := range s.Faults {
		met, before, after := 0, 0, 0
		for i := range ops {
			o := &ops[i]
			switch {
			case o.Call <= f.To && f.From <= o.Return:
				met++
			case !o.answered():
			case o.Return < f.From:
				before++
			default:
				after++
			}
		}
		switch {
		case met == 0:
			v.doubt("no request was under way during %s (%v to %v)", f.Name, f.From, f.To)
		case before == 0 || after == 0:
			v.doubt("%d answers before %s (%v to %v) and %d after it", before, f.Name, f.From, f.To, after)
		}
	}
	return v
}
