package bucket

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// world is the small world that random logs happen in: few slots, keys, rules
// and ids, so that they meet.
type world struct {
	slots int
	rules []Rule
}

func worlds(t *rapid.T) *world {
	w := &world{slots: rapid.SampledFrom([]int{3, 16}).Draw(t, "slots")}
	for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
		l := limits().Draw(t, "limit")
		if rapid.IntRange(0, 9).Draw(t, "nothing") == 0 {
			l.Amount = 0
		}
		w.rules = append(w.rules, Rule{Policy: uint64(i % 2), Version: uint64(i), Limit: l})
	}
	return w
}

func (w *world) slot(t *rapid.T) uint16 {
	return uint16(rapid.IntRange(0, w.slots-1).Draw(t, "slot")) % 5
}

// request draws any request. Slot 2 is not held for a while.
func (w *world) request(t *rapid.T) Request {
	r := Request{Home: w.slot(t), NoNewBucket: rapid.IntRange(0, 9).Draw(t, "cap") == 0}
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3, 6}).Draw(t, "takes") {
		rule := rapid.SampledFrom(w.rules).Draw(t, "rule")
		k := Take{Slot: r.Home, Key: spread(rapid.Uint64Range(0, 3).Draw(t, "key")), Rule: rule, Cost: costs(rule.Limit).Draw(t, "cost")}
		if rapid.IntRange(0, 3).Draw(t, "away") == 0 {
			k.Slot = w.slot(t)
		}
		r.Takes = append(r.Takes, k)
	}
	r.ID = w.id(t)
	return r
}

func (w *world) id(t *rapid.T) ID {
	id := ID{Kind: rapid.SampledFrom([]IDKind{NoID, ClientID, ClientID, OwnID}).Draw(t, "kind")}
	if id.Kind == NoID {
		return id
	}
	id.Content = rapid.SampledFrom([]uint64{7, 7, 7, 8}).Draw(t, "content")
	id.AgeNanos = rapid.SampledFrom([]uint64{0, 0, 5, Horizon, Horizon + 1}).Draw(t, "age")
	if id.Kind == OwnID {
		id.Own = spread(rapid.Uint64Range(0, 3).Draw(t, "own"))
		return id
	}
	id.Session = rapid.Uint64Range(1, 2).Draw(t, "session")
	id.Sequence = rapid.Uint64Range(0, 12).Draw(t, "sequence")
	id.Acked = rapid.SampledFrom([]uint64{0, 0, 0, 1, 3, 6}).Draw(t, "acked")
	return id
}

// stamp draws the next stamp: small steps, those of a rule, and those of the horizon.
func (w *world) stamp(t *rapid.T, now int64) int64 {
	rule := rapid.SampledFrom(w.rules).Draw(t, "pace")
	step := rapid.OneOf(steps(rule.Limit), rapid.Int64Range(0, sec),
		rapid.SampledFrom([]int64{Horizon / 3, Horizon, Horizon + 1, 2*Horizon + 1}))
	return min(later(now, step.Draw(t, "step")), 1<<61)
}

// entry draws any entry.
func (w *world) entry(t *rapid.T, g *rig, now int64) (e []byte, reqs []Request) {
	stamp := w.stamp(t, now)
	switch rapid.IntRange(0, 12).Draw(t, "entry") {
	case 0:
		return StampEntry(stamp, rapid.SampledFrom([]int{0, 5, 1000, 1 << 20}).Draw(t, "sweep")), nil
	case 1:
		return HoldEntry(stamp, []uint16{2}), nil
	}
	for range rapid.IntRange(0, 5).Draw(t, "requests") {
		reqs = append(reqs, w.request(t))
	}
	return g.encode(stamp, reqs...), reqs
}

func firstSlots(n int) []byte {
	slots := []uint16{0, 1}
	for i := 3; i < n; i++ {
		slots = append(slots, uint16(i))
	}
	return HoldEntry(0, slots)
}

func TestTableEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds(t)
		g := &rig{tb: t, table: NewTable(w.slots)}
		g.entry(firstSlots(w.slots))
		m := newModel(w.slots)
		for i := range w.slots {
			m.held[uint16(i)] = i != 2
		}
		for range rapid.IntRange(1, 60).Draw(t, "entries") {
			e, reqs := w.entry(t, g, g.table.Time())
			stamp, _ := EntryStamp(e)
			m.now = max(m.now, stamp)
			if entryKind(e[1]) == holdEntry {
				m.held[2] = true
			}
			if len(reqs) == 1 {
				comparePeek(t, g, stamp, reqs[0], e)
			}
			out := g.entry(e)
			if g.table.Time() != m.now || len(out.Items) != len(reqs) {
				t.Fatalf("time %d, not %d; %d results for %d requests", g.table.Time(), m.now, len(out.Items), len(reqs))
			}
			for i := range reqs {
				want, answers := m.apply(&reqs[i])
				compare(t, &reqs[i], out, i, want, answers)
			}
		}
		checkBooks(t, g.table)
	})
}

// comparePeek checks that Peek says what Apply then does, and leaves no trace.
func comparePeek(t *rapid.T, g *rig, stamp int64, r Request, e []byte) {
	before := dump(t, g.table)
	var peeked Results
	g.table.Peek(stamp, &r, &peeked)
	if !bytes.Equal(before, dump(t, g.table)) {
		t.Fatalf("peek changed the table")
	}
	other := NewTable(len(g.table.slots))
	if err := other.Restore(bytes.NewReader(before)); err != nil {
		t.Fatal(err)
	}
	var applied Results
	if err := other.Apply(g.index+1, e, &applied); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(peeked, applied); diff != "" {
		t.Fatalf("%+v: (-peek +apply)\n%s", r, diff)
	}
}

func compare(t *rapid.T, r *Request, out *Results, i int, want Result, answers []Answer) {
	got := out.Items[i]
	have := append([]Answer(nil), out.Answers[got.First:got.First+got.Count]...)
	got.First = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%+v: (-model +table)\n%s", r, diff)
	}
	if diff := cmp.Diff(append([]Answer(nil), answers...), have); diff != "" {
		t.Fatalf("%+v: (-model +table)\n%s", r, diff)
	}
}

// checkBooks recounts everything that the state keeps a count of.
func checkBooks(t tester, tb *Table) {
	t.Helper()
	buckets, queued := 0, 0
	for i := range tb.slots {
		n, deepest := 0, uint8(0)
		tb.slots[i].segments(func(_ int, g *segment) {
			inUse := uint32(0)
			g.each(func(cell []byte) {
				k := Key{Hi: le.Uint64(cell[cellHi:]), Lo: le.Uint64(cell[cellLo:])}
				if tb.slots[i].segment(k) != g {
					t.Fatalf("slot %d: key in a wrong segment", i)
				}
				if off, ok := g.find(k); !ok || &g.buf[off] != &cell[0] {
					t.Fatalf("slot %d: a cell is cut off from its home", i)
				}
				inUse++
			})
			if inUse != g.count {
				t.Fatalf("segment: %d cells in use, count %d", inUse, g.count)
			}
			n += int(inUse)
			deepest = max(deepest, g.depth)
		})
		if len(tb.slots[i].dir) > 1<<deepest {
			t.Fatalf("slot %d: dir of %d for %d bits", i, len(tb.slots[i].dir), deepest)
		}
		if n != tb.slots[i].count {
			t.Fatalf("slot %d: %d buckets, count %d", i, n, tb.slots[i].count)
		}
		buckets += n
		queued += int(tb.slots[i].own.count)
	}
	if buckets != tb.buckets {
		t.Fatalf("%d buckets, count %d", buckets, tb.buckets)
	}
	if err := checkRecords(&tb.ids, queued); err != nil {
		t.Fatalf("%v", err)
	}
}

// checkRecords counts the records by kind, and what is reachable.
func checkRecords(d *ids, own int) error {
	var kinds [4]int
	more, queued := 0, 0
	for i := range len(d.pool.pages) * pageRecords {
		c := d.pool.view(uint32(i + 1))
		kind := kindOf(c)
		kinds[kind]++
		switch kind {
		case sessionRecord:
			queued += int(d.queue(uint32(i + 1)).count)
		case clientResult, ownResult:
			more += max(0, answersOf(c)+1) / 3 // 1 in the result, then 3 each
		}
	}
	named := kinds[sessionRecord] + kinds[clientResult] + kinds[ownResult]
	if kinds[ownResult] != own || kinds[clientResult] != queued || named != int(d.index.count) || named+more != d.pool.used {
		return fmt.Errorf("records by kind %v; %d and %d queued, %d in the index, %d more, %d used",
			kinds, own, queued, d.index.count, more, d.pool.used)
	}
	return nil
}
