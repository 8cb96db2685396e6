package check

import (
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// Replay makes every answer again, in the order of the log, with a model of the
// limit (model.go), and compares all its numbers (I6, I10, I11, I14). A bucket that
// moves from group to group goes on in slot time; one in a new epoch of its group
// begins as Setup.OnLoss says, exactly where that is certain, else within bounds (see
// begin). Buckets are taken to be fresh at the beginning of the history, which must be
// whole.
//
// Requests whose outcome is unknown, refunds, and answers without a witness may have
// changed the bucket at any time after their call: until answers show that they have,
// a token or leaky bucket or a fixed window is known within a range only; of the
// other window algorithms nothing more can be said, which is a doubt. Concurrency
// limits, and buckets whose charges may be undone, are left to other checkers.
//
// Cost: n log n, about 3 µs an answer.
func Replay(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	undone := set(s.Spread)
	return each("replay", ops, func(v *Verdict, name string, ops []Op) {
		l, ok := s.Limits[name]
		if !ok || l.Algorithm == bucket.Concurrency || undone[name] {
			return
		}
		lives, earlier := sequence(s, ops)
		r := &replay{s: s, v: v, name: name, limit: l, hidden: hidden(s, name, ops, earlier)}
		for i := range lives {
			r.begins = &lives[i]
			if !r.life(lives[i].ops) {
				return
			}
		}
	})
}

func (r *replay) life(steps []Op) bool {
	for at, n := 0, 0; at < len(steps); at += n {
		n = sameMoment(steps[at:])
		if !r.moment(steps[at : at+n]) {
			return false
		}
	}
	return true
}

// replay is one bucket being replayed.
type replay struct {
	s     *Setup
	v     *Verdict
	name  string
	limit Limit
	model model
	last  *Op // that changed or showed the bucket

	begins *life // whose first answer is to be replayed; nil: none
	absent bool  // its state was lost, and nothing was charged since: there is no bucket

	hidden  []change // not seen in the log, in order of their calls
	seen    int      // how many of them may have happened
	latest  time.Duration
	taken   uint64 // tokens that hidden changes may still take, and give
	given   uint64
	unclear bool // the model cannot follow any more
}

// change is something that may have happened at any time after a call.
type change struct {
	call         time.Duration
	taken, given uint64
}

// hidden collects what is not in the log of its life. A copy of an id that was answered
// for its charge is no change of its own; what was repeated in a later life than that of
// its charge is one, which may be in either.
func hidden(s *Setup, name string, ops, earlier []Op) (out []change) {
	ids := idsOf(ops)
	for i := range ops {
		switch o := &ops[i]; {
		case o.Kind == Refund && (o.Outcome == Admitted || o.Outcome == Unknown):
			out = append(out, change{call: o.Call, given: refundOf(o, ids[o.ID].took)})
		case o.ID != "" && ids[o.ID].placed:
		case o.maybe(), o.charged() && o.Witness.SlotTime == 0:
			out = append(out, change{call: o.Call, taken: o.Cost})
		}
	}
	counted := make(map[string]bool)
	for i := range earlier {
		switch o := &earlier[i]; {
		case !o.charged() || ids[o.ID].decided || counted[o.ID]:
		case o.ID == "":
			out = append(out, change{call: o.Call, taken: o.Cost})
		default:
			counted[o.ID] = true
			out = append(out, change{call: ids[o.ID].called, taken: o.Cost})
		}
	}
	for _, g := range s.Given {
		if g.Bucket == "" || g.Bucket == name {
			out = append(out, change{call: g.From, given: g.Tokens})
		}
	}
	slices.SortStableFunc(out, func(a, b change) int { return compare(a.call, b.call) })
	return out
}

// copies is what the copies of one request id have shown.
type copies struct {
	took    uint64        // what one of them costs
	called  time.Duration // the first
	placed  bool          // the charge is in the log: an answer says where
	decided bool          // … and it is that of the decision itself
}

func idsOf(ops []Op) map[string]copies {
	ids := make(map[string]copies)
	for i := range ops {
		o := &ops[i]
		if o.ID == "" || !o.takes() {
			continue
		}
		c, seen := ids[o.ID]
		if !seen || o.Call < c.called {
			c.called = o.Call
		}
		c.took = max(c.took, o.Cost)
		c.placed = c.placed || o.charged() && o.Witness.SlotTime > 0
		c.decided = c.decided || o.charged() && o.Witness.SlotTime > 0 && !o.Witness.Repeated
		ids[o.ID] = c
	}
	return ids
}

// prepare brings the model to the moment of o.
func (r *replay) prepare(o *Op) {
	now := int64(o.Witness.SlotTime)
	l, _ := r.s.limit(r.name, o.Version)
	switch {
	case r.begins != nil:
		r.begin(l, o)
	case l != r.limit:
		r.change(l, o)
	}
	if r.unclear = r.unclear || r.model == nil; r.unclear {
		return
	}
	r.model.advance(now)
	for r.latest = max(r.latest, o.Return); r.seen < len(r.hidden) && r.hidden[r.seen].call <= r.latest; r.seen++ {
		r.taken += r.hidden[r.seen].taken
		r.given += r.hidden[r.seen].given
	}
	if r.taken > 0 || r.given > 0 {
		r.model.widen(r.taken, r.given)
		r.unclear = r.unclear || r.model.exact()
	}
}

// step replays o; false: the bucket is done with, and the finding is made.
func (r *replay) step(o *Op) bool {
	keep := *r
	if o.Witness.Uncommitted && r.model != nil {
		r.model = r.model.clone() // it changes nothing
	}
	r.prepare(o)
	if r.unclear {
		r.v.doubt("bucket %s: from %v on, the outcomes that are unknown leave too much open", r.name, o.Call)
		return false
	}
	wrong, taken, given := r.model.judge(o)
	if wrong != "" {
		r.v.find(r.name, seen(r.last, o), "an answer does not follow from those before it in the log: %s", wrong)
		return false
	}
	r.v.Checked++
	if o.Witness.Uncommitted && keep.model != nil {
		r.model, r.limit, r.begins = keep.model, keep.limit, keep.begins
		return true
	}
	r.taken -= min(taken, r.taken)
	r.given -= min(given, r.given)
	r.last, r.absent = o, r.absent && !o.charged()
	return true
}

func seen(ops ...*Op) (out []Op) {
	for _, o := range ops {
		if o != nil {
			out = append(out, *o)
		}
	}
	return out
}
