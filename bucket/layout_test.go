package bucket

import (
	"math/rand/v2"
	"testing"
)

// TestManyBucketsEqualTheModel charges several buckets per request while their
// segments grow and split under them.
func TestManyBucketsEqualTheModel(t *testing.T) {
	g := newRig(t, 2)
	rng := rand.New(rand.NewPCG(1, 1))
	spent := map[uint64]uint64{}
	for range 200 {
		reqs := make([]Request, 50)
		var keys []uint64
		for i := range reqs {
			for range 4 {
				n := rng.Uint64N(20_000)
				keys = append(keys, n)
				reqs[i].Takes = append(reqs[i].Takes, Take{Key: spread(n), Rule: Rule{Policy: 1, Version: 1, Limit: unit}, Cost: 1 + n%3})
			}
		}
		out := g.apply(0, reqs...)
		for i := 0; i < len(keys); i += 4 {
			for _, n := range keys[i : i+4] {
				spent[n] += 1 + n%3
			}
			for k, n := range keys[i : i+4] {
				if got := unit.Burst - out.Answers[i+k].Remaining; got != spent[n] {
					t.Fatalf("bucket %d: %d spent, want %d", n, got, spent[n])
				}
			}
		}
	}
	if n := g.table.Slot(0).Buckets; n != len(spent) || g.table.Slot(1).Buckets != 0 || g.table.Slot(9).Buckets != 0 {
		t.Fatalf("%d buckets, want %d", n, len(spent))
	}
	if bits := g.table.slots[0].bits(); bits < 2 {
		t.Fatalf("%d bits of dir: too few splits", bits)
	}
	checkBooks(t, g.table)
	for n, want := range spent {
		if _, a := g.peek(0, Request{Takes: []Take{{Key: spread(n), Rule: Rule{Policy: 1, Version: 1, Limit: unit}}}}); unit.Burst-a[0].Remaining != want {
			t.Fatalf("bucket %d: %d remain", n, a[0].Remaining)
		}
	}
}

// TestSweepDropsAllThatIsFresh visits each cell once and gives all memory back.
func TestSweepDropsAllThatIsFresh(t *testing.T) {
	g := newRig(t, 1)
	limit := per(1, sec, 1)
	const keys = 1000
	for n := range uint64(keys) {
		g.apply(0, Request{Takes: []Take{{Key: spread(n), Rule: Rule{Policy: 1, Version: 1, Limit: limit}, Cost: 1}}})
	}
	cells, _ := g.table.MemoryBytes()
	g.table.cursor = cursor{}
	g.entry(StampEntry(sec-1, cells/cellSize+1))
	if g.table.Buckets() != keys {
		t.Fatalf("%d buckets left that were not fresh", g.table.Buckets())
	}
	g.table.cursor = cursor{}
	g.entry(StampEntry(sec, 0))
	sl := &g.table.slots[0]
	if left := g.table.sweepSegment(sl, sl.dir[0], 1<<20); sl.count != 0 || left != 1<<20-cells/cellSize-keys {
		t.Fatalf("%d fresh buckets left after %d visits", sl.count, 1<<20-left)
	}
	g.entry(StampEntry(sec, 1))
	if after, _ := g.table.MemoryBytes(); g.table.Buckets() != 0 || after != 0 {
		t.Fatalf("%d fresh buckets left, %d bytes", g.table.Buckets(), after)
	}
}

// TestCollidingKeysOnlyCostTime: keys that no bit can part end in one long
// segment and a directory of bounded size.
func TestCollidingKeysOnlyCostTime(t *testing.T) {
	if testing.Short() {
		t.Skip("the square of some thousand keys")
	}
	var s slot
	const keys = 2 * maxCells
	for n := range uint64(keys) {
		s.insert(Key{Hi: 0, Lo: n << 50}, level{a: 1}, 1)
	}
	if s.count != keys || s.bits() > maxDepth {
		t.Fatalf("%d buckets, %d bits", s.count, s.bits())
	}
	for n := range uint64(keys) {
		if _, ok := s.segment(Key{0, n << 50}).find(Key{0, n << 50}); !ok {
			t.Fatalf("key %d is lost", n)
		}
	}
}
