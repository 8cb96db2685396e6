package bucket

// Clearing away a slot that is left, step by step: what an absent slot still has
// is its ruins. Nobody looks at them but this and a dump.
const (
	clearPerEntry = 512  // cells and records of ruins that an entry clears at least
	clearPerChunk = 4096 // what a chunk clears that finds its slot not empty
	clearScan     = 4    // records looked at for each that may be cleared
)

// empty says whether nothing is left of a slot.
func (s *state) empty(slot uint16) bool {
	return s.slots[slot].count == 0 && s.ids.named[slot] == 0
}

// vacate makes a slot absent. What it has becomes its ruins.
func (s *state) vacate(slot uint16) {
	sl := &s.slots[slot]
	sl.state, sl.export = SlotAbsent, nil
	if s.empty(slot) {
		sl.reset()
	} else {
		s.ruined++
	}
}

// reset forgets all of an empty slot but which moves it has seen.
func (s *slot) reset() {
	*s = slot{state: s.state, revision: s.revision, pass: s.pass, next: s.next}
}

// clearRuins clears up to n cells and records of the first slot that is a ruin.
func (s *state) clearRuins(n int) {
	if s.ruined == 0 {
		return
	}
	for i := range s.slots {
		if slot := uint16(i); s.slots[i].state == SlotAbsent && !s.empty(slot) {
			if s.clear(slot, n) {
				s.slots[i].reset()
				s.ruined--
			}
			return
		}
	}
}

// clear clears up to n cells and records of a slot that is not held, and reports
// whether nothing is left.
func (s *state) clear(slot uint16, n int) bool {
	sl := &s.slots[slot]
	for at := 0; at < len(sl.dir) && n > 0; {
		g := sl.dir[at]
		n = s.clearSegment(slot, g, n)
		at += len(sl.dir) >> g.depth
	}
	if sl.count == 0 {
		sl.dir = nil
		s.clearRecords(slot, n)
	}
	return s.empty(slot)
}

// clearSegment clears up to n cells of g, and returns how many are left to clear.
func (s *state) clearSegment(slot uint16, g *segment, n int) int {
	if g.count == 0 {
		return n
	}
	for off := 0; off < len(g.buf) && n > 0; off += cellSize {
		if k, ok := g.key(off); ok {
			n = s.clearCell(slot, g, k, off, n-1)
		}
	}
	if g.count == 0 {
		g.replace(make([]byte, minCells*cellSize)) // the last one drops them all
		g.cells = minCells
	}
	return n
}

// clearCell clears a cell and its list, of permits as many as n allows, and
// returns what is left of n.
func (s *state) clearCell(slot uint16, g *segment, key Key, off, n int) int {
	x := &s.bench.site
	*x = site{s: s, key: key, slot: slot, commit: true}
	var ref uint32
	x.raw, ref = g.read(off)
	switch s.rules.version(ref).Limit.Algorithm {
	case SlidingLog:
		n -= int(x.raw.b&^mergedBit) / logPerRecord
		s.freeLog(x.raw)
	case Concurrency:
		for ends(x.raw).first != noRecord {
			if n--; n < 0 {
				g.write(off, key, x.raw, ref)
				return 0
			}
			x.release(ends(x.raw).first)
		}
	}
	g.touch(off, cellSize)
	clear(g.buf[off : off+cellSize])
	g.count--
	s.left(slot, key, ref)
	return n
}

// clearRecords clears up to n results and sessions of a slot without cells.
func (s *state) clearRecords(slot uint16, n int) {
	p, c := &s.ids.pool, &s.cursor
	for range n * clearScan {
		if n <= 0 || s.ids.named[slot] == 0 || len(p.pages) == 0 {
			return
		}
		if int(c.ruin) >= len(p.pages)*pageRecords {
			c.ruin = 0
		}
		c.ruin++ // the number of the record
		r := p.view(c.ruin)
		kind := kindOf(r)
		if kind != sessionRecord && kind != ownResult || le.Uint16(r[recordSlot:]) != slot {
			continue
		}
		if kind == ownResult {
			n, _ = s.ids.clearQueue(&s.slots[slot].own, &s.rules, n)
			continue // the rest will be seen
		}
		q := s.ids.queue(c.ruin)
		var gone uint16
		if n, gone = s.ids.clearQueue(&q, &s.rules, n); q.count > 0 {
			s.ids.setQueue(c.ruin, q, gone)
			c.ruin--
		} else {
			s.ids.free(c.ruin)
			n--
		}
	}
}

// clearQueue drops the oldest results of q, up to about n records; a result costs
// as much as two cells. It returns what is left of n, and how many of them had marks.
func (d *ids) clearQueue(q *queue, r *rules, n int) (left int, marked uint16) {
	for q.count > 0 && n > 0 {
		n -= 1 + max(answersOf(d.pool.view(q.head)), 1)
		marked += d.pop(q, r)
	}
	return n, marked
}
