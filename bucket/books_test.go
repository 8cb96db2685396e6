package bucket

import (
	"fmt"
	"slices"
)

// checkBooks recounts everything that the state keeps a count of.
func checkBooks(t tester, tb *Table) {
	t.Helper()
	buckets, queued, logs, held, ruined := 0, 0, 0, 0, 0
	named := make([]uint32, len(tb.slots))
	refs := make([]uint64, len(tb.rules.list))
	for i := range tb.slots {
		n, deepest := 0, uint8(0)
		tb.slots[i].segments(func(_ int, g *segment) {
			inUse := uint32(0)
			g.each(func(cell []byte) {
				k := Key{Hi: le.Uint64(cell[cellHi:]), Lo: le.Uint64(cell[cellLo:])}
				if tb.slots[i].segment(k) != g {
					t.Fatalf("slot %d: key in a wrong segment", i)
				}
				if off, ok := g.find(k); tb.slots[i].state != SlotAbsent && tb.slots[i].state != SlotIncoming && (!ok || &g.buf[off] != &cell[0]) {
					t.Fatalf("slot %d: a cell is cut off from its home", i)
				}
				inUse++
				ref := le.Uint32(cell[cellRef:])
				refs[ref-1]++
				if tb.rules.version(ref).Limit.Algorithm == SlidingLog {
					logs += logLength(tb, le.Uint64(cell[cellLast:]))
				}
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
		switch tb.slots[i].state {
		case SlotHeld:
			held++
		case SlotAbsent:
			if !tb.empty(uint16(i)) {
				ruined++
			}
		}
	}
	for i := range len(tb.ids.pool.pages) * pageRecords {
		k := kindOf(tb.ids.pool.view(uint32(i + 1)))
		if k != plainRecord && k != markedResult {
			named[le.Uint16(tb.ids.pool.view(uint32(i + 1))[recordSlot:])]++
		}
		if k == clientResult || k == ownResult || k == markedResult {
			for _, s := range tb.ids.recall(uint32(i+1), nil) {
				refs[s.rule-1]++
			}
		}
	}
	for i := range refs {
		if refs[i] != tb.rules.list[i].refs {
			t.Fatalf("rule %d: %d refs, count %d", i+1, refs[i], tb.rules.list[i].refs)
		}
	}
	if buckets != tb.buckets || held != tb.held || ruined != tb.ruined || !slices.Equal(named, tb.ids.named) {
		t.Fatalf("%d buckets, count %d; %d held, count %d; %d ruins, count %d; records %v, count %v",
			buckets, tb.buckets, held, tb.held, ruined, tb.ruined, named, tb.ids.named)
	}
	if err := checkRecords(&tb.ids, queued, logs); err != nil {
		t.Fatalf("%v", err)
	}
}

// checkRecords counts the records by kind, and what is reachable.
func checkRecords(d *ids, own, listed int) error {
	var kinds [6]int
	more, queued := 0, 0
	for i := range len(d.pool.pages) * pageRecords {
		c := d.pool.view(uint32(i + 1))
		kind := kindOf(c)
		kinds[kind]++
		switch kind {
		case sessionRecord:
			queued += int(d.queue(uint32(i + 1)).count)
		case clientResult, ownResult, markedResult:
			more += max(0, answersOf(c)-1)
		}
	}
	named := kinds[sessionRecord] + kinds[clientResult] + kinds[ownResult] + kinds[permitRecord]
	if kinds[ownResult] != own || kinds[clientResult]+kinds[markedResult] != queued || named != int(d.index.count) || named+kinds[markedResult]+more+listed != d.pool.used {
		return fmt.Errorf("records by kind %v; %d and %d queued, %d in the index, %d more, %d of logs, %d used",
			kinds, own, queued, d.index.count, more, listed, d.pool.used)
	}
	return nil
}

// logLength is the number of records of a log.
func logLength(tb *Table, last uint64) (n int) {
	for r := uint32(last); r != noRecord; r = le.Uint32(tb.ids.pool.view(r)[recordNext:]) {
		n++
	}
	return n
}
