package bucket

// An answer that is kept of an admitted request, 48 bytes, little endian:
//
//	0 key 16  16 slot 2  18 flags 2  20 rule 4  24 cost 4  28 remaining 4  32 reset after 8  40 extra 8
//
// The flags of the whole result are those of its first answer, whose place is
// there even when there is none: a mark is a result without answers.
const (
	answerSize  = 48
	answerSlot  = 16
	answerFlags = 18
	answerRule  = 20

	flagDenied   = 1 << 0 // a shadow that could not afford it; extra is its RetryAfter
	flagShadow   = 1 << 1
	flagReason   = 0b111 << 2
	reasonShift  = 2
	answerMask   = 1<<8 - 1
	flagGiven    = 1 << 8  // given back
	flagUndone   = 1 << 9  // every copy is denied: another group did
	flagRefunded = 1 << 10 // every copy is denied: it was refunded before it came, or is a lease that was returned
)

// stored is what is kept of one answer; the rest follows from its being
// admitted and from the rule.
type stored struct {
	key       Key
	slot      uint16
	flags     uint16
	rule      uint32
	cost      uint32 // charged
	remaining uint32
	reset     int64
	extra     uint64 // of kind.spend, or a retry time
}

func putStored(c []byte, a *stored) {
	le.PutUint64(c, a.key.Hi)
	le.PutUint64(c[8:], a.key.Lo)
	le.PutUint16(c[answerSlot:], a.slot)
	le.PutUint16(c[answerFlags:], a.flags|le.Uint16(c[answerFlags:])&^answerMask)
	le.PutUint32(c[answerRule:], a.rule)
	le.PutUint32(c[24:], a.cost)
	le.PutUint32(c[28:], a.remaining)
	le.PutUint64(c[32:], uint64(a.reset))
	le.PutUint64(c[40:], a.extra)
}

func getStored(c []byte) stored {
	return stored{
		key:  Key{Hi: le.Uint64(c), Lo: le.Uint64(c[8:])},
		slot: le.Uint16(c[answerSlot:]), flags: le.Uint16(c[answerFlags:]) & answerMask,
		rule: le.Uint32(c[answerRule:]), cost: le.Uint32(c[24:]), remaining: le.Uint32(c[28:]),
		reset: int64(le.Uint64(c[32:])), extra: le.Uint64(c[40:]),
	}
}

// answers is where result n keeps its answers, one after the other.
type answers struct {
	pool *pool
	n    uint32
	link int // where the record names the next one
}

func (d *ids) answers(n uint32) answers { return answers{pool: &d.pool, n: n, link: resultMore} }

func (a *answers) view() []byte { return a.pool.view(a.n)[resultAnswer:] }

func (a *answers) edit() []byte { return a.pool.edit(a.n)[resultAnswer:] }

func (a *answers) next() {
	a.n = le.Uint32(a.pool.view(a.n)[a.link:])
	a.link = recordNext
}

// recall appends the answers of result n to dst.
func (d *ids) recall(n uint32, dst []stored) []stored {
	at := d.answers(n)
	for i := range answersOf(d.pool.view(n)) {
		if i > 0 {
			at.next()
		}
		dst = append(dst, getStored(at.view()))
	}
	return dst
}

// amend writes what has become of the answers of result n.
func (d *ids) amend(n uint32, all []stored) {
	at := d.answers(n)
	for i := range all {
		if i > 0 {
			at.next()
		}
		putStored(at.edit(), &all[i])
	}
}

func (d *ids) flags(n uint32) uint16 {
	return le.Uint16(d.pool.view(n)[resultAnswer+answerFlags:]) &^ answerMask
}

func (d *ids) setFlags(n uint32, flags uint16) {
	c := d.pool.edit(n)[resultAnswer+answerFlags:]
	le.PutUint16(c, le.Uint16(c)|flags)
}

// remember keeps the answers of an admitted request under its id.
func (t *Table) remember(j *job, asks []ask, uses []use, answers []Answer) {
	v := &t.judge
	v.stored = v.stored[:0]
	for i := range answers {
		a, d := &answers[i], &v.verdicts[i]
		k := &v.tallies[d.tally]
		s := stored{
			key: k.key, slot: k.slot, rule: t.rules.refer(&uses[asks[i].use]),
			remaining: uint32(a.Remaining), reset: a.ResetAfter, extra: d.extra,
		}
		if a.Shadow {
			s.flags |= flagShadow
		}
		if !a.Allowed {
			s.flags |= flagDenied | uint16(a.Reason)<<reasonShift
			s.extra = uint64(a.RetryAfter)
		} else if k.spent > 0 {
			s.cost = uint32(asks[i].cost)
		}
		v.stored = append(v.stored, s)
	}
	t.ids.keep(j.home, &t.slots[j.home].own, &j.id, v.session, v.stored, &t.rules, v.now)
}

// answer is the answer that s was kept of.
func (s *stored) answer(r *rules) Answer {
	rule := &r.version(s.rule).Rule
	a := Answer{
		Rule: *rule, Allowed: s.flags&flagDenied == 0, Reason: Reason(s.flags & flagReason >> reasonShift),
		Capacity: rule.Limit.Capacity(), Remaining: uint64(s.remaining), ResetAfter: s.reset, Shadow: s.flags&flagShadow != 0,
	}
	if !a.Allowed {
		a.RetryAfter = int64(s.extra)
		return a
	}
	a.extend(s.extra, s.slot)
	return a
}

// repeat answers a copy of result n: as it was, or for ever denied.
func (t *Table) repeat(n uint32, asks []ask, uses []use, out *Results) Code {
	flags := t.ids.flags(n)
	if flags&(flagUndone|flagRefunded) == 0 {
		t.judge.stored = t.ids.recall(n, t.judge.stored[:0])
		for i := range t.judge.stored {
			out.Answers = append(out.Answers, t.judge.stored[i].answer(&t.rules))
		}
		return Repeated
	}
	why := ReasonRefunded
	if flags&flagUndone != 0 {
		why = ReasonDeniedElsewhere
	}
	first := len(out.Answers)
	if answersOf(t.ids.pool.view(n)) > 0 {
		t.judge.stored = t.ids.recall(n, t.judge.stored[:0])
		for i := range t.judge.stored {
			out.Answers = append(out.Answers, t.judge.stored[i].answer(&t.rules))
		}
	} else {
		for i := range asks {
			t.rules.stand(&uses[asks[i].use]) // a number it had earlier in this entry may be outdated
		}
		if t.weigh(asks, uses, false) == PolicyStale {
			return PolicyStale
		}
		t.answer(asks, uses, out)
	}
	for i := range out.Answers[first:] {
		out.Answers[first+i].deny(why)
	}
	return Denied
}

// deny makes a the answer of a request that is denied for good.
func (a *Answer) deny(why Reason) {
	a.Allowed, a.Reason, a.RetryAfter = false, why, 0
	a.Delay, a.PermitID, a.FencingToken = 0, 0, 0
	a.Units, a.UnitCost = 0, 0
}
