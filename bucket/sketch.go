package bucket

// sketch counts buckets per slot and home in a fixed size, 512 KiB when all of
// it is in use: two rows of counters, each home one in either. A count is the
// smaller of its two, never less than the truth: all that is added for a home is
// in both. It is no part of a dump; the cells tell it.
type sketch struct {
	pages [sketchRows * sketchPages]*[sketchPage]uint32
}

const (
	sketchRows  = 2
	sketchPages = 16 // of a row
	sketchPage  = 4096
)

// places are the home's counters: page and place in it, in either row.
func places(slot uint16, k Key) (page, at [sketchRows]int) {
	h := fold(fold(1, uint64(slot)), k.Hi&(1<<32-1))
	for row := range sketchRows {
		n := h >> (32 * row) % (sketchPages * sketchPage)
		page[row], at[row] = row*sketchPages+int(n/sketchPage), int(n%sketchPage)
	}
	return page, at
}

// add adds n, modulo 2^32, to what is counted for k's home.
func (s *sketch) add(slot uint16, k Key, n uint32) {
	page, at := places(slot, k)
	for row := range sketchRows {
		p := &s.pages[page[row]]
		if *p == nil {
			*p = new([sketchPage]uint32)
		}
		(*p)[at[row]] += n
	}
}

func (s *sketch) count(slot uint16, k Key) uint32 {
	least := ^uint32(0)
	page, at := places(slot, k)
	for row := range sketchRows {
		p := s.pages[page[row]]
		if p == nil {
			return 0
		}
		least = min(least, p[at[row]])
	}
	return least
}
