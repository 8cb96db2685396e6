package bucket

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// carry moves slot 1 of g to another table, of which it returns the rig, and calls
// f between any two chunks ahead of the seal.
func (g *rig) carry(size int, f func()) *rig {
	g.tb.Helper()
	to := &rig{tb: g.tb, table: NewTable(g.table.Slots())}
	m := Move{Slot: 1, Revision: 9}
	adopt := func(c []byte) {
		g.tb.Helper()
		if c == nil {
			return
		}
		i, err := ParseChunk(c)
		if err != nil {
			g.tb.Fatal(err)
		}
		code := MoveAgain
		for code == MoveAgain {
			code = to.entry(AdoptEntry(0, m, i.SlotTime, c)).Items[0].Code
		}
		if code != Moved {
			g.tb.Fatalf("code %d of %+v at %+v", code, i, to.table.Slot(1))
		}
	}
	e := g.table.Export(1, 1)
	for more := true; more; f() {
		var c []byte
		c, more = e.Next(size)
		adopt(c)
	}
	if c := g.entry(SealEntry(g.table.Time(), []Move{m})).Items[0].Code; c != Moved {
		g.tb.Fatalf("seal: code %d", c)
	}
	for last := false; !last; {
		var c []byte
		if c, last = e.Final(size); e.Ended() {
			g.tb.Fatal("the export has ended")
		}
		adopt(c)
	}
	to.entry(OwnEntry(0, []Move{m}))
	return to
}

// contents is all that can be seen of a slot: each cell with its list, each result
// and session.
func contents(tb *Table, slot uint16) map[string]string {
	all := map[string]string{}
	sl := &tb.slots[slot]
	sl.segments(func(_ int, g *segment) {
		for off := 0; off < len(g.buf); off += cellSize {
			key, ok := g.key(off)
			if !ok {
				continue
			}
			raw, ref := g.read(off)
			x := &site{s: &tb.state, key: key, slot: slot, raw: raw}
			rule := tb.rules.version(ref).Rule
			text := fmt.Sprint(rule, raw)
			switch rule.Limit.Algorithm {
			case SlidingLog:
				text = fmt.Sprint(rule, raw.a, raw.b)
				for at := x.log(); at.ok(); at.next() {
					text += fmt.Sprint(" ", at.time(), at.cost())
				}
			case Concurrency:
				text = fmt.Sprint(rule, raw.a)
				for n := ends(raw).first; n != noRecord; n = tb.ids.permit(n).younger {
					text += fmt.Sprint(" ", tb.ids.permit(n).deadline, tb.ids.permit(n).units, le.Uint64(tb.ids.pool.view(n)[permitToken:]))
				}
			}
			all[fmt.Sprint("cell ", key)] = text
		}
	})
	results := func(n uint32) string {
		var text strings.Builder
		for ; n != noRecord; n = le.Uint32(tb.ids.pool.view(n)[resultFollow:]) {
			c := tb.ids.pool.view(n)
			fmt.Fprint(&text, le.Uint64(c[recordA:]), le.Uint64(c[recordB:]), c[resultContent:resultFollow], tb.ids.flags(n))
			for _, s := range tb.ids.recall(n, nil) {
				fmt.Fprint(&text, s.answer(&tb.rules), s.key, s.slot, s.cost)
			}
		}
		return text.String()
	}
	all["own"] = results(sl.own.head)
	for i := range len(tb.ids.pool.pages) * pageRecords {
		if c := tb.ids.pool.view(uint32(i + 1)); kindOf(c) == sessionRecord && le.Uint16(c[recordSlot:]) == slot {
			all[fmt.Sprint("session ", le.Uint64(c[recordA:]))] = fmt.Sprint(c[sessionWatermark:sessionQueue], results(tb.ids.queue(uint32(i+1)).head))
		}
	}
	all["slot"] = fmt.Sprint(sl.count, sl.grants, sl.born, sl.birth, tb.slotTime(slot))
	return all
}

func sameContents(t tester, want, got *Table) {
	t.Helper()
	if diff := cmp.Diff(contents(want, 1), contents(got, 1)); diff != "" {
		t.Fatal(diff[:min(len(diff), 5000)])
	}
}

