package bucket

// The sweep drops what is as good as absent: fresh buckets, what the ids' times
// let go, and rules that nothing names. It brings buckets to the newest version
// of their policy. It moves on with each entry, so that it is the same everywhere.
//
// It keeps pace with what is made, or what is left of it would pile up: for a new
// bucket it visits about as many cells as one takes up where tables are emptiest, and
// for each record that is there more than before two. Takes on buckets that are there,
// and results in the place of others, make nothing: all they pay for is that the sweep
// comes round where no leader is ever idle.
const (
	sweepPerEntry    = 8  // cells visited after a requests entry …
	takesPerCell     = 4  // … one for so many takes …
	sweepPerBucket   = 4  // … and so many for each bucket it made
	recordsPerEntry  = 4  // records, likewise …
	takesPerRecord   = 16 // … one for so many takes …
	recordsPerRecord = 2  // … and so many for each that is there more than before
)

// made says how many buckets were added to the table since this process has it, and
// how many records are in use.
type made struct {
	buckets uint64
	records int
}

func (s *state) made() made { return made{s.added, s.ids.pool.used} }

// sweepAfter is the sweep behind an entry of n takes that began at was.
func (s *state) sweepAfter(n int, was made) {
	s.sweep(
		sweepPerEntry+n/takesPerCell+sweepPerBucket*int(s.added-was.buckets),
		recordsPerEntry+n/takesPerRecord+recordsPerRecord*max(0, s.ids.pool.used-was.records),
	)
}

// cursor is where the sweep goes on.
type cursor struct {
	slot   uint32
	prefix uint32 // of the segment: leading maxDepth bits of the keys
	cell   uint32
	record uint32
	ruin   uint32 // see clear.go
	rule   uint32
}

func (s *state) sweep(cells, records int) {
	s.sweepCells(cells)
	s.sweepRecords(records)
	s.sweepRules(1 + records/4)
}

func (s *state) sweepRules(n int) {
	for range n {
		if len(s.rules.list) == 0 {
			return
		}
		c := &s.cursor
		if int(c.rule) >= len(s.rules.list) {
			c.rule = 0
		}
		c.rule++ // the number of the rule
		s.rules.visit(c.rule)
	}
}

func (s *state) sweepCells(n int) {
	c := &s.cursor
	for n > 0 {
		sl := &s.slots[c.slot]
		if len(sl.dir) == 0 || sl.state != SlotHeld {
			s.nextSlot()
			n--
			continue
		}
		at := int(c.prefix) >> (maxDepth - sl.bits())
		g := sl.dir[at]
		n = s.sweepSegment(sl, g, n)
		if c.cell < g.cells {
			return
		}
		c.cell = 0
		c.prefix = sl.leave(g, at)
		if c.prefix == 1<<maxDepth {
			s.nextSlot()
		}
	}
}

// sweepSegment visits up to n cells of g and returns how many are left to visit.
func (s *state) sweepSegment(sl *slot, g *segment, n int) int {
	c, now := &s.cursor, sl.time(s.time)
	for ; n > 0 && c.cell < g.cells; n-- {
		off := int(c.cell) * cellSize
		if !s.sweepCell(sl, g, off, now) {
			c.cell++
		} // else another cell may be here now: look again
	}
	return n
}

// sweepCell brings the cell at off to the newest version of its policy, drops it
// if it equals an absent one, and reports whether it did. now is slot time.
func (s *state) sweepCell(sl *slot, g *segment, off int, now int64) bool {
	raw, ref := g.read(off)
	if ref == 0 {
		return false
	}
	if v := s.rules.version(ref); v.next == 0 && v.Limit.Algorithm == TokenBucket && !v.Limit.fresh(raw, now) {
		return false // most are like this
	}
	key, _ := g.key(off)
	x, u := &s.bench.site, &s.bench.use
	slot := uint16(s.cursor.slot)
	*x = site{s: s, key: key, slot: slot, now: now, commit: true}
	s.renew(x, u, g, off)
	if !x.droppable(&u.Rule) {
		return false
	}
	u.Limit.kind().free(x)
	g.remove(off)
	sl.changed(key)
	s.left(slot, key, u.ref)
	return true
}

func (s *state) nextSlot() {
	s.cursor.slot = (s.cursor.slot + 1) % uint32(len(s.slots))
	s.cursor.prefix, s.cursor.cell = 0, 0
}

// leave gives memory back, now that the sweep has seen all of g, found at
// dir[at], and returns the prefix of what lies behind it.
func (s *slot) leave(g *segment, at int) (prefix uint32) {
	if s.count == 0 {
		s.dir = nil
		return 1 << maxDepth
	}
	first, n := s.span(g, at)
	prefix = uint32(first+n) << (maxDepth - s.bits())
	if g.sparse() && !s.merge(g, at) {
		g.resize(cellsFor(g.count, roomyLoad))
	}
	return prefix
}

func (s *state) sweepRecords(n int) {
	p := &s.ids.pool
	for range n {
		if len(p.pages) == 0 {
			return
		}
		c := &s.cursor
		if int(c.record) >= len(p.pages)*pageRecords {
			c.record = 0
		}
		c.record++ // the number of the record
		r := p.view(c.record)
		kind := kindOf(r)
		if kind != sessionRecord && kind != ownResult {
			continue
		}
		sl := &s.slots[le.Uint16(r[recordSlot:])]
		switch {
		case sl.state != SlotHeld:
		case kind == sessionRecord:
			s.ids.settle(c.record, 0, &s.rules, sl.time(s.time))
		default:
			s.ids.expireOwn(&sl.own, &s.rules, sl.time(s.time))
		}
	}
}
