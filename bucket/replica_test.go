package bucket

import (
	"bytes"
	"io"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func apply(t tester, tb *Table, index int, entry []byte) *Results {
	t.Helper()
	var out Results
	if err := tb.Apply(uint64(index), entry, &out); err != nil {
		t.Fatalf("entry %d: %v", index, err)
	}
	return &out
}

// same fails unless two tables are equal to the last byte.
func same(t tester, a, b *Table) {
	t.Helper()
	if a.Chain() != b.Chain() || a.Index() != b.Index() || a.Time() != b.Time() {
		t.Fatalf("chain %x and %x, index %d and %d", a.Chain(), b.Chain(), a.Index(), b.Index())
	}
	if !bytes.Equal(dump(t, a), dump(t, b)) {
		t.Fatal("dumps differ")
	}
	if a.Buckets() != b.Buckets() || a.HeldCount() != b.HeldCount() {
		t.Fatalf("buckets %d and %d", a.Buckets(), b.Buckets())
	}
}

// seeds is how many random logs a test tries.
func seeds() uint64 {
	if testing.Short() {
		return 1
	}
	return 2
}

func TestReplicasAreByteIdentical(t *testing.T) {
	for seed := range seeds() {
		log := newBulk(t, seed).log(1)
		a, b := NewTable(3), NewTable(3)
		most := 0
		for i, e := range log {
			ra := apply(t, a, i+1, e)
			if i%2 == 0 { // one asks for results into used memory, the other not at all
				if err := b.Apply(uint64(i+1), e, nil); err != nil {
					t.Fatal(err)
				}
			} else if rb := apply(t, b, i+1, e); !reflect.DeepEqual(ra, rb) {
				t.Fatal(cmp.Diff(ra, rb))
			}
			most = max(most, a.Buckets())
			if i%40 == 0 {
				same(t, a, b)
				checkBooks(t, a)
			}
		}
		same(t, a, b)
		checkBooks(t, a)
		if most < 3*maxCells {
			t.Fatalf("at most %d buckets: too few for splits", most)
		}
	}
}

// TestRestoredReplicaContinuesIdentically restores one replica from a dump that
// was begun at one entry and written while later ones were applied.
func TestRestoredReplicaContinuesIdentically(t *testing.T) {
	for seed := range seeds() {
		log := newBulk(t, seed).log(1)
		rng := rand.New(rand.NewPCG(seed, 2))
		a := NewTable(3)
		type open struct {
			dump  *Dump
			want  []byte
			until int
		}
		var dumps []open
		for i, e := range log {
			if rng.IntN(20) == 0 {
				dumps = append(dumps, open{a.BeginDump(), dump(t, a), i + rng.IntN(40)})
			}
			apply(t, a, i+1, e)
			for k, d := range dumps {
				if d.until != i {
					continue
				}
				got := written(t, d.dump)
				if !bytes.Equal(got, d.want) {
					t.Fatalf("dump %d of index %d, written at %d, is not the state of its index", k, d.dump.Index(), i+1)
				}
				b := NewTable(3)
				b.hold([]uint16{1})
				if err := b.Restore(bytes.NewReader(got)); err != nil {
					t.Fatal(err)
				}
				checkBooks(t, b)
				for j := int(d.dump.Index()); j <= i; j++ {
					apply(t, b, j+1, log[j])
				}
				same(t, a, b)
				d.dump.Close()
			}
		}
	}
}

// TestDumpBesideApply writes dumps from another goroutine, for the race detector.
func TestDumpBesideApply(t *testing.T) {
	log := newBulk(t, 9).log(1)
	a := NewTable(3)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i, e := range log {
		if i%25 == 24 {
			d, want, cut := a.BeginDump(), dump(t, a), i%50 == 24
			wg.Go(func() {
				defer d.Close()
				if cut {
					go d.Close()
					_, _ = d.WriteTo(io.Discard)
					return
				}
				if got := written(t, d); !bytes.Equal(got, want) {
					t.Errorf("dump of index %d is not the state of its index", d.Index())
				}
			})
		}
		apply(t, a, i+1, e)
	}
}

func TestRestoreOverAnOpenDump(t *testing.T) {
	log := newBulk(t, 5).log(1)
	a, b := NewTable(3), NewTable(3)
	for i, e := range log[:60] {
		apply(t, a, i+1, e)
		if i < 20 {
			apply(t, b, i+1, e)
		}
	}
	earlier, want := b.BeginDump(), dump(t, b)
	if err := b.Restore(bytes.NewReader(dump(t, a))); err != nil {
		t.Fatal(err)
	}
	for i := 60; i < 80; i++ {
		apply(t, a, i+1, log[i])
		apply(t, b, i+1, log[i])
	}
	same(t, a, b)
	if !bytes.Equal(written(t, earlier), want) {
		t.Fatal("a restore changed an open dump")
	}
}

// TestSmallReplicasAreByteIdentical is the same in the small random world.
func TestSmallReplicasAreByteIdentical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds(t)
		g := &rig{tb: t, table: NewTable(w.slots)}
		g.entry(firstSlots(w.slots))
		other := NewTable(w.slots)
		apply(t, other, 1, firstSlots(w.slots))
		for range rapid.IntRange(1, 30).Draw(t, "entries") {
			e, _ := w.entry(t, g, g.table.Time())
			want := g.entry(e)
			if diff := cmp.Diff(want, apply(t, other, int(g.index), e)); diff != "" {
				t.Fatal(diff)
			}
			if rapid.IntRange(0, 5).Draw(t, "restore") == 0 {
				d := dump(t, other)
				other = NewTable(w.slots)
				if err := other.Restore(bytes.NewReader(d)); err != nil {
					t.Fatal(err)
				}
			}
		}
		same(t, g.table, other)
	})
}

// TestFreshBucketEqualsNoBucket applies one log with stamps that sweep and with
// stamps that do not, in a table so wide that its own sweep comes nowhere.
func TestFreshBucketEqualsNoBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds(t)
		swept := &rig{tb: t, table: NewTable(6)}
		kept := &rig{tb: t, table: NewTable(1 << 12)}
		kept.table.cursor.slot = 10
		slots := HoldEntry(0, []uint16{0, 1, 3, 4, 5})
		swept.entry(slots)
		kept.entry(slots)
		for range rapid.IntRange(1, 40).Draw(t, "entries") {
			now := w.stamp(t, swept.table.Time())
			swept.entry(StampEntry(now, 1000))
			kept.entry(StampEntry(now, 0))
			var reqs []Request
			for range rapid.IntRange(1, 3).Draw(t, "requests") {
				reqs = append(reqs, w.request(t, swept.table))
			}
			want, got := kept.apply(now, reqs...), swept.apply(now, reqs...)
			w.granted(reqs, got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-kept +swept)\n%s", diff)
			}
		}
		if swept.table.Buckets() > kept.table.Buckets() {
			t.Fatalf("%d buckets swept, %d kept", swept.table.Buckets(), kept.table.Buckets())
		}
	})
}
