package ringlog

import (
	"sort"
	"time"

	"github.com/hashicorp/raft"
)

// GoBy makes the log note arrivals by another clock than time.Now, which must have
// a monotonic reading. It is called before anything else.
func (s *Store) GoBy(now func() time.Time) { s.now, s.epoch = now, now() }

// elapsed is the time since the store was made.
func (s *Store) elapsed() time.Duration { return s.now().Sub(s.epoch) }

// anchorAge bounds how old an entry may be to count in Anchor beside the newest: what
// a clock that is a little fast gains since then is not to matter.
const anchorAge = 30 * time.Second

// Anchor returns a stamp and when its entry arrived here, with its monotonic reading.
// Group time is at least stamp plus the time since then, because an entry arrives
// after it was stamped. That holds for every stamped entry of the newest one's term; of
// those of the last half minute the one that says most is chosen. It need not be the
// newest: what a deposed leader sent may be held up on its way for as long as the
// outage was. Entries that a compaction has dropped, or a snapshot stands for, count like
// the others. Entries of earlier terms do not count, though they may say more: what
// was lost between two leaders must not come back at once later. When a suffix is cut
// off the entries before it count again. ok is false if there was never a stamp.
func (s *Store) Anchor() (stamp int64, received time.Time, ok bool) {
	since := s.elapsed() - anchorAge
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.newest == 0 {
		return s.base.stamp, s.epoch.Add(s.base.received), s.base.ok
	}
	best := s.at(s.newest).anchor()
	for i := s.newest - 1; i >= s.lo && i > 0; i-- {
		e := s.at(i)
		if e.term != best.term || e.received < since {
			break
		}
		if a := e.anchor(); e.stamped && a.saysMore(best) {
			best = a
		}
	}
	if b := s.base; b.ok && b.term == best.term && b.received >= since && b.saysMore(best) {
		best = b
	}
	return best.stamp, s.epoch.Add(best.received), true
}

func (e *entry) anchor() anchor { return anchor{e.stamp, e.received, e.term, true} }

// saysMore says which stamp is more, with what has passed since.
func (a anchor) saysMore(than anchor) bool {
	return than.stamp-a.stamp < int64(than.received-a.received) // no stamp is negative
}

// outlive notes the anchor of an entry that goes, if it is the best of its term and the
// last half minute. The caller holds mu.
func (s *Store) outlive(a anchor) {
	if b := s.base; !b.ok || b.term != a.term || b.received < a.received-anchorAge || !b.saysMore(a) {
		s.base = a
	}
}

// Restored tells the log that a snapshot up to index, an entry of term, with
// group time stamp was restored: older entries are dropped, and (stamp, now) is an
// anchor beside those that are present, and beside what went if it was of that term.
//
// Entries above index stay even if they are of a deposed leader: raft compares
// and cuts them itself. For that it must find the snapshot's own term at index,
// so a differing entry there is replaced by an empty one of the right term;
// otherwise the leader would send the same snapshot for ever (hashicorp/raft
// issue 697). It is never sent on: that takes the entry before it, which is gone.
func (s *Store) Restored(index, term uint64, stamp int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.empty() || index < s.lo:
	case index >= s.hi:
		s.dropPrefix(s.hi)
		s.floor = 0
	default:
		s.keepAbove(index, term)
	}
	s.holds = nil // what this replica sent was of before
	s.outlive(anchor{stamp, s.elapsed(), term, true})
	if s.bytes <= s.bound/2 {
		s.called = false
	}
}

// keepAbove drops what is below index and makes the entry there one of term.
// The caller holds mu; lo ≤ index < hi.
func (s *Store) keepAbove(index, term uint64) {
	s.dropPrefix(index - 1)
	s.floor = index
	e := s.at(index)
	if e.stamped && e.term == term {
		s.outlive(e.anchor())
	}
	s.bytes -= len(e.data)
	*e = entry{term: term, typ: raft.LogNoop, received: e.received}
	if s.newest == index {
		s.newest = 0
	}
}

// Pressure is the memory in use as a share of the bound; above 0.5 a snapshot
// was asked for.
func (s *Store) Pressure() float64 {
	return float64(s.Bytes()) / float64(s.bound)
}

// Bytes is the memory in use by entries.
func (s *Store) Bytes() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.bytes
}

// Younger is how many of the present entries arrived within the last d, and how
// many did not.
func (s *Store) Younger(d time.Duration) (younger, older uint64) {
	since := s.elapsed() - d
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.empty() {
		return 0, 0
	}
	n := int(s.hi + 1 - s.lo)
	k := sort.Search(n, func(i int) bool { return s.at(s.lo+uint64(i)).received > since })
	return uint64(n - k), uint64(k)
}

// Fit is how many of the present entries, counted from the newest, take at most
// half of the bound less a margin: what a snapshot should leave.
func (s *Store) Fit() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	room := s.bound / 3
	for i := s.hi; i >= s.lo && i > 0; i-- {
		room -= len(s.at(i).data) + entryOverhead
		if room < 0 {
			return s.hi - i
		}
	}
	return s.hi + 1 - s.lo
}
