package check

import "slices"

// The order of answers of one slot time, of which some are known from repetitions
// alone.

// moment replays the answers of one slot time: those that the log places in its
// order, and between them the charges known only from repetitions. While time stands
// still a level only falls, so one that left more comes first. A refund in between
// may let it rise: then other orders are tried too, and if none explains the answers
// that is a doubt, as not all orders are.
func (r *replay) moment(steps []Op) bool {
	if !slices.ContainsFunc(steps, func(o Op) bool { return o.Witness.Repeated }) {
		return r.play(steps, allFirst)
	}
	refunds := false
	for _, order := range []tieOrder{allFirst, chargesFirst, noneFirst} {
		t := *r
		t.v = &Verdict{Checker: r.v.Checker}
		if t.model != nil {
			t.model = t.model.clone()
		}
		ok := t.play(steps, order)
		if refunds = refunds || t.given > 0; len(t.v.Findings) == 0 {
			r.v.add(*t.v)
			t.v = r.v
			*r = t
			return ok
		}
	}
	if refunds {
		r.v.doubt("bucket %s: the order of refunds and repeated charges at slot time %v is not known", r.name, steps[0].Witness.SlotTime)
		return false
	}
	return r.play(steps, allFirst)
}

// tieOrder says before which answers of the same slot time a repeated charge comes
// that left more.
type tieOrder int

const (
	allFirst     tieOrder = iota // before all
	chargesFirst                 // before charges: what was denied may have been before a refund
	noneFirst
)

func (r *replay) play(steps []Op, order tieOrder) bool {
	var placed, floating []Op
	for _, o := range steps {
		if o.Witness.Repeated {
			floating = append(floating, o)
		} else {
			placed = append(placed, o)
		}
	}
	slices.SortStableFunc(floating, func(a, b Op) int { return compare(b.Remaining, a.Remaining) })
	for len(placed)+len(floating) > 0 {
		next := &placed
		if len(placed) == 0 || len(floating) > 0 && r.first(&floating[0], &placed[0], order) {
			next = &floating
		}
		if !r.step(&(*next)[0]) {
			return false
		}
		*next = (*next)[1:]
	}
	return true
}

// first says whether the charge f came before o, of the same slot time.
func (r *replay) first(f, o *Op, order tieOrder) bool {
	if fits := r.fits(f); fits != r.fits(o) {
		return fits
	}
	charge := o.charged() && o.Cost > 0
	switch {
	case order == noneFirst || order == chargesFirst && !charge:
		return false
	case charge:
		return f.Remaining > o.Remaining
	}
	return f.Remaining >= o.Remaining
}

// fits tries o without keeping anything.
func (r *replay) fits(o *Op) bool {
	if r.model == nil || r.unclear {
		return true
	}
	trial := *r
	trial.model = r.model.clone()
	trial.prepare(o)
	if trial.unclear {
		return true
	}
	wrong, _, _ := trial.model.judge(o)
	return wrong == ""
}
