package wire

// slab hands out items of one type from a piece of memory that is reused. Items
// are not cleared: who takes one sets it.
type slab[T any] struct {
	items []T
	used  int
}

// next returns an item. Earlier items stay where they are.
func (s *slab[T]) next() *T {
	if s.used == len(s.items) {
		s.items = make([]T, max(4, 2*len(s.items)))
		s.used = 0
	}
	s.used++
	return &s.items[s.used-1]
}

// reset takes all items back that fit in one piece of at most limit items.
func (s *slab[T]) reset(limit int) {
	s.used = 0
	if len(s.items) > limit {
		s.items = nil
	}
}
