package bucket

import "math/bits"

// slot is the buckets of one slot: extendible hashing over segments. dir has
// 2^n entries; the leading n bits of Key.Hi choose one, and a segment of depth d
// stands in 2^(n−d) neighbouring entries. A slot without buckets has no dir.
type slot struct {
	// What a take looks at: 64 bytes of 128, hence one cache line.
	dir     []*segment
	count   int     // buckets
	offset  int64   // ns: slot time − group time
	export  *Export // who reads it, nil: nobody
	changes uint64  // of cells, in this process: see Table.Changes
	next    uint32  // number of the chunk that is expected
	state   SlotState
	born    born

	own      queue  // results under callers' own ids, oldest first
	grants   uint64 // the fencing token of the newest permit
	revision uint64 // the highest seen
	pass     uint64 // of the chunks
	since    int64  // slot time at which it came from another table; all it has is of before
	birth    int64  // slot time of the birth, if born
	sealed   int64  // slot time of the seal, while sealed
}

// changed tells who reads the slot that the cell of a key changes.
func (s *slot) changed(k Key) {
	s.changes++
	if s.export != nil {
		s.export.note(k)
	}
}

// bits is n of a dir of 2^n entries.
func (s *slot) bits() int { return bits.TrailingZeros(uint(len(s.dir))) }

// at is the index in dir for a key.
func (s *slot) at(k Key) int { return int(k.Hi >> (64 - s.bits())) }

// span is the first of the n entries of dir that g, found at dir[at], stands in.
func (s *slot) span(g *segment, at int) (first, n int) {
	n = len(s.dir) >> g.depth
	return at / n * n, n
}

// segment is where k lives if it is here; nil in a slot without buckets.
func (s *slot) segment(k Key) *segment {
	switch len(s.dir) {
	case 0:
		return nil
	case 1:
		return s.dir[0]
	}
	return s.dir[s.at(k)]
}

// insert adds a key that is absent.
func (s *slot) insert(k Key, l level, ref uint32) {
	if len(s.dir) == 0 {
		s.dir = []*segment{newSegment(minCells, 0)}
	}
	g := s.segment(k)
	for g.crowded() {
		s.enlarge(g, s.at(k))
		g = s.segment(k)
	}
	off, _ := g.find(k)
	g.write(off, k, l, ref)
	g.count++
	s.count++
}

// enlarge grows g, found at dir[i], by one step, or splits it. A split may
// leave one half as crowded as before, hence insert's loop; the depth bounds it.
func (s *slot) enlarge(g *segment, i int) {
	cells := cellsFor(g.cells, 100) // the next capacity
	if cells > maxCells && g.depth < maxDepth {
		s.split(g, i)
		return
	}
	g.resize(cells)
}

// split replaces g, found at dir[i], by two segments of one bit more.
func (s *slot) split(g *segment, i int) {
	if 1<<g.depth == len(s.dir) {
		s.double()
		i *= 2
	}
	bit := uint64(1) << (63 - g.depth)
	var ones uint32
	g.each(func(cell []byte) {
		if le.Uint64(cell[cellHi:])&bit != 0 {
			ones++
		}
	})
	halves := [2]*segment{
		newSegment(cellsFor(g.count-ones, roomyLoad), g.depth+1),
		newSegment(cellsFor(ones, roomyLoad), g.depth+1),
	}
	g.each(func(cell []byte) {
		halves[(le.Uint64(cell[cellHi:])&bit)>>(63-g.depth)].adopt(cell)
	})
	first, n := s.span(g, i)
	for j := range n {
		s.dir[first+j] = halves[j/(n/2)]
	}
}

// double gives dir one bit more.
func (s *slot) double() {
	dir := make([]*segment, 2*len(s.dir))
	for i := range dir {
		dir[i] = s.dir[i/2]
	}
	s.dir = dir
}

// merge joins g, found at dir[at], with its other half, if both together are
// far from a split. It reports whether it did.
func (s *slot) merge(g *segment, at int) bool {
	if g.depth == 0 {
		return false
	}
	first, n := s.span(g, at)
	low, high := s.dir[first&^n], s.dir[first|n]
	if low.depth != high.depth || (low.count+high.count)*100 > maxCells*minLoad {
		return false
	}
	m := newSegment(cellsFor(low.count+high.count, roomyLoad), g.depth-1)
	low.each(m.adopt)
	high.each(m.adopt)
	for j := range 2 * n {
		s.dir[first&^n+j] = m
	}
	s.halve()
	return true
}

// halve takes bits from dir that no segment needs.
func (s *slot) halve() {
	deepest := uint8(0)
	s.segments(func(_ int, g *segment) { deepest = max(deepest, g.depth) })
	for s.bits() > int(deepest) {
		dir := make([]*segment, len(s.dir)/2)
		for i := range dir {
			dir[i] = s.dir[2*i]
		}
		s.dir = dir
	}
}

// each calls f with every cell in use, in order of place.
func (s *segment) each(f func(cell []byte)) {
	for off := 0; off < len(s.buf); off += cellSize {
		if c := s.buf[off : off+cellSize : off+cellSize]; le.Uint32(c[cellRef:]) != 0 {
			f(c)
		}
	}
}

// segments calls f with every segment and its first place in dir, in order.
func (s *slot) segments(f func(at int, g *segment)) {
	for i := 0; i < len(s.dir); {
		g := s.dir[i]
		f(i, g)
		i += len(s.dir) >> g.depth
	}
}