// TestMovedSlotIsWhole moves a slot with many cells, long lists and results while
// it is charged, segments split, and buckets are swept.
func TestMovedSlotIsWhole(t *testing.T) {
	for _, size := range []int{2000, 64 << 10} {
		g := newRig(t, 2)
		g.fillSlot(9000, 1500)
		rng := rand.New(rand.NewPCG(1, 2))
		quick := Rule{Policy: 99, Version: 1, Limit: per(1, MinWindow, 5)}
		changes, now := 0, g.table.Time()
		to := g.carry(size, func() {
			now += 1000
			for range 10 {
				i := rng.IntN(12_000)
				l := lasting6()[i%6]
				g.apply(now, Request{Home: 1, ID: client(uint64(5000+changes), 0), Takes: []Take{
					{Slot: 1, Key: spread(uint64(i)), Rule: Rule{Policy: uint64(i % 6), Version: 1, Limit: l}, Cost: 1},
					{Slot: 1, Key: spread(uint64(i + 1_000_000)), Rule: quick, Cost: 1},
				}})
				changes++
			}
			g.entry(StampEntry(now, 2000))
		})
		if changes < 40 || g.table.Slot(1).Buckets < 9000 {
			t.Fatalf("%d changes, %+v", changes, g.table.Slot(1))
		}
		for _, tb := range []*Table{g.table, to.table} {
			checkBooks(t, tb)
		}
		want, got := contents(g.table, 1), contents(to.table, 1)
		for k, v := range want {
			if w, ok := got[k]; ok && k != "slot" && v != w {
				t.Fatalf("size %d: %s: %s, want %s", size, k, w[:min(len(w), 300)], v[:min(len(v), 300)])
			} else if !ok && !strings.HasPrefix(v, "{99 1") { // what is fresh is not sent
				t.Fatalf("size %d: %s is lost: %s", size, k, v)
			}
		}
		for k := range got {
			if _, ok := want[k]; !ok {
				t.Fatalf("size %d: %s came from nowhere", size, k)
			}
		}
		same(t, to.table, restored(t, to.table))
	}
}

// TestTooManyChangesStartOver makes the memory of changes overflow.
func TestTooManyChangesStartOver(t *testing.T) {
	g := newRig(t, 2)
	g.fillSlot(3000, 10)
	steps := 0
	to := g.carry(20_000, func() {
		if steps++; steps%3 == 1 && steps < 20 {
			e := g.table.slots[1].export
			e.changes, e.order, e.whole = nil, nil, true
			g.entry(StampEntry(g.table.Time(), 500))
			g.apply(g.table.Time(), Request{Home: 1, Takes: []Take{{Slot: 1, Key: spread(0), Rule: Rule{Policy: 0, Version: 1, Limit: lasting6()[0]}, Cost: 1}}})
		}
	})
	checkBooks(t, to.table)
	sameContents(t, g.table, to.table)
}

// TestCutOverAmidACopy cuts over between chunks, in the last case also before the seal.
func TestCutOverAmidACopy(t *testing.T) {
	for _, until := range []int{3, 5, 12} {
		g := newRig(t, 2)
		g.fillSlot(3000, 10)
		now, steps := g.table.Time(), 0
		to := g.carry(20_000, func() {
			if steps++; steps%2 == 0 && steps < until {
				now += sec
				p := uint64(steps) % 6
				l := lasting6()[p]
				l.Burst = MaxAmount / 2
				if !l.Algorithm.HasBurst() {
					l.Amount = MaxAmount / 2
				}
				g.entry(CutoverEntry(now, []Rule{{Policy: p, Version: uint64(steps), Limit: l}}))
			}
		})
		g.entry(UnsealEntry(now, []Move{{1, 9}}))
		g.entry(StampEntry(now, 1<<20)) // prices all
		g.entry(StampEntry(now, 1<<20))
		want, got := contents(g.table, 1), contents(to.table, 1)
		for _, k := range []string{"own", "slot"} {
			delete(want, k)
			delete(got, k)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff[:min(len(diff), 3000)])
		}
	}
}

