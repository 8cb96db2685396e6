package bucket

// The sweep drops what is as good as absent: fresh buckets, and what the ids'
// times let go. It moves on with each entry, so that it is the same everywhere.
const (
	sweepPerEntry   = 8 // cells visited after a requests entry …
	sweepPerTake    = 3 // … and for each of its takes
	recordsPerEntry = 4 // the same for records
	recordsPerTake  = 1
)

// cursor is where the sweep goes on.
type cursor struct {
	slot   uint32
	prefix uint32 // of the segment: leading maxDepth bits of the keys
	cell   uint32
	record uint32
}

func (s *state) sweep(cells, records int) {
	s.sweepCells(cells)
	s.sweepRecords(records)
}

func (s *state) sweepCells(n int) {
	c := &s.cursor
	for n > 0 {
		sl := &s.slots[c.slot]
		if len(sl.dir) == 0 {
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
	c := &s.cursor
	for ; n > 0 && c.cell < g.cells; n-- {
		off := int(c.cell) * cellSize
		l, ref := g.read(off)
		if ref == 0 || !s.rules.rule(ref).Limit.fresh(l, s.time) {
			c.cell++
			continue
		}
		g.remove(off) // may move another cell here: look again
		sl.count--
		s.buckets--
	}
	return n
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
		switch kindOf(r) {
		case sessionRecord:
			s.ids.settle(c.record, 0, s.time)
		case ownResult:
			s.ids.expireOwn(&s.slots[le.Uint16(r[recordSlot:])].own, s.time)
		}
	}
}
