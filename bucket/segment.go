package bucket

import (
	"encoding/binary"
	"math/bits"
)

// A cell is 36 bytes, little endian: the number of the rule, 0 for an empty
// cell; the key; the level.
const (
	cellSize = 36

	cellRef  = 0
	cellHi   = 4
	cellLo   = 12
	cellLast = 20
	cellA    = 28
	cellB    = 32
)

var le = binary.LittleEndian

// segment is an open-addressing table of cells without a pointer: linear
// probing from the place that Key.Lo scales to, deletion by shifting back.
// At least one cell is always empty.
type segment struct {
	block
	cells uint32 // capacity
	count uint32 // cells in use
	depth uint8  // leading bits of Key.Hi that all keys here share
}

func newSegment(cells uint32, depth uint8) *segment {
	return &segment{block: block{buf: make([]byte, int(cells)*cellSize)}, cells: cells, depth: depth}
}

// home is the index of the cell where a search for key.Lo begins.
func (s *segment) home(lo uint64) uint32 {
	i, _ := bits.Mul64(lo, uint64(s.cells))
	return uint32(i)
}

// find returns the offset of k's cell, or of the empty cell where k belongs.
func (s *segment) find(k Key) (off int, ok bool) {
	off = int(s.home(k.Lo)) * cellSize
	for {
		c := s.buf[off : off+cellSize : off+cellSize]
		if le.Uint32(c[cellRef:]) == 0 {
			return off, false
		}
		if le.Uint64(c[cellHi:]) == k.Hi && le.Uint64(c[cellLo:]) == k.Lo {
			return off, true
		}
		if off += cellSize; off == len(s.buf) {
			off = 0
		}
	}
}

// read returns the level and the rule of the cell at off.
func (s *segment) read(off int) (level, uint32) {
	c := s.buf[off : off+cellSize : off+cellSize]
	return level{
		last: int64(le.Uint64(c[cellLast:])),
		a:    le.Uint32(c[cellA:]),
		b:    le.Uint32(c[cellB:]),
	}, le.Uint32(c[cellRef:])
}

// write makes the cell at off hold k with level l under rule ref.
func (s *segment) write(off int, k Key, l level, ref uint32) {
	s.touch(off, cellSize)
	c := s.buf[off : off+cellSize : off+cellSize]
	le.PutUint32(c[cellRef:], ref)
	le.PutUint64(c[cellHi:], k.Hi)
	le.PutUint64(c[cellLo:], k.Lo)
	le.PutUint64(c[cellLast:], uint64(l.last))
	le.PutUint32(c[cellA:], l.a)
	le.PutUint32(c[cellB:], l.b)
}

// key returns the key of the cell at off, not ok if the cell is empty.
func (s *segment) key(off int) (k Key, ok bool) {
	c := s.buf[off : off+cellSize : off+cellSize]
	return Key{Hi: le.Uint64(c[cellHi:]), Lo: le.Uint64(c[cellLo:])}, le.Uint32(c[cellRef:]) != 0
}

// remove empties the cell at off and shifts back the cells behind it that
// would otherwise be cut off from their homes.
func (s *segment) remove(off int) {
	hole := uint32(off / cellSize)
	for i := hole; ; {
		if i++; i == s.cells {
			i = 0
		}
		k, ok := s.key(int(i) * cellSize)
		if !ok {
			break
		}
		if s.distance(s.home(k.Lo), i) >= s.distance(hole, i) {
			s.touch(int(hole)*cellSize, cellSize)
			copy(s.buf[int(hole)*cellSize:][:cellSize], s.buf[int(i)*cellSize:])
			hole = i
		}
	}
	s.touch(int(hole)*cellSize, cellSize)
	clear(s.buf[int(hole)*cellSize:][:cellSize])
	s.count--
}

// distance is the number of steps from one cell to another, round the end.
func (s *segment) distance(from, to uint32) uint32 {
	if to >= from {
		return to - from
	}
	return s.cells - from + to
}

// adopt copies a whole cell whose key is not here yet; there must be room.
func (s *segment) adopt(cell []byte) {
	off, _ := s.find(Key{Hi: le.Uint64(cell[cellHi:]), Lo: le.Uint64(cell[cellLo:])})
	copy(s.buf[off:off+cellSize], cell)
	s.count++
}

// resize moves all cells into an array of another capacity, > s.count.
func (s *segment) resize(cells uint32) {
	old := s.buf
	s.replace(make([]byte, int(cells)*cellSize))
	s.cells, s.count = cells, 0
	for off := 0; off < len(old); off += cellSize {
		if le.Uint32(old[off+cellRef:]) != 0 {
			s.adopt(old[off : off+cellSize])
		}
	}
}