func TestExportEnds(t *testing.T) {
	m := []Move{{1, 1}}
	for name, f := range map[string]func(*rig){
		"another one": func(g *rig) { g.table.Export(1, 2) },
		"unsealed":    func(g *rig) { g.entry(UnsealEntry(0, m)) },
		"forgotten":   func(g *rig) { g.entry(ForgetEntry(0, m)) },
		"restored": func(g *rig) {
			if err := g.table.Restore(bytes.NewReader(dump(t, g.table))); err != nil {
				t.Fatal(err)
			}
		},
		"closed": func(g *rig) { g.table.slots[1].export.Close() },
	} {
		g := newRig(t, 2)
		e := g.table.Export(1, 1)
		if c, last := e.Final(0); c != nil || last || e.Ended() {
			t.Fatal("a slot that is not sealed gives its rest")
		}
		g.entry(SealEntry(0, m))
		f(g)
		if c, more := e.Next(0); c != nil || more {
			t.Errorf("%s: a chunk", name)
		}
		if c, last := e.Final(0); !e.Ended() || c != nil || last {
			t.Errorf("%s: goes on", name)
		}
		e.Close()
		e.Close()
	}
	for _, e := range []*Export{newRig(t, 2).table.Export(7, 1), NewTable(2).Export(1, 1), NewTable(2).Salvage(1, 1), NewTable(2).Salvage(7, 1)} {
		if !e.Ended() {
			t.Error("a slot that is not there is read")
		}
	}
}

// TestEveryChangeIsSentAgain changes a bucket in each way there is behind the copy.
func TestEveryChangeIsSentAgain(t *testing.T) {
	limits := lasting6()
	rule := func(i int) Rule { return Rule{Policy: uint64(i), Version: 1, Limit: limits[i]} }
	take := func(i int, id ID) Request {
		return Request{Home: 1, ID: id, Takes: []Take{{Slot: 1, Key: spread(uint64(i)), Rule: rule(i), Cost: 5}}}
	}
	permit := func(op Op) Request {
		r := take(5, ID{})
		r.Op, r.Permit = op, permitID(1, 1)
		return r
	}
	for name, f := range map[string]func(g *rig, i int){
		"take":    func(g *rig, i int) { g.expect("take", 2, take(i, ID{}), Admitted) },
		"refund":  func(g *rig, i int) { g.expect("refund", 2, giveBack(OpRefund, own(uint64(i)), 2), Refunded) },
		"undo":    func(g *rig, i int) { g.expect("undo", 2, giveBack(OpUndo, own(uint64(i)), 0), Refunded) },
		"release": func(g *rig, _ int) { g.expect("release", 2, permit(OpRelease), Refunded) },
		"renew":   func(g *rig, _ int) { g.expect("renew", 2, permit(OpRenew), Admitted) },
		"new": func(g *rig, i int) {
			r := take(i, ID{})
			r.Takes[0].Key = spread(uint64(i + 100))
			g.expect("take", 2, r, Admitted)
		},
		"cut over": func(g *rig, i int) {
			r := rule(i)
			r.Version, r.Limit.Burst = 2, 7
			if !r.Limit.Algorithm.HasBurst() {
				r.Limit.Amount = 7
			}
			g.entry(CutoverEntry(2, []Rule{r}))
		},
		"swept": func(g *rig, _ int) { g.entry(StampEntry(MaxWindow*3, 0)) },
	} {
		for i := range limits {
			g := newRig(t, 2)
			for i := range limits {
				g.expect("take", 1, take(i, own(uint64(i))), Admitted)
			}
			done := false
			to := g.carry(64<<10, func() {
				if !done {
					f(g, i)
					g.entry(StampEntry(g.table.Time(), 1000)) // what is fresh by now is not sent
					g.entry(StampEntry(g.table.Time(), 1000))
				}
				done = true
			})
			if diff := cmp.Diff(contents(g.table, 1), contents(to.table, 1)); diff != "" {
				t.Errorf("%s, %v:\n%s", name, limits[i].Algorithm, diff)
			}
		}
	}
}

func TestRestoredSlotGivesNoTokenTwice(t *testing.T) {
	from := newRig(t, 2)
	from.entry(SealEntry(1, []Move{{1, 2}}))
	e := from.table.Export(1, 1)
	e.Restore()
	chunk, last := e.Final(64 << 10)
	to := &rig{tb: t, table: NewTable(2)}
	if code := to.entry(AdoptEntry(7, Move{1, 9}, sec, chunk)).Items[0].Code; !last || code != Moved {
		t.Fatalf("last %v, code %d", last, code)
	}
	if n := to.table.slots[1].grants; n < 9<<32 {
		t.Errorf("fencing tokens go on from %d, which the old cluster may have given after the backup", n)
	}
}
