package bucket

import "fmt"

// audit follows every link of a restored state once, so that nothing in a dump,
// however it came about, can lead the table astray later. It counts anew what a
// dump does not carry: what names each rule.
type audit struct {
	*state
	seen   []uint64 // bit per record: reached as what it is
	listed []uint64 // bit per record: reached in a queue of results, or a list of permits
	used   int      // records reached
	inList int
	names  int // results and permits
	bad    bool
}

// verify checks the records of a state whose blocks are read.
func (s *state) verify() error {
	words := len(s.ids.pool.pages)*pageRecords/64 + 1
	a := &audit{state: s, seen: make([]uint64, words), listed: make([]uint64, words)}
	a.freePlaces()
	a.chains()
	for i := range s.slots {
		if own := s.slots[i].own; !a.bad {
			a.queue(own, func(c []byte) bool { return kindOf(c) == ownResult && int(le.Uint16(c[recordSlot:])) == i })
		}
	}
	for i := range s.slots {
		s.slots[i].segments(func(_ int, g *segment) {
			g.each(func(cell []byte) { a.cell(uint16(i), cell) })
		})
	}
	if a.bad || a.used != s.ids.pool.used || a.inList != a.names {
		return fmt.Errorf("%w: its records make no sense", ErrDump)
	}
	for i := range s.slots {
		if s.slots[i].state == SlotAbsent && !s.empty(uint16(i)) {
			s.ruined++
		}
	}
	return nil
}

// reach notes that n is reached in one of two ways; false: it cannot be.
func (a *audit) reach(bits []uint64, n uint32) bool {
	if a.bad || n == noRecord || int(n) > len(a.ids.pool.pages)*pageRecords {
		a.bad = true
		return false
	}
	word, bit := &bits[(n-1)/64], uint64(1)<<((n-1)%64)
	a.bad = *word&bit != 0
	*word |= bit
	return !a.bad
}

// freePlaces walks the free list of each page, and takes what was never used as reached.
func (a *audit) freePlaces() {
	for i, g := range a.ids.pool.pages {
		free, first := int(pageRecords-g.next), uint32(i)<<recordPageLog+1
		for at := g.free; at != 0 && !a.bad; free++ {
			if at > g.next || !a.reach(a.seen, first+uint32(at-1)) {
				a.bad = true
				return
			}
			c := a.ids.pool.view(first + uint32(at-1))
			a.bad = kindOf(c) != plainRecord
			at = uint16(min(le.Uint32(c[recordNext:]), pageRecords+1))
		}
		for at := uint32(g.next); at < pageRecords && !a.bad; at++ {
			a.reach(a.seen, first+at)
		}
		a.bad = a.bad || free != pageRecords-int(g.used)
	}
}

// chains walks the index, and what hangs on each record.
func (a *audit) chains() {
	x, count := &a.ids.index, uint32(0)
	for c := range x.n {
		for n := x.head(c); n != noRecord; {
			if !a.reach(a.seen, n) {
				return
			}
			a.used++
			count++
			r := a.ids.pool.view(n)
			kind, slot := kindOf(r), int(le.Uint16(r[recordSlot:]))
			if kind == plainRecord || kind > permitRecord || slot >= len(a.slots) || x.chain(recordHash(r)) != c {
				a.bad = true
				return
			}
			a.ids.named[slot]++
			a.named(n, kind)
			n = le.Uint32(r[recordNext:])
		}
	}
	a.bad = a.bad || count != x.count
}

func (a *audit) named(n uint32, kind recordKind) {
	r := a.ids.pool.view(n)
	switch kind {
	case sessionRecord:
		slot, id := le.Uint16(r[recordSlot:]), le.Uint64(r[recordA:])
		if q := a.ids.queue(n); q.head != noRecord && !a.bad {
			a.bad = int(q.head) > len(a.ids.pool.pages)*pageRecords || int64(le.Uint64(r[sessionOldest:])) > a.ids.time(q.head)
		}
		a.queue(a.ids.queue(n), func(c []byte) bool {
			return (kindOf(c) == clientResult || kindOf(c) == markedResult) && le.Uint16(c[recordSlot:]) == slot && le.Uint64(c[recordA:]) == id
		})
		a.marked(r, a.ids.queue(n).head)
	case permitRecord:
		a.names++
	default:
		a.names++
		a.answers(n)
	}
}

