package ringlog

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
)

// stampOf reads test entries: eight bytes of stamp, "unstamped" if shorter.
func stampOf(b []byte) (int64, bool) {
	if len(b) < 8 {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(b)), true
}

func stamped(index, term uint64, stamp int64) *raft.Log {
	return &raft.Log{Index: index, Term: term, Data: binary.LittleEndian.AppendUint64(nil, uint64(stamp))}
}

func plain(index, term uint64, size int) *raft.Log {
	return &raft.Log{Index: index, Term: term, Type: raft.LogNoop, Data: make([]byte, size)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// model is a log as a map.
type model map[uint64]uint64

func (m model) bounds() (lo, hi uint64) {
	for i := range m {
		if lo == 0 || i < lo {
			lo = i
		}
		hi = max(hi, i)
	}
	return lo, hi
}

// still is a clock that stands still: all entries arrive at once, and the newest
// stamp says most.
func still() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

func TestBehavesLikeAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, m := New(1<<20, stampOf, nil), model{}
		s.GoBy(still())
		next, term := uint64(1), uint64(1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			lo, hi := m.bounds()
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1: // append, now and then after a gap
				if rapid.IntRange(0, 9).Draw(t, "gap") == 0 {
					next += 100
					clear(m)
				}
				term += rapid.Uint64Range(0, 3).Draw(t, "terms")
				for range rapid.IntRange(1, 400).Draw(t, "n") {
					if err := s.StoreLog(stamped(next, term, int64(next))); err != nil {
						t.Fatal(err)
					}
					m[next] = term
					next++
				}
			case 2: // a snapshot covers a prefix
				if hi > 0 {
					to := rapid.Uint64Range(lo, hi).Draw(t, "to")
					_ = s.DeleteRange(lo, to)
					for i := lo; i <= to; i++ {
						delete(m, i)
					}
				}
			case 3: // a suffix is overruled, by entries of another term
				if hi > 0 {
					term++
					from := rapid.Uint64Range(lo, hi).Draw(t, "from")
					_ = s.DeleteRange(from, hi)
					for i := from; i <= hi; i++ {
						delete(m, i)
					}
					next = from
				}
			case 4: // nothing there
				_ = s.DeleteRange(hi+1, hi+5)
			}
			check(t, s, m)
		}
	})
}

func check(t *rapid.T, s *Store, m model) {
	lo, hi := m.bounds()
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	if first != lo || last != hi {
		t.Fatalf("holds %d to %d, want %d to %d", first, last, lo, hi)
	}
	bytes := 0
	for i := range hi + 3 {
		var l raft.Log
		err := s.GetLog(i, &l)
		term, ok := m[i]
		if ok != (err == nil) || ok && (l.Term != term || l.Index != i) {
			t.Fatalf("entry %d: %+v, %v; want term %d, present %v", i, l, err, term, ok)
		}
		if err != nil && err != raft.ErrLogNotFound {
			t.Fatal(err)
		}
		if ok {
			bytes += 8 + entryOverhead
		}
	}
	if s.Bytes() != bytes {
		t.Fatalf("counts %d bytes, want %d", s.Bytes(), bytes)
	}
	if stamp, _, ok := s.Anchor(); hi > 0 && (!ok || stamp != int64(hi)) {
		t.Fatalf("anchor %d, %v; want %d", stamp, ok, hi)
	}
}

