package bucket

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestSlotStates walks through every step of every state: what it answers, and
// where the slot stands then. Letters are steps: Seal, Unseal, Own, Forget, Drop,
// Birth, and Copy: all chunks of an empty slot; a digit is the revision.
func TestSlotStates(t *testing.T) {
	steps := map[byte]func(int64, []Move) []byte{
		'S': SealEntry, 'U': UnsealEntry, 'O': OwnEntry, 'F': ForgetEntry, 'D': DropEntry, 'B': BirthEntry,
	}
	for _, c := range []struct{ way, want string }{
		{"S1", "moved sealed 1"},
		{"S1 S1", "moved sealed 1"},
		{"S1 S2", "refused sealed 1"},
		{"S1 U1", "moved held 1"},
		{"S1 U1 U1", "moved held 1"},
		{"S1 U1 S1", "refused held 1"},
		{"U2 S1", "refused held 2"},
		{"U2 S2", "refused held 2"},
		{"U2 S3", "moved sealed 3"},
		{"S2 U1", "refused sealed 2"},
		{"S2 U3", "refused sealed 2"},
		{"S1 F1", "moved absent 1"},
		{"S1 F1 F1", "moved absent 1"},
		{"S2 F1", "refused sealed 2"},
		{"F1", "refused held 0"},
		{"S1 F1 U1", "refused absent 1"},
		{"S1 F1 C1", "refused absent 1"},
		{"S1 F1 C2", "moved complete 2"},
		{"S1 F1 C2 C2", "moved complete 2"},
		{"S1 F1 C2 C1", "refused complete 2"},
		{"S1 F1 C2 C3", "moved complete 3"},
		{"S1 F1 C2 O2", "moved held 2"},
		{"S1 F1 C2 O2 O2", "moved held 2"},
		{"S1 F1 C2 O3", "refused complete 2"},
		{"S1 F1 C2 O2 C2", "refused held 2"},
		{"S1 F1 C2 O2 S2", "refused held 2"},
		{"S1 F1 C2 O2 S3", "moved sealed 3"},
		{"S1 F1 C2 O2 D2", "refused held 2"},
		{"S1 F1 C2 S3", "refused complete 2"},
		{"S1 F1 C2 F2", "refused complete 2"},
		{"S1 F1 C2 D2", "moved absent 2"},
		{"S1 F1 C2 D1", "refused complete 2"},
		{"S1 F1 C2 D2 C2", "refused absent 2"},
		{"S1 F1 C2 D2 O2", "refused absent 2"},
		{"S1 F1 D2 C2", "refused absent 2"},
		{"S1 F1 D2 D2", "moved absent 2"},
		{"D2", "refused held 0"},
		{"S1 F1 B2", "moved held 2"},
		{"S1 F1 B2 B2", "moved held 2"},
		{"S1 F1 C2 B2", "moved held 2"},
		{"S1 F1 D2 B2", "moved held 2"},
		{"S2 F2 B1", "refused absent 2"},
		{"B1", "refused held 0"},
		{"S1 B1", "refused sealed 1"},
		{"S0", "refused held 0"},
	} {
		g, code := newRig(t, 2), Code(0)
		for _, s := range strings.Fields(c.way) {
			m := Move{Slot: 1, Revision: uint64(s[1] - '0')}
			if s[0] == 'C' {
				code = g.entry(AdoptEntry(0, m, 9, emptySlot(t))).Items[0].Code
				continue
			}
			code = g.entry(steps[s[0]](0, []Move{m})).Items[0].Code
		}
		i := g.table.Slot(1)
		got := fmt.Sprint(map[Code]string{Moved: "moved", MoveAgain: "again", MoveRefused: "refused"}[code], " ", i.State, " ", i.Revision)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.way, got, c.want)
		}
		if held := i.State == SlotHeld; held != g.table.Held(1) || g.table.HeldCount() != 1+int(flag(held)) {
			t.Errorf("%s: %d held", c.way, g.table.HeldCount())
		}
		g.entry(HoldEntry(0, []uint16{1}))
		if g.table.Slot(1).State != i.State {
			t.Errorf("%s: a hold makes it %v", c.way, g.table.Slot(1).State)
		}
		checkBooks(t, g.table)
		same(t, g.table, restored(t, g.table))
	}
}

// emptySlot is the one chunk of slot 1 without anything in it.
func emptySlot(t tester) []byte {
	g := newRig(t, 2)
	g.entry(SealEntry(0, []Move{{Slot: 1, Revision: 1}}))
	chunk, last := g.table.Export(1, 1).Final(0)
	if !last {
		t.Fatal("an empty slot is more than one chunk")
	}
	return chunk
}

func TestChunksAreTakenInOrder(t *testing.T) {
	from, to := newRig(t, 1), &rig{tb: t, table: NewTable(1)}
	for n := range uint64(100) {
		from.apply(0, Request{Takes: []Take{{Key: spread(n), Rule: Rule{Policy: 1, Version: 1, Limit: unit}, Cost: 1}}})
	}
	m := Move{Revision: 5}
	from.entry(SealEntry(3, []Move{m}))
	chunks := func(pass uint64) (all [][]byte) {
		e := from.table.Export(0, pass)
		for last := false; !last; {
			var c []byte
			if c, last = e.Final(1000); c != nil {
				all = append(all, c)
			}
		}
		return all
	}
	adopt := func(c []byte, want Code) {
		t.Helper()
		if out := to.entry(AdoptEntry(9, m, 11, c)); out.Items[0].Code != want {
			t.Fatalf("code %d, want %d, at %+v", out.Items[0].Code, want, to.table.Slot(0))
		}
	}
	first, second := chunks(1), chunks(2)
	if len(first) < 4 {
		t.Fatalf("%d chunks", len(first))
	}
	adopt(first[1], MoveRefused)
	adopt(first[0], Moved)
	adopt(first[0], Moved)
	adopt(first[2], MoveRefused)
	adopt(second[1], MoveRefused)
	adopt(first[1], Moved)
	if i := to.table.Slot(0); i.State != SlotIncoming || i.Next != 2 || i.Pass != 1 || i.Buckets == 0 || i.Time != 0 {
		t.Fatalf("%+v", i)
	}
	for _, c := range second {
		adopt(c, Moved)
	}
	adopt(first[2], MoveRefused)
	if i := to.table.Slot(0); i.State != SlotComplete || i.Next != uint32(len(second)) || i.Pass != 2 || i.Buckets != 100 || i.Time != 11 {
		t.Fatalf("%+v", i)
	}
	checkBooks(t, to.table)
}

