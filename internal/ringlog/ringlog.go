// Package ringlog is the log of a raft replica that lives in memory: a ring of
// entries and the votes beside it.
//
// The ring is bounded in bytes, softly: when more than half of the bound is used
// it calls for a snapshot, which lets raft drop the entries it covers; it never
// drops an entry itself, because an entry above the last snapshot exists nowhere
// else on this replica. Each entry remembers when it arrived here, from which a
// new leader knows how far its group's time has run on (see Anchor).
//
// It keeps of an entry what this product uses: term, type and data. Extensions
// and AppendedAt are not kept.
package ringlog

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// entryOverhead is the memory of an entry beside its data, in bytes.
const entryOverhead = 64

const minSlots = 256 // of the ring; a power of two

// entry is one raft log entry. Its index is implied by its place.
type entry struct {
	data     []byte
	term     uint64
	stamp    int64         // group time it carries, if stamped
	received time.Duration // since the store's epoch
	typ      raft.LogType
	stamped  bool
}

// anchor is a stamp, when it arrived here, and the term of the leader that made it.
type anchor struct {
	stamp    int64
	received time.Duration
	term     uint64
	ok       bool
}

// Store implements raft.LogStore and raft.StableStore. It may be used by any
// number of goroutines; GetLog hands out the stored Data, which nobody may change.
type Store struct {
	bound   int
	stampOf func(data []byte) (stamp int64, ok bool)
	notify  func()
	now     func() time.Time // set by GoBy
	epoch   time.Time

	mu     sync.RWMutex // guards what follows; held for memory operations only
	ring   []entry      // entry of index i is at i modulo len(ring), a power of two
	lo, hi uint64       // first and last index; lo > hi: empty
	bytes  int          // of all entries
	called bool         // notify was called for the present fullness
	newest uint64       // index of the newest stamped entry, 0 if none
	base   anchor       // what the entries before the first one present said of the time
	floor  uint64       // index of the entry that stands for a restored snapshot, until one is stored above it; 0: none
	holds  []*Hold      // that may have ended
	kv     map[string][]byte
	nums   map[string]uint64
}

// New returns an empty store. bound is the memory in bytes it aims to stay
// below; stampOf reads the group time of a command entry (nil: none is stamped);
// notify is called, outside any lock, when a snapshot should let it drop entries
// (nil: nobody is told). notify must not block.
func New(bound int, stampOf func([]byte) (int64, bool), notify func()) *Store {
	if stampOf == nil {
		stampOf = func([]byte) (int64, bool) { return 0, false }
	}
	if notify == nil {
		notify = func() {}
	}
	return &Store{
		bound: max(bound, 1), stampOf: stampOf, notify: notify, now: time.Now, epoch: time.Now(),
		ring: make([]entry, minSlots), lo: 1,
		kv: make(map[string][]byte), nums: make(map[string]uint64),
	}
}

func (s *Store) at(index uint64) *entry { return &s.ring[index&uint64(len(s.ring)-1)] }

func (s *Store) empty() bool { return s.lo > s.hi }

// FirstIndex returns the first index present, 0 if the log is empty.
func (s *Store) FirstIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.empty() {
		return 0, nil
	}
	return s.lo, nil
}

// LastIndex returns the last index present, 0 if the log is empty.
func (s *Store) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.empty() {
		return 0, nil
	}
	return s.hi, nil
}

// Last returns the index and term of the last entry present, zeros if there is none.
func (s *Store) Last() (index, term uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.empty() {
		return 0, 0
	}
	return s.hi, s.at(s.hi).term
}

// GetLog fills l, or returns raft.ErrLogNotFound.
func (s *Store) GetLog(index uint64, l *raft.Log) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.empty() || index < s.lo || index > s.hi {
		return raft.ErrLogNotFound
	}
	e := s.at(index)
	*l = raft.Log{Index: index, Term: e.term, Type: e.typ, Data: e.data}
	return nil
}

// StoreLog stores one entry; see StoreLogs.
func (s *Store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs appends entries, or overwrites those present. An index beyond the
// next one, as after a restored snapshot, drops all older entries. It fails only
// for an index below the first one present.
func (s *Store) StoreLogs(logs []*raft.Log) error {
	now := s.elapsed()
	s.mu.Lock()
	for _, l := range logs {
		if err := s.store(l, now); err != nil {
			s.mu.Unlock()
			return err
		}
	}
	call := !s.called && s.bytes > s.bound/2
	s.called = s.called || call
	s.mu.Unlock()
	if call {
		s.notify()
	}
	return nil
}

// store puts one entry into the ring. The caller holds mu.
func (s *Store) store(l *raft.Log, now time.Duration) error {
	switch {
	case s.empty():
		s.lo, s.hi = l.Index, l.Index-1
	case l.Index < s.lo:
		return fmt.Errorf("ringlog: index %d is below the first one, %d", l.Index, s.lo)
	case l.Index > s.hi+1:
		s.dropPrefix(s.hi)
		s.lo, s.hi = l.Index, l.Index-1
	case l.Index <= s.hi:
		s.bytes -= len(s.at(l.Index).data) + entryOverhead
		if l.Index == s.newest {
			*s.at(l.Index) = entry{}
			s.findNewest(s.hi)
		}
	}
	if l.Index-s.lo >= uint64(len(s.ring)) {
		s.resize(2 * len(s.ring))
	}
	s.floor = 0
	e := entry{data: l.Data, term: l.Term, typ: l.Type, received: now}
	if l.Type == raft.LogCommand {
		e.stamp, e.stamped = s.stampOf(l.Data)
	}
	*s.at(l.Index) = e
	s.hi = max(s.hi, l.Index)
	s.bytes += len(e.data) + entryOverhead
	if e.stamped && l.Index >= s.newest {
		s.newest = l.Index
	}
	return nil
}

// resize moves the entries to a ring of n slots. The caller holds mu.
func (s *Store) resize(n int) {
	old := s.ring
	s.ring = make([]entry, n)
	for i := s.lo; i <= s.hi; i++ {
		*s.at(i) = old[i&uint64(len(old)-1)]
	}
}
