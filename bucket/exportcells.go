package bucket

import (
	"cmp"
	"slices"
)

// scan goes on with the scan of the cells, or begins one that a cut-over has made
// necessary, and says whether none is left to do. With sealed it writes long
// lists too.
func (e *Export) scan(sealed bool) (done bool) {
	if !e.scanning {
		if e.copied && e.cuts == e.t.rules.cuts {
			return true
		}
		e.scanning, e.at, e.cuts = true, Key{}, e.t.rules.cuts
		e.from, e.since = e.since, e.t.time
	}
	sl := e.sl()
	for n := scanCells; n > 0; {
		if len(sl.dir) == 0 {
			e.scanning, e.copied = false, true
			break
		}
		g := sl.segment(e.at)
		looked, full := e.scanSegment(g, sealed)
		if n -= looked; full {
			return false
		}
		first, wide := sl.span(g, sl.at(e.at))
		if first+wide == len(sl.dir) {
			e.scanning, e.copied = false, true
			break
		}
		e.at = Key{Hi: uint64(first+wide) << (64 - sl.bits())}
	}
	return !e.scanning && e.cuts == e.t.rules.cuts
}

// found is a cell and its place.
type found struct {
	key Key
	off int
}

// scanSegment writes the cells of g from e.at on, in order. Full: there was no
// room for that of e.at.
func (e *Export) scanSegment(g *segment, sealed bool) (looked int, full bool) {
	cells := make([]found, 0, g.count)
	for off := 0; off < len(g.buf); off += cellSize {
		if k, ok := g.key(off); ok && !k.less(e.at) {
			cells = append(cells, found{k, off})
		}
	}
	slices.SortFunc(cells, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.key.Hi, b.key.Hi), cmp.Compare(a.key.Lo, b.key.Lo))
	})
	for i, c := range cells {
		e.at = c.key
		raw, ref := g.read(c.off)
		if e.copied && !e.cutSince(ref) {
			continue
		}
		if !e.cell(c.key, raw, ref, sealed) {
			return i + 1, true
		}
	}
	return max(len(cells), 1), false
}

// cutSince says whether a version after ref has begun in the slot since e.from.
func (e *Export) cutSince(ref uint32) bool {
	r := &e.t.rules
	for n := r.version(ref).next; n != 0; n = r.version(n).next {
		if v := r.version(n); v.began >= e.from && e.sl().time(v.began) <= e.t.slotTime(e.slot) {
			return true
		}
	}
	return false
}

// cell writes one cell, priced, unless it is left for later; false: there is no room.
func (e *Export) cell(key Key, raw level, ref uint32, sealed bool) bool {
	x := &site{s: &e.t.state, key: key, slot: e.slot, now: e.t.slotTime(e.slot), raw: raw}
	r := &e.t.rules.version(x.follow(ref, 0)).Rule
	switch {
	case e.salvage && r.Loss != LossSalvage:
		return true
	case x.droppable(r):
		if !e.copied {
			return true // nothing to send, and nothing was sent
		}
		if !e.w.room(1 + 16) {
			return false
		}
		e.w.gone(key)
		return true
	case r.Limit.Algorithm.listed():
		return e.list(x, r, sealed)
	}
	if !e.w.room(cellMost) {
		return false
	}
	if r.Limit.Algorithm == TokenBucket && x.raw.b&pinBit != 0 || r.Limit.Algorithm == LeakyBucket && r.Limit.Amount == 0 {
		e.thaws[*r] = struct{}{}
	}
	e.w.cell(key, r, x.raw)
	return true
}

// list writes a cell with its list; a long one in parts, and ahead of the seal
// not at all: it counts as changed. So does one that the chunk has no room for the
// end of: its records may be other ones by the next step.
func (e *Export) list(x *site, r *Rule, sealed bool) bool {
	if !e.w.room(listMost + permitEntryBytes*(logPerRecord+1)) {
		return false
	}
	if !sealed && x.isLong(r.Limit.Algorithm) {
		e.remember(x.key)
		return true
	}
	n, flags := ends(x.raw).first, byte(0)
	if e.long != noRecord {
		n, flags = e.long, listContinues
	}
	if x.raw.b&mergedBit != 0 && r.Limit.Algorithm == SlidingLog {
		flags |= listMerged
	}
	e.w.openList(x.key, r, flags)
	e.long = e.entries(x, &r.Limit, n)
	if e.long != noRecord && !sealed {
		e.long = noRecord
		e.remember(x.key)
	}
	return e.long == noRecord
}

// isLong says whether x has a list that has to be written in parts.
func (x *site) isLong(a Algorithm) bool {
	if a == SlidingLog {
		return x.raw.b&^mergedBit > longList
	}
	i := 0
	for n := ends(x.raw).first; n != noRecord && i <= longList; n = x.s.ids.permit(n).younger {
		i++
	}
	return i > longList
}

// entries writes the entries of x's list that count, from record n on, and
// returns the record that there was no room for; one there is room for. What price has only noted is an
// entry too, and then the only one.
func (e *Export) entries(x *site, l *Limit, n uint32) uint32 {
	if l.Algorithm == SlidingLog {
		if x.lump > 0 && !x.out(l, x.lumpAt, x.now) {
			e.w.entry(x.lumpAt, x.lump)
		}
		for one := true; n != noRecord && (one || e.w.room(logPerRecord*logEntryBytes)); n, one = le.Uint32(x.s.ids.pool.view(n)[recordNext:]), false {
			p := (logPlace{s: x.s, record: n}).start()
			for ; p.i < int(p.c[logEnd]); p.i++ {
				if !x.out(l, p.time(), x.now) {
					e.w.entry(p.time(), p.cost())
				}
			}
		}
		return n
	}
	if x.lump > 0 && x.lumpAt > x.now {
		e.w.permit(x.lumpAt, x.lump, 0)
	}
	for one := true; n != noRecord && (one || e.w.room(permitEntryBytes)); n, one = x.s.ids.permit(n).younger, false {
		if p := x.s.ids.permit(n); p.deadline > x.now {
			e.w.permit(p.deadline, p.units, le.Uint64(x.s.ids.pool.view(n)[permitToken:]))
		}
	}
	return n
}