func TestAnchorIsTheNewestStampAndWhenItCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sec = int64(time.Second)
		s := New(1<<20, stampOf, nil)
		begun := time.Now()
		want := func(what string, stamp int64, age time.Duration) {
			t.Helper()
			got, at, ok := s.Anchor()
			if !ok || got != stamp || time.Since(at) != age {
				t.Errorf("%s: anchor %d, %v old, %v; want %d, %v old", what, got, time.Since(at), ok, stamp, age)
			}
		}
		if _, _, ok := s.Anchor(); ok {
			t.Error("an empty log has an anchor")
		}
		must(t, s.StoreLog(stamped(1, 1, sec)))
		time.Sleep(time.Second)
		must(t, s.StoreLogs([]*raft.Log{stamped(2, 1, 2*sec), plain(3, 1, 20)}))
		time.Sleep(time.Second)
		want("an entry without a stamp is no anchor", 2*sec, time.Second)
		must(t, s.StoreLog(stamped(4, 1, 3*sec)))
		time.Sleep(time.Second)
		want("the newest", 3*sec, time.Second)
		must(t, s.DeleteRange(4, 4))
		want("a suffix is cut off", 2*sec, 2*time.Second)
		must(t, s.DeleteRange(2, 3))
		want("and again", sec, time.Since(begun))
		must(t, s.StoreLog(stamped(2, 2, 5*sec)))
		must(t, s.DeleteRange(1, 2))
		want("all is behind a snapshot", 5*sec, 0)
		time.Sleep(time.Second)
		must(t, s.StoreLog(plain(3, 2, 0)))
		want("still", 5*sec, time.Second)
		s.Restored(50, 3, 999*sec)
		want("a snapshot was restored", 999*sec, 0)
		must(t, s.StoreLog(stamped(51, 3, 1000*sec)))
		time.Sleep(time.Minute)
		want("entries after it", 1000*sec, time.Minute)
	})
}

// TestEntryHeldUpOnItsWayIsNoAnchor: an outage must not be lost because something that
// the deposed leader sent before it arrives at its end.
func TestEntryHeldUpOnItsWayIsNoAnchor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sec = int64(time.Second)
		s := New(1<<20, stampOf, nil)
		now := func() int64 {
			stamp, at, _ := s.Anchor()
			return stamp + int64(time.Since(at))
		}
		must(t, s.StoreLog(stamped(1, 1, 10*sec)))
		time.Sleep(5 * time.Second)
		must(t, s.StoreLog(stamped(2, 1, 10*sec+1)))
		if got := now(); got != 15*sec {
			t.Errorf("group time is %d, want 15 s", got)
		}
		time.Sleep(time.Minute) // by then a little drift would weigh more
		if got := now(); got != 70*sec+1 {
			t.Errorf("group time is %d, want that of the newest", got)
		}
		must(t, s.StoreLog(stamped(3, 2, 69*sec))) // of a leader that has lost a second
		if got := now(); got != 69*sec {
			t.Errorf("group time is %d: the next leader would go on by more than what has passed", got)
		}
	})
}

// TestWhatIsHeldUpIsNoAnchorBehindASnapshot: what was known before the log became short is
// known still when something late is all that is in it.
func TestWhatIsHeldUpIsNoAnchorBehindASnapshot(t *testing.T) {
	const sec = int64(time.Second)
	for name, shorten := range map[string]func(*Store){
		"a compaction": func(s *Store) {
			must(t, s.StoreLogs([]*raft.Log{stamped(39, 1, 9*sec), stamped(40, 1, 10*sec)}))
			must(t, s.DeleteRange(39, 40))
		},
		"a snapshot of the leader": func(s *Store) { s.Restored(40, 1, 10*sec) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(1<<20, stampOf, nil)
			shorten(s)
			time.Sleep(5 * time.Second)
			must(t, s.StoreLog(stamped(41, 1, 10*sec+1)))
			stamp, at, _ := s.Anchor()
			if got := stamp + int64(time.Since(at)); got != 15*sec {
				t.Errorf("%s: group time is %d, want 15 s", name, got)
			}
			must(t, s.StoreLog(stamped(42, 2, 11*sec))) // of a leader that has lost time
			if stamp, _, _ := s.Anchor(); stamp != 11*sec {
				t.Errorf("%s: the next leader would go on from %d", name, stamp)
			}
		})
	}
}

// TestTheEntryThatASnapshotStandsForIsAnAnchor: it came when it came, and not with the
// snapshot.
func TestTheEntryThatASnapshotStandsForIsAnAnchor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sec = int64(time.Second)
		s := New(1<<20, stampOf, nil)
		must(t, s.StoreLogs([]*raft.Log{stamped(40, 1, 10*sec), plain(41, 1, 20)}))
		time.Sleep(5 * time.Second)
		s.Restored(40, 1, 10*sec)
		stamp, at, ok := s.Anchor()
		if got := stamp + int64(time.Since(at)); got != 15*sec || !ok {
			t.Errorf("group time is %d, %v; want 15 s", got, ok)
		}
	})
}