// TestClearingAwayIsBounded forgets a slot with many buckets, results and permits,
// and takes it back at once.
func TestClearingAwayIsBounded(t *testing.T) {
	g := newRig(t, 2)
	g.fillSlot(30_000, 2000)
	g.entry(SealEntry(1, []Move{{Slot: 1, Revision: 1}}))
	g.entry(ForgetEntry(1, []Move{{Slot: 1, Revision: 1}}))
	all := g.table.Slot(1).Buckets
	if all < 25_000 || g.table.ruined != 1 {
		t.Fatalf("%d left at once", all)
	}
	g.entry(StampEntry(1, 0))
	if left := g.table.Slot(1).Buckets; left < all-clearPerEntry || left >= all {
		t.Fatalf("%d of %d left", left, all)
	}
	checkBooks(t, g.table)
	same(t, g.table, restored(t, g.table))
	again := 0
	for ; g.entry(AdoptEntry(2, Move{1, 2}, 9, emptySlot(t))).Items[0].Code == MoveAgain; again++ {
		checkBooks(t, g.table)
	}
	if i := g.table.Slot(1); i.State != SlotComplete || again < 3 || again > 30 || i.Buckets != 0 {
		t.Fatalf("%+v after %d steps", i, again)
	}
	checkBooks(t, g.table)
	g.entry(OwnEntry(2, []Move{{1, 2}}))
	if cells, _ := g.table.MemoryBytes(); cells != 0 || g.table.ids.index.count != 0 || g.table.Buckets() != 0 {
		t.Fatalf("%d bytes of cells, %d records left", cells, g.table.ids.index.count)
	}
}

// lasting6 is one limit per algorithm, under which nothing recovers in a test.
func lasting6() []Limit {
	limits := all(MaxAmount, MaxWindow)
	limits[0].Amount, limits[1].Amount = 1, 1
	return limits
}

// fillSlot fills slot 1 with buckets of all algorithms that stay, and n results and
// permits of each kind.
func (g *rig) fillSlot(buckets, n int) {
	limits := lasting6()
	for i := range buckets {
		l := limits[i%len(limits)]
		r := Request{Home: 1, Takes: []Take{{Slot: 1, Key: spread(uint64(i)), Rule: Rule{Policy: uint64(i % len(limits)), Version: 1, Limit: l}, Cost: 1}}}
		switch {
		case i < n:
			r.ID = own(uint64(i))
		case i < 2*n:
			r.ID = client(uint64(i), 0)
			r.ID.Session = uint64(i % 7)
		}
		g.apply(1, r)
	}
	l := limits[len(limits)-1]
	for i := range n {
		r := Rule{Policy: uint64(len(limits) - 1), Version: 1, Limit: l}
		g.apply(1+int64(i), Request{Home: 1, Takes: []Take{{Slot: 1, Key: spread(5), Rule: r, Cost: 1}}})
		r = Rule{Policy: uint64(len(limits) - 2), Version: 1, Limit: limits[len(limits)-2]}
		g.apply(1+int64(i), Request{Home: 1, Takes: []Take{{Slot: 1, Key: spread(4), Rule: r, Cost: 1}}})
	}
}

func TestBadChunkIsAnErrorBeforeItIsLogged(t *testing.T) {
	g := newRig(t, 2)
	g.fillSlot(60, 20)
	g.entry(SealEntry(99, []Move{{1, 1}}))
	chunk, last := g.table.Export(1, 1).Final(64 << 10)
	info, err := ParseChunk(chunk)
	if want := (ChunkInfo{Slot: 1, Pass: 1, First: true, Last: true, SlotTime: 99, Cells: info.Cells, Results: 40}); err != nil || !last || info != want || info.Cells < 60 {
		t.Fatalf("%+v, want %+v: %v", info, want, err)
	}
	to := &rig{tb: t, table: NewTable(2)}
	for at := range chunk {
		bad := bytes.Clone(chunk)
		bad[at] ^= 1 << (at % 8)
		for _, b := range [][]byte{bad, chunk[:at]} {
			if _, err := ParseChunk(b); !errors.Is(err, ErrChunk) && (at > 0 || !errors.Is(err, ErrVersion)) {
				t.Fatalf("byte %d: %v", at, err)
			}
		}
		if at > 0 && to.entry(AdoptEntry(1, Move{1, 1}, 0, bad)).Items[0].Code != MoveRefused || to.table.Slot(1) != (SlotInfo{}) {
			t.Fatalf("byte %d: adopted", at)
		}
	}
	if c := to.entry(AdoptEntry(1, Move{0, 1}, 0, chunk)).Items[0].Code; c != MoveRefused {
		t.Fatalf("a chunk of another slot: code %d", c)
	}
	if err := to.table.Apply(1<<40, AdoptEntry(1, Move{1, 1}, 0, []byte{9}), nil); !errors.Is(err, ErrVersion) {
		t.Fatalf("another version: %v", err)
	}
}
