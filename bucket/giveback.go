package bucket

import "math"

// giveBack obeys a refund or an undo whose id stands as code says, with the
// result n if it is Repeated.
func (t *Table) giveBack(j *job, code Code, n uint32, out *Results) Code {
	d := &t.ids
	switch code {
	case Denied:
		return t.mark(j)
	case Repeated:
	default:
		return code
	}
	if d.flags(n)&flagGiven != 0 {
		if j.op == OpUndo {
			d.setFlags(n, flagUndone) // the refund of one that is denied elsewhere changes only its answer
		}
		return NothingToRefund
	}
	if answersOf(d.pool.view(n)) == 0 {
		return NothingToRefund
	}
	v := &t.judge
	v.stored = d.recall(n, v.stored[:0])
	at := d.time(n)
	for i := range v.stored {
		s := &v.stored[i]
		a := t.giveBackOne(s, j, t.chargedAt(j.home, s.slot, at))
		if j.op == OpUndo {
			s.remaining, s.reset = uint32(a.Remaining), a.ResetAfter
		}
		out.Answers = append(out.Answers, a)
	}
	flags := uint16(flagGiven)
	if t.rules.leases(v.stored) {
		flags |= flagRefunded // a copy must not be granted again what may be back in the bucket
	}
	if j.op == OpUndo {
		flags |= flagUndone
		d.amend(n, v.stored)
	}
	d.setFlags(n, flags)
	return Refunded
}

// chargedAt is the slot time in slot of a decision at the slot time at of home.
// If either came from another group since, nobody knows it exactly, and it counts
// as before all windows: too little is given back, never too much.
func (t *Table) chargedAt(home, slot uint16, at int64) int64 {
	if slot == home || int(slot) >= len(t.slots) {
		return at
	}
	h, s := &t.slots[home], &t.slots[slot]
	if there := s.time(shift(at, -h.offset)); at >= h.since && there >= s.since {
		return there
	}
	return math.MinInt64
}

// giveBackOne gives back what s was charged at the slot time at, and answers what
// the bucket holds then, by the newest rule.
func (t *Table) giveBackOne(s *stored, j *job, at int64) Answer {
	x, u := &t.bench.site, &t.bench.use
	*u = use{Rule: t.rules.version(t.rules.newestOf(s.rule)).Rule}
	g, off, found := t.open(s.slot, s.key)
	if !found {
		x.absent(&u.Rule)
	}
	now := x.now
	if c := t.creditOf(s, j, at, u.ref); found && c.cost > 0 {
		u.Limit.kind().credit(x, &u.Limit, &c, now)
		g.write(off, s.key, x.raw, u.ref)
		t.slots[s.slot].changed(s.key)
	}
	a := Answer{Rule: u.Rule, Allowed: true, Capacity: u.Limit.Capacity(), Shadow: s.flags&flagShadow != 0}
	a.hold(x, &u.Limit, u.Limit.kind().view(x, &u.Limit, now), now)
	return a
}

// creditOf is what j gives back of s, which was charged at the slot time at; newest is
// the version of its rule that counts now, if there is a bucket.
func (t *Table) creditOf(s *stored, j *job, at int64, newest uint32) credit {
	c := credit{cost: uint64(s.cost), at: at}
	was := t.rules.version(s.rule).Limit.Algorithm
	switch {
	case s.flags&flagDenied != 0:
	case was == Concurrency:
		c.token = s.extra
	case was.Leasable() && s.extra != 0:
		c.cost = t.rules.unspent(s, j.number, at, t.bench.site.now, newest)
		return c
	}
	if j.op == OpRefund && j.number > 0 {
		c.cost = min(c.cost, j.number)
	}
	return c
}

// open makes t.bench the bucket of a key, and its cell one of the newest version,
// whose rule bench.use becomes. Not found: there is no cell.
func (t *Table) open(slot uint16, key Key) (g *segment, off int, found bool) {
	x, u := &t.bench.site, &t.bench.use
	*x = site{s: &t.state, key: key, slot: slot, now: t.time, commit: true}
	if !t.holds(slot) {
		return nil, 0, false
	}
	x.now = t.slots[slot].time(t.time)
	if g = t.slots[slot].segment(key); g == nil {
		return nil, 0, false
	}
	if off, found = g.find(key); found {
		t.renew(x, u, g, off)
	}
	return g, off, found
}

// renew brings the cell of x in g at off to the newest version of its rule,
// which u becomes.
func (s *state) renew(x *site, u *use, g *segment, off int) {
	var ref uint32
	x.raw, ref = g.read(off)
	n := s.rules.newestOf(ref)
	v := s.rules.version(n)
	*u = use{Rule: v.Rule, ref: n}
	if n == ref {
		x.thaw = x.thawOf(v)
		return
	}
	x.reprice(g, off, ref, u)
}

// mark keeps in mind that j's id, not seen yet, is refused.
func (t *Table) mark(j *job) Code {
	own := &t.slots[j.home].own
	if j.id.Kind == NoID {
		return NothingToRefund
	}
	if !t.ids.roomFor(own, &j.id, t.judge.now) {
		return StoreFull
	}
	n := t.ids.keep(j.home, own, &j.id, t.judge.session, nil, &t.rules, t.judge.now)
	flags := uint16(flagGiven | flagRefunded)
	if j.op == OpUndo {
		flags = flagGiven | flagUndone
	}
	t.ids.setFlags(n, flags)
	t.slots[j.home].changes++
	return NothingToRefund
}

// permit obeys a release or a renewal.
func (t *Table) permit(j *job, a *ask, uses []use, out *Results) Code {
	u := &uses[a.use]
	if j.op == OpRenew {
		t.judge.permit[0] = *a
		if !t.current(t.judge.permit[:], uses, true) {
			return PolicyStale
		}
	}
	g, off, found := t.open(a.slot, a.key)
	if !found {
		return NoSuchPermit
	}
	x := &t.bench.site
	now := x.now
	if j.op == OpRelease {
		u = &t.bench.use
	} else if u.ref == 0 || u.ref != t.bench.use.ref {
		x.reprice(g, off, t.bench.use.ref, u)
	}
	n := x.held(j.number, now)
	if n == noRecord {
		return NoSuchPermit
	}
	answer := Answer{Rule: u.Rule, Allowed: true, Capacity: u.Limit.Capacity()}
	code := Refunded
	if j.op == OpRelease {
		x.release(n)
	} else {
		x.unlink(n)
		x.link(n, after(now, u.Limit.Window))
		answer.extend(le.Uint64(t.ids.pool.view(n)[permitToken:]), a.slot)
		code = Admitted
	}
	g.write(off, a.key, x.raw, u.ref)
	t.slots[a.slot].changed(a.key)
	answer.hold(x, &u.Limit, u.Limit.kind().view(x, &u.Limit, now), now)
	out.Answers = append(out.Answers, answer)
	return code
}
