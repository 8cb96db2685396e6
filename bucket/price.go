package bucket

import "math"

// How cells follow the versions of their policy. Nothing is done when a version
// begins; a cell is priced through all that began since when somebody looks.

// price brings x, whose cell names version ref, to the rule of u, numbered or
// not, at x.now: elapsed time at each version's rate, then what carries over. It
// edits no list; settle does.
func (x *site) price(ref uint32, u *use) {
	if ref = x.follow(ref, u.ref); ref == u.ref && ref != 0 {
		return
	}
	from := x.s.rules.version(ref)
	x.change(&from.Limit, &u.Limit, x.now)
	x.thaw = max(x.thaw, after(x.now, from.Limit.fill()))
	if u.ref != 0 {
		x.thaw = max(x.thaw, x.thawOf(x.s.rules.version(u.ref)))
	}
}

// follow brings x, whose cell names version ref, through the versions that began
// by x.now, at most to version until, and returns the number it has come to. In a
// sealed slot time stands still: what began since is followed where the slot goes.
func (x *site) follow(ref, until uint32) uint32 {
	r, sl := &x.s.rules, &x.s.slots[x.slot]
	from := r.version(ref)
	x.thaw = x.thawOf(from)
	late := int64(math.MinInt64) // thaw of what was priced elsewhere until after a version began
	for from.next != 0 && ref != until {
		to := r.version(from.next)
		at := max(sl.time(to.began), sl.since)
		if at > x.now {
			break
		}
		if at > sl.time(to.began) {
			late = max(late, after(at, from.Limit.fill()))
		}
		x.change(&from.Limit, &to.Limit, at)
		ref, from = from.next, to
		x.thaw = max(x.thawOf(from), late)
	}
	return ref
}

// thawOf is the slot time of v.thaw.
func (x *site) thawOf(v *version) int64 { return shift(v.thaw, x.s.slots[x.slot].offset) }

// change carries x over at the slot time at; x.thaw is that of from.
func (x *site) change(from, to *Limit, at int64) {
	k := from.kind()
	if from.Algorithm == to.Algorithm {
		k.carry(x, from, to, at)
		return
	}
	used := k.used(x, from, at)
	if from.Algorithm.listed() && x.raw.last != 0 {
		x.gone, x.goneKind = x.raw, from.Algorithm
	}
	x.raw, x.floor, x.lump = level{}, 0, 0
	to.kind().begin(x, to, used, at)
}

// listed says whether cells of this algorithm name lists of records.
func (a Algorithm) listed() bool { return a == SlidingLog || a == Concurrency }

// settle makes the lists of x what price has noted.
func (x *site) settle(l *Limit) {
	if x.goneKind != 0 {
		raw := x.raw
		x.raw = x.gone
		kinds[x.goneKind].free(x)
		x.raw, x.goneKind = raw, 0
	}
	l.kind().settle(x, l, x.now)
}

// reprice moves the cell of x in g at off, which names ref, to u's rule, and
// reads it into x.raw again.
func (x *site) reprice(g *segment, off int, ref uint32, u *use) {
	x.price(ref, u)
	x.settle(&u.Limit)
	r, sl := &x.s.rules, &x.s.slots[x.slot]
	n := r.refer(u)
	v := r.version(n)
	v.thaw = max(v.thaw, shift(x.thaw, -sl.offset))
	r.unname(ref)
	r.name(n)
	g.write(off, x.key, x.raw, n)
	sl.changed(x.key)
}

// newest is the rule that cells of version ref have to have by now.
func (r *rules) newestOf(ref uint32) uint32 {
	for {
		n := r.version(ref).next
		if n == 0 {
			return ref
		}
		ref = n
	}
}
