package check

import (
	"slices"
	"time"
)

// sequence is the answers about one bucket in the order in which the bucket saw
// them, one list for each life of its state. Slot time runs on through moves, so it is
// the order; where it stands still, index and position are. A repetition stands at the
// time of its first decision, once, and only if that was not answered itself.
//
// What was judged at an applied state stands right behind the last entry of its log
// that this state had, though its own time may be later than that of the next.
//
// earlier are repetitions of charges that an earlier life decided and nobody was told of
// then: they are in no life.
func sequence(s *Setup, ops []Op) (lives []life, earlier []Op) {
	var shown []Op
	for i := range ops {
		if o, w := &ops[i], &ops[i].Witness; w.Index > 0 && w.SlotTime > 0 && o.answered() && !o.elsewhere() && (o.takes() || o.Kind == Look) {
			shown = append(shown, *o)
		}
	}
	lives = s.lives(shown)
	for i := range lives {
		committed, peeks := parted(onceEach(lives[i].ops))
		if lives[i].mayKnow(s) {
			var before []Op
			committed, before = sinceFirst(committed)
			earlier = append(earlier, before...)
		}
		lives[i].ops = merge(committed, peeks)
	}
	return lives, earlier
}

// sinceFirst parts repetitions of what may have been charged before the first answer
// that was decided here from the others. Those of its very moment may be of either side,
// because a salvaged slot goes on where it was, and are before.
func sinceFirst(ops []Op) (kept, before []Op) {
	n := slices.IndexFunc(ops, func(o Op) bool { return !o.Witness.Repeated })
	if n < 0 {
		return nil, ops
	}
	begun := ops[n].Witness.SlotTime
	for i := range ops {
		o := &ops[i]
		if !o.Witness.Repeated || o.Witness.SlotTime > begun {
			kept = append(kept, *o)
		} else {
			before = append(before, *o)
		}
	}
	return kept, before
}

// onceEach leaves out repetitions of what was answered itself, or repeated before.
func onceEach(ops []Op) (out []Op) {
	answered := make(map[string]bool)
	for i := range ops {
		if o := &ops[i]; o.ID != "" && o.charged() && !o.Witness.Repeated {
			answered[o.ID] = true
		}
	}
	for i := range ops {
		o := &ops[i]
		if o.Witness.Repeated && o.ID != "" {
			if answered[o.ID] {
				continue
			}
			answered[o.ID] = true
		}
		out = append(out, *o)
	}
	return out
}

// merge puts peeks behind what they had seen. A charge of which only a repetition is
// known has a time and no index: a peek that may or may not have seen it is left out.
func merge(committed, peeks []Op) []Op {
	if len(peeks) == 0 {
		return committed
	}
	type entry struct {
		index uint64
		at    int // in committed
	}
	logs := make(map[logName][]entry)
	for i := range committed {
		w := &committed[i].Witness
		if n := (logName{w.Group, w.Epoch}); !w.Repeated {
			logs[n] = append(logs[n], entry{w.Index, i})
		}
	}
	behind := make([][]Op, len(committed)+1) // what comes before committed[i]
	for _, p := range peeks {
		w := &p.Witness
		list := logs[logName{w.Group, w.Epoch}]
		k, _ := slices.BinarySearchFunc(list, w.Index, func(e entry, index uint64) int {
			if e.index <= index {
				return -1
			}
			return 1
		})
		at := 0
		switch {
		case k > 0:
			at = list[k-1].at + 1
		case len(list) > 0:
			at = unseen(committed, list[0].at)
		default:
			at = unseen(committed, beforeTime(committed, w.SlotTime))
		}
		for at > 0 && at < len(committed) && floats(&committed[at], committed[at-1].Witness.SlotTime) {
			at++
		}
		if at == len(committed) || !floats(&committed[at], 0) || committed[at].Witness.SlotTime > w.SlotTime {
			behind[at] = append(behind[at], p)
		}
	}
	out := make([]Op, 0, len(committed)+len(peeks))
	for i := range behind {
		out = append(out, behind[i]...)
		if i < len(committed) {
			out = append(out, committed[i])
		}
	}
	return out
}

// unseen is the place before the floating ones that stand before at.
func unseen(committed []Op, at int) int {
	for at > 0 && floats(&committed[at-1], 0) {
		at--
	}
	return at
}

// floats says whether o is a repetition of a charge at that slot time; 0: at any.
func floats(o *Op, at time.Duration) bool {
	return o.Witness.Repeated && (at == 0 || o.Witness.SlotTime == at)
}

// beforeTime is how many of ops, in order of slot time, are not after a time.
func beforeTime(ops []Op, at time.Duration) int {
	n, _ := slices.BinarySearchFunc(ops, at, func(o Op, at time.Duration) int {
		if o.Witness.SlotTime <= at {
			return -1
		}
		return 1
	})
	return n
}

// sameMoment is how many of the first steps are of one slot time. What was judged at
// an applied state is a moment of its own.
func sameMoment(steps []Op) int {
	if steps[0].Witness.Uncommitted {
		return 1
	}
	n := 1
	for n < len(steps) && !steps[n].Witness.Uncommitted && steps[n].Witness.SlotTime == steps[0].Witness.SlotTime {
		n++
	}
	return n
}
