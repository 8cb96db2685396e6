package bucket

import "math"

// list makes the cell of a key hold the list of an item, or lengthens its list.
func (a *adopter) list(it *item) {
	x := site{s: a.s, key: it.key, slot: a.slot, commit: true}
	g, off := a.sl().segment(it.key), 0
	ref, goesOn := a.refs[it.rule], false
	if it.flags&listContinues != 0 && g != nil {
		if at, found := g.find(it.key); found {
			if l, was := g.read(at); was == ref {
				off, x.raw, goesOn = at, l, true
			}
		}
	}
	if !goesOn {
		a.cell(it.key, ref, level{})
		g = a.sl().segment(it.key)
		off, _ = g.find(it.key)
	}
	if a.s.rules.version(ref).Limit.Algorithm == SlidingLog {
		x.raw.b &^= mergedBit
		for e := it.list; len(e) > 0; e = e[logEntryBytes:] {
			x.push(int64(le.Uint64(e)), min(le.Uint32(e[8:]), math.MaxUint32-x.raw.a))
		}
		if it.flags&listMerged != 0 && x.raw.b > 0 {
			x.raw.b |= mergedBit
		}
	} else {
		for e := it.list; len(e) > 0; e = e[permitEntryBytes:] {
			x.permit(min(le.Uint32(e[8:]), math.MaxUint32-x.raw.a), int64(le.Uint64(e)), le.Uint64(e[12:]))
		}
	}
	g.write(off, it.key, x.raw, ref)
}

// openSession makes the session's record, or finds it: a session that is longer
// than a chunk is named in each.
func (a *adopter) openSession(it *item) {
	d := &a.s.ids
	n := d.find(sessionRecord, a.slot, it.session, 0)
	if n == noRecord {
		n = d.newSession(a.slot, &ID{Session: it.session})
	}
	c := d.pool.edit(n)
	le.PutUint64(c[sessionWatermark:], it.watermark)
	le.PutUint64(c[sessionHighest:], it.highest)
	le.PutUint64(c[sessionLast:], uint64(it.time))
	a.session = n
}

// result keeps a result behind those of its queue.
func (a *adopter) result(it *item) {
	d := &a.s.ids
	a.stored = a.stored[:0]
	for i := range it.answers {
		s := it.answers[i]
		s.rule = a.refs[s.rule]
		a.s.rules.name(s.rule)
		a.stored = append(a.stored, s)
	}
	if it.own {
		n := d.result(ownResult, a.slot, it.name.Hi, it.name.Lo, it.content, a.stored, it.time)
		d.enter(n, a.slot, nameHash(ownResult, a.slot, it.name.Hi, it.name.Lo))
		d.setFlags(n, it.given)
		d.push(&a.sl().own, n)
		return
	}
	n := d.result(markedResult, a.slot, it.session, it.name.Lo, it.content, a.stored, it.time)
	d.setFlags(n, it.given)
	q := d.queue(a.session)
	d.append(a.session, &q, n, it.name.Lo)
	d.setQueue(a.session, q, 0)
}

// thaw lets a rule's pinned buckets not count as recovered until left ns after
// the chunk's slot time; exactly in the last chunk, else a little longer.
func (a *adopter) thaw(ref uint32, left int64) {
	at := after(a.s.time, left)
	if a.info.Last {
		at = shift(after(a.info.SlotTime, left), -a.sl().offset)
	}
	v := a.s.rules.version(ref)
	v.thaw = max(v.thaw, at)
}

func (a *adopter) end(it *item) {
	sl := a.sl()
	sl.grants = max(sl.grants, it.grants) // complete may have raised it
	if sl.born == notBorn {
		sl.born, sl.birth = it.born, it.time
	}
}

// admit is the number of a rule that comes with a slot, given now if it has none.
// Newer than all that is known of its policy, it is cut over to now; older, it
// is a version before the newest, and cells are priced on from it.
func (r *rules) admit(rule Rule) uint32 {
	u := use{Rule: rule}
	if r.stand(&u) != staleRule {
		return r.refer(&u)
	}
	for i := range r.list {
		if v := &r.list[i]; v.Rule == rule && v.used() {
			return uint32(i + 1)
		}
	}
	newest := r.newest[rule.Policy]
	n := r.give(version{Rule: rule, thaw: math.MinInt64, idle: r.now, next: newest})
	r.list[newest-1].older++
	return n
}
