package check

import "time"

// Epochs holds that a group is made anew only when it has lost a majority for good: by
// Setup.Memory as many nodes with a replica of it were without their memory at one time as
// break its majority, once for each new epoch. It cannot tell which of two epochs in a row
// was needless when a third process had ended meanwhile. Of a group that was never seen
// before its loss it says nothing. Cost: new epochs times the square of the processes that
// ended.
func Epochs(s *Setup, ops []Op) Verdict {
	v := Verdict{Checker: "epochs"}
	if s.Memory == nil {
		return v
	}
	groups := make(map[uint32]bool)
	for _, h := range s.Memory.homes {
		groups[h.group] = true
	}
	v.Checked = len(groups) // that each of them stays what it was
	spent := make(map[uint32]time.Duration)
	for g := range groups {
		spent[g] = -1
	}
	for _, l := range s.knowing(ops).Losses { // in order of their epochs
		if !s.Memory.saw(l.Group, l.To) {
			v.doubt("group %d was not seen before its epoch %d", l.Group, l.Epoch)
			continue
		}
		at, ok := s.Memory.lost(l.Group, spent[l.Group], l.To)
		if !ok {
			v.find("", nil, "group %d has a new epoch, %d, by %v, though no majority of it had been lost", l.Group, l.Epoch, l.To)
			continue
		}
		spent[l.Group] = at
	}
	return v
}