// marked looks at those results of a session, from record n on, that are in no index, and
// at their marks.
func (a *audit) marked(session []byte, n uint32) {
	few := marked(session)
	a.bad = a.bad || few > fewResults || le.Uint16(session[sessionFirst:]) >= fewResults
	i := uint16(0)
	for ; n != noRecord && !a.bad; n = le.Uint32(a.ids.pool.view(n)[resultFollow:]) {
		if kindOf(a.ids.pool.view(n)) != markedResult {
			continue
		}
		if i == few || !a.reach(a.seen, n) || le.Uint16(mark(session, i)) != uint16(a.ids.sequence(n)) {
			a.bad = true
			return
		}
		i++
		a.used++
		a.names++
		a.answers(n)
	}
	a.bad = a.bad || i != few
}

// answers walks the answers of result n, and counts the rules they name.
func (a *audit) answers(n uint32) {
	at := a.ids.answers(n)
	for i := range answersOf(a.ids.pool.view(n)) {
		if i > 0 {
			next := le.Uint32(a.ids.pool.view(at.n)[at.link:])
			if !a.reach(a.seen, next) || kindOf(a.ids.pool.view(next)) != plainRecord {
				a.bad = true
				return
			}
			a.used++
			at.next()
		}
		rule := getStored(at.view()).rule
		a.rules.name(rule)
		a.bad = a.bad || !a.rules.version(rule).used()
	}
}

// queue walks a queue of results.
func (a *audit) queue(q queue, fits func(c []byte) bool) {
	last, count := uint32(noRecord), uint32(0)
	for n := q.head; n != noRecord; n = le.Uint32(a.ids.pool.view(n)[resultFollow:]) {
		if !a.reach(a.listed, n) || !fits(a.ids.pool.view(n)) {
			a.bad = true
			return
		}
		last = n
		count++
	}
	a.inList += int(count)
	a.bad = a.bad || last != q.tail || count != q.count
}

// cell walks the list of a cell that has one.
func (a *audit) cell(slot uint16, cell []byte) {
	l := level{last: int64(le.Uint64(cell[cellLast:])), a: le.Uint32(cell[cellA:]), b: le.Uint32(cell[cellB:])}
	switch a.rules.version(le.Uint32(cell[cellRef:])).Limit.Algorithm {
	case SlidingLog:
		a.log(l)
	case Concurrency:
		a.permits(l, slot, Key{Hi: le.Uint64(cell[cellHi:]), Lo: le.Uint64(cell[cellLo:])})
	}
}

func (a *audit) log(l level) {
	last, entries, cost := uint32(noRecord), uint32(0), uint64(0)
	for n := ends(l).first; n != noRecord; {
		if !a.reach(a.seen, n) {
			return
		}
		a.used++
		c := a.ids.pool.view(n)
		if kindOf(c) != plainRecord || c[logFirst] >= c[logEnd] || c[logEnd] > logPerRecord {
			a.bad = true
			return
		}
		for p := (logPlace{s: a.state, record: n}).start(); p.i < int(c[logEnd]); p.i++ {
			cost += uint64(p.cost())
			entries++
			a.bad = a.bad || p.time() < 0
		}
		last = n
		n = le.Uint32(c[recordNext:])
	}
	a.bad = a.bad || last != ends(l).last || entries != l.b&^mergedBit || cost != uint64(l.a)
}

func (a *audit) permits(l level, slot uint16, key Key) {
	last, units := uint32(noRecord), uint64(0)
	for n := ends(l).first; n != noRecord; n = a.ids.permit(n).younger {
		if !a.reach(a.listed, n) {
			return
		}
		a.inList++
		c, p := a.ids.pool.view(n), a.ids.permit(n)
		if kindOf(c) != permitRecord || p.older != last || le.Uint16(c[recordSlot:]) != slot ||
			le.Uint64(c[permitKey:]) != key.Hi || le.Uint64(c[permitKey+8:]) != key.Lo {
			a.bad = true
			return
		}
		units += uint64(p.units)
		last = n
	}
	a.bad = a.bad || last != ends(l).last || units != uint64(l.a)
}
