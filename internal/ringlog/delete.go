package ringlog

// DeleteRange drops the entries first … last, both included. Raft deletes either
// a prefix, after a snapshot, or a suffix that another leader overrules.
// Of a prefix it leaves what a Hold keeps.
func (s *Store) DeleteRange(first, last uint64) error {
	now := s.elapsed()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.empty() || last < s.lo || first > s.hi || first > last {
		return nil
	}
	if last == s.floor {
		last-- // raft does not know yet that it needs this one
	}
	if first > s.lo {
		s.dropSuffix(first)
	} else if last = s.held(last, now); last >= s.lo {
		s.dropPrefix(min(last, s.hi))
	}
	if s.bytes <= s.bound/2 {
		s.called = false
	}
	n := len(s.ring)
	for n > minSlots && s.hi+1-s.lo < uint64(n/8) {
		n /= 2
	}
	if n < len(s.ring) {
		s.resize(n)
	}
	return nil
}

// dropPrefix drops all up to index last. What they say of the time stays. The caller
// holds mu.
func (s *Store) dropPrefix(last uint64) {
	if s.newest <= last {
		s.newest = 0
	}
	for i := s.lo; i <= last; i++ {
		if e := s.at(i); e.stamped {
			s.outlive(e.anchor())
		}
		s.clear(i)
	}
	s.lo = last + 1
}

// dropSuffix drops all from index first on. The caller holds mu.
func (s *Store) dropSuffix(first uint64) {
	for i := first; i <= s.hi; i++ {
		s.clear(i)
	}
	s.hi = first - 1
	if s.newest >= first {
		s.findNewest(s.hi)
	}
}

// findNewest makes the last stamped entry at or below index from the newest one.
// The caller holds mu.
func (s *Store) findNewest(from uint64) {
	s.newest = 0
	for i := from; i >= s.lo && i > 0; i-- {
		if s.at(i).stamped {
			s.newest = i
			return
		}
	}
}

// clear forgets entry i. The caller holds mu.
func (s *Store) clear(i uint64) {
	e := s.at(i)
	s.bytes -= len(e.data) + entryOverhead
	*e = entry{}
}