func TestRestoredMakesTheLogAgreeWithTheSnapshot(t *testing.T) {
	s := New(1<<20, stampOf, nil)
	s.GoBy(still())
	for i := uint64(1); i <= 40; i++ {
		must(t, s.StoreLog(stamped(i, 1, int64(i))))
	}
	// The leader's snapshot is at 30, of term 2: entries 25 to 40 here were overruled.
	s.Restored(30, 2, 500)
	var l raft.Log
	must(t, s.GetLog(30, &l))
	if l.Term != 2 || l.Type != raft.LogNoop || len(l.Data) != 0 {
		t.Errorf("entry 30 is %+v", l)
	}
	must(t, s.DeleteRange(30, 30)) // raft, which keeps few entries behind a snapshot
	must(t, s.GetLog(30, &l))
	if err := s.GetLog(29, &l); err != raft.ErrLogNotFound {
		t.Errorf("entry 29: %v", err)
	}
	// Raft compares the first entry above, cuts and goes on.
	must(t, s.GetLog(31, &l))
	must(t, s.DeleteRange(31, 40))
	must(t, s.StoreLog(stamped(31, 2, 600)))
	if stamp, _, _ := s.Anchor(); stamp != 600 {
		t.Errorf("anchor %d", stamp)
	}
	if want := 2*entryOverhead + 8; s.Bytes() != want {
		t.Errorf("%d bytes, want %d", s.Bytes(), want)
	}
	s.Restored(100, 3, 700)
	if last, _ := s.LastIndex(); last != 0 {
		t.Errorf("entries up to %d are left below a snapshot at 100", last)
	}
}

func TestAsksForASnapshotBeforeItsBound(t *testing.T) {
	asked := 0
	s := New(100_000, stampOf, func() { asked++ })
	i := uint64(0)
	fill := func(to float64) {
		for s.Pressure() < to {
			i++
			must(t, s.StoreLog(plain(i, 1, 1000)))
		}
	}
	fill(0.45)
	if asked != 0 {
		t.Errorf("asked %d times at %.2f", asked, s.Pressure())
	}
	fill(0.6)
	if asked != 1 {
		t.Errorf("asked %d times at %.2f", asked, s.Pressure())
	}
	if n := s.Fit(); n < 25 || n > 34 {
		t.Errorf("%d entries fit", n)
	}
	must(t, s.DeleteRange(1, i-s.Fit()))
	if p := s.Pressure(); p > 0.4 {
		t.Errorf("pressure %.2f after a snapshot", p)
	}
	fill(0.6)
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	// Nobody answers: no entry is dropped.
	fill(3)
	if first, _ := s.FirstIndex(); i-first+1 != uint64(s.Bytes()/(1000+entryOverhead)) {
		t.Errorf("holds %d to %d in %d bytes", first, i, s.Bytes())
	}
}

func TestRefusesAnIndexBelowItsFirst(t *testing.T) {
	s := New(1<<20, nil, nil)
	must(t, s.StoreLog(plain(10, 1, 0)))
	if err := s.StoreLog(plain(9, 1, 0)); err == nil {
		t.Error("stored")
	}
}

func TestStableStore(t *testing.T) {
	s := New(1<<20, nil, nil)
	if _, err := s.Get([]byte("a")); err == nil || err.Error() != "not found" {
		t.Errorf("got %v, raft wants the text: not found", err)
	}
	if _, err := s.GetUint64([]byte("a")); err == nil || err.Error() != "not found" {
		t.Errorf("got %v", err)
	}
	must(t, s.Set([]byte("a"), []byte("x")))
	must(t, s.SetUint64([]byte("a"), 7))
	if v, err := s.Get([]byte("a")); string(v) != "x" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if n, err := s.GetUint64([]byte("a")); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if first, last := func() (uint64, uint64) { i, term := s.Last(); return i, term }(); first+last != 0 {
		t.Errorf("an empty log ends at %d, %d", first, last)
	}
}

func BenchmarkAppendAndDrop(b *testing.B) {
	s := New(64<<20, stampOf, nil)
	e := stamped(0, 1, 5)
	b.ReportAllocs()
	for i := range b.N {
		e.Index = uint64(i + 1)
		_ = s.StoreLog(e)
		if i%2048 == 2047 {
			_ = s.DeleteRange(1, uint64(i-1024))
		}
	}
}

func TestYoungerCountsByArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(1<<20, nil, nil)
		want := func(younger, older uint64) {
			t.Helper()
			if y, o := s.Younger(time.Minute); y != younger || o != older {
				t.Errorf("%d younger, %d older, want %d and %d", y, o, younger, older)
			}
		}
		want(0, 0)
		for i := uint64(1); i <= 10; i++ {
			must(t, s.StoreLog(plain(i, 1, 1)))
			time.Sleep(10 * time.Second)
		}
		want(5, 5)
		time.Sleep(time.Hour)
		want(0, 10)
		must(t, s.DeleteRange(1, 10))
		want(0, 0)
	})
}

func TestRingShrinksWithItsLog(t *testing.T) {
	s := New(1<<30, nil, nil)
	for i := uint64(1); i <= 100_000; i++ {
		must(t, s.StoreLog(plain(i, 1, 0)))
	}
	must(t, s.DeleteRange(1, 99_990))
	if len(s.ring) > 2*minSlots {
		t.Errorf("a ring of %d slots for 10 entries", len(s.ring))
	}
	var l raft.Log
	for i := uint64(99_991); i <= 100_000; i++ {
		must(t, s.GetLog(i, &l))
	}
	must(t, s.DeleteRange(99_991, 100_000))
	must(t, s.StoreLog(plain(100_001, 1, 0)))
}

func TestArrivalsGoByTheClockGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		twice := func() time.Time { return start.Add(time.Hour + 2*time.Since(start)) }
		s := New(1<<20, stampOf, nil)
		s.GoBy(twice)
		must(t, s.StoreLog(stamped(1, 1, 7)))
		time.Sleep(time.Second)
		if stamp, at, ok := s.Anchor(); !ok || stamp != 7 || twice().Sub(at) != 2*time.Second {
			t.Errorf("anchor %d at %v, %v", stamp, at, ok)
		}
		if younger, older := s.Younger(1500 * time.Millisecond); younger != 0 || older != 1 {
			t.Errorf("%d entries of the last 1.5 s, %d older", younger, older)
		}
	})
}

// TestHeldEntriesStay: what a receiver of a snapshot will ask for outlives every
// compaction, for a while and within a bound; what another leader overrules goes.
func TestHeldEntriesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := func(s *Store) uint64 { i, _ := s.FirstIndex(); return i }
		s := New(10*(1000+entryOverhead), nil, nil)
		for i := uint64(1); i <= 20; i++ {
			must(t, s.StoreLog(plain(i, 1, 1000)))
		}
		h, later := s.Hold(6, time.Hour), s.Hold(9, time.Hour)
		must(t, s.DeleteRange(1, 12))
		if first(s) != 6 {
			t.Fatalf("the log begins at %d while the entries from 6 on are held", first(s))
		}
		must(t, s.DeleteRange(18, 20)) // a suffix
		h.For(time.Second)
		must(t, s.DeleteRange(6, 12))
		if last, _ := s.LastIndex(); first(s) != 6 || last != 17 {
			t.Fatalf("%d to %d, want 6 to 17", first(s), last)
		}
		time.Sleep(time.Second)
		must(t, s.DeleteRange(6, 12))
		if first(s) != 9 {
			t.Fatalf("the log begins at %d while the entries from 9 on are held", first(s))
		}
		for i := uint64(18); i <= 50; i++ { // more than four bounds
			must(t, s.StoreLog(plain(i, 1, 1000)))
		}
		must(t, s.DeleteRange(9, 30))
		if first(s) != 31 {
			t.Fatalf("the log begins at %d: it is held beyond its bound", first(s))
		}
		s.Hold(40, time.Hour)
		must(t, s.DeleteRange(31, 50)) // all: another leader overrules them
		if first(s) != 0 {
			t.Fatalf("the log begins at %d", first(s))
		}
		later.For(0)
		s = New(1<<20, nil, nil)
		for i := uint64(1); i <= 50; i++ {
			must(t, s.StoreLog(plain(i, 1, 10)))
		}
		s.Hold(10, time.Hour)
		s.Restored(40, 1, 0)
		must(t, s.DeleteRange(40, 48))
		if first(s) != 49 {
			t.Fatalf("the log begins at %d: it is held for who was sent what this replica has forgotten", first(s))
		}
		for range 100 {
			s.Hold(49, 0)
		}
		if len(s.holds) > 1 {
			t.Errorf("%d holds that have ended are kept", len(s.holds))
		}
	})
}
