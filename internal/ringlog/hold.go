package ringlog

import (
	"slices"
	"time"
)

// holdBounds is how many times the bound the log may take while it is held.
const holdBounds = 4

// Hold keeps the entries from an index on while somebody is sent a snapshot of the
// state at it. Who has taken the snapshot asks for what comes after, and is asked
// for the term of the entry at it; without them it would need another snapshot,
// again and again where it takes longer than the log reaches back. etcd's server pauses
// compaction for the same reason.
type Hold struct {
	s     *Store
	index uint64
	end   time.Duration // since the store's epoch
}

// Hold keeps what begins with index from being dropped as a prefix for d, but no
// more than four times the store's bound as of the compaction that finds it.
func (s *Store) Hold(index uint64, d time.Duration) *Hold {
	end := s.elapsed() + d
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropHolds(end - d)
	h := &Hold{s: s, index: index, end: end}
	s.holds = append(s.holds, h)
	return h
}

// For makes the hold end d from now. One that has ended, or whose entries are gone, may
// be forgotten already: then it holds nothing any more.
func (h *Hold) For(d time.Duration) {
	end := h.s.elapsed() + d
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	h.end = end
}

// dropHolds forgets those that have ended, and those whose entries are gone. The caller
// holds mu.
func (s *Store) dropHolds(now time.Duration) {
	s.holds = slices.DeleteFunc(s.holds, func(h *Hold) bool { return h.end <= now || h.index+1 < s.lo })
}

// held is the highest index up to which entries may go, of those up to last. The
// caller holds mu.
func (s *Store) held(last uint64, now time.Duration) uint64 {
	s.dropHolds(now)
	if last >= s.hi || s.bytes > holdBounds*s.bound {
		return last // another leader overrules all of it, as no compaction leaves nothing; or it is too much
	}
	for _, h := range s.holds {
		last = min(last, h.index-1)
	}
	return last
}
