package bucket

// How cells follow the versions of their policy. Nothing is done when a version
// begins; a cell is priced through all that began since when somebody looks.

// price brings x, whose cell names version ref, to the rule of u, numbered or
// not, at now: elapsed time at each version's rate, then what carries over. It
// edits no list; settle does.
func (x *site) price(ref uint32, u *use, now int64) {
	r := &x.s.rules
	from := r.version(ref)
	for from.next != 0 && ref != u.ref {
		ref = from.next
		to := r.version(ref)
		x.change(from, &to.Limit, to.began)
		from = to
	}
	if x.thaw = from.thaw; ref == u.ref && ref != 0 {
		return
	}
	x.change(from, &u.Limit, now)
	x.thaw = max(from.thaw, after(now, from.Limit.fill()))
	if u.ref != 0 {
		x.thaw = max(x.thaw, r.version(u.ref).thaw)
	}
}

// change carries x over at the time at.
func (x *site) change(from *version, to *Limit, at int64) {
	x.thaw = from.thaw
	k := from.Limit.kind()
	if from.Limit.Algorithm == to.Algorithm {
		k.carry(x, &from.Limit, to, at)
		return
	}
	used := k.used(x, &from.Limit, at)
	if from.Limit.Algorithm.listed() && x.raw.last != 0 {
		x.gone, x.goneKind = x.raw, from.Limit.Algorithm
	}
	x.raw, x.floor, x.lump = level{}, 0, 0
	to.kind().begin(x, to, used, at)
}

// listed says whether cells of this algorithm name lists of records.
func (a Algorithm) listed() bool { return a == SlidingLog || a == Concurrency }

// settle makes the lists of x what price has noted.
func (x *site) settle(l *Limit, now int64) {
	if x.goneKind != 0 {
		raw := x.raw
		x.raw = x.gone
		kinds[x.goneKind].free(x)
		x.raw, x.goneKind = raw, 0
	}
	l.kind().settle(x, l, now)
}

// reprice moves the cell of x in g at off, which names ref, to u's rule, and
// reads it into x.raw again.
func (x *site) reprice(g *segment, off int, ref uint32, u *use, now int64) {
	x.price(ref, u, now)
	x.settle(&u.Limit, now)
	r := &x.s.rules
	n := r.refer(u, now)
	v := r.version(n)
	v.thaw = max(v.thaw, x.thaw)
	r.unname(ref, now)
	r.name(n)
	g.write(off, x.key, x.raw, n)
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
