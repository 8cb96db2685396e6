package bucket

// Loss says what a bucket of a rule counts as that is absent in a slot whose
// state was lost, until the limit's full refill time has passed since: see
// BirthEntry.
type Loss uint8

// What an absent bucket counts as. The numbers stand in log entries.
const (
	LossEmpty   Loss = 0 // empty: everything was used at the birth; of Concurrency all permits are held until one window after it
	LossSalvage Loss = 1 // fresh if the slot was salvaged, else empty
	LossFull    Loss = 2 // fresh, as if nothing was lost
)

func (l Loss) known() bool { return l <= LossFull }

// born says whether and how a slot lost its state.
type born uint8

const (
	notBorn      born = iota
	bornEmpty         // by BirthEntry
	bornSalvaged      // by chunks of Table.Salvage
)

// absent makes x an absent bucket under a rule at x.now: blank, but in a born
// slot perhaps one that was empty at the birth. What it has gained since is reckoned by
// this rule, whatever counted before: of policies without a bucket the table does not
// know older versions. Of a list only a lump is noted,
// of the whole amount: nothing is charged before that is out.
func (x *site) absent(r *Rule) {
	l, sl := &r.Limit, (*slot)(nil)
	x.raw = l.kind().blank(l, x.now)
	if int(x.slot) < len(x.s.slots) {
		sl = &x.s.slots[x.slot]
	}
	if sl == nil || sl.born == notBorn || r.Loss == LossFull || r.Loss == LossSalvage && sl.born == bornSalvaged {
		return
	}
	x.raw = level{}
	l.kind().begin(x, l, l.Capacity(), sl.birth)
	if l.Algorithm == FixedWindow || l.Algorithm == SlidingWindow {
		x.raw.last = sl.birth // where the lost window ends is not known: no sooner than one from here
	}
	if l.Algorithm == TokenBucket {
		x.raw.b &^= pinBit // nothing was carried over from a larger limit
	}
	if l.kind().fresh(x, l, x.now) {
		x.raw, x.floor, x.lump = l.kind().blank(l, x.now), 0, 0
	}
}

// droppable says whether x equals an absent bucket at x.now and for ever.
func (x *site) droppable(r *Rule) bool {
	k := r.Limit.kind()
	if !k.fresh(x, &r.Limit, x.now) {
		return false
	}
	if x.s.slots[x.slot].born == notBorn {
		return true
	}
	none := site{s: x.s, key: x.key, slot: x.slot, now: x.now, thaw: x.thaw}
	none.absent(r)
	return k.fresh(&none, &r.Limit, x.now)
}

// before says whether the first copy of id was sent before the slot's birth, so
// that nobody knows any more whether it was charged.
func (s *slot) before(id *ID, now int64) bool {
	return id.Kind != NoID && id.AgeNanos > age(s.birth, now)
}
