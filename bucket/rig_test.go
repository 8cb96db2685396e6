package bucket

import (
	"bytes"
	"time"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

// tester is what testing.T and rapid.T share.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// rig drives one table as a group would, one entry after the other.
type rig struct {
	tb    tester
	table *Table
	b     Builder
	index uint64
}

// newRig has a table of n slots that holds them all.
func newRig(tb tester, n int) *rig {
	g := &rig{tb: tb, table: NewTable(n)}
	slots := make([]uint16, n)
	for i := range slots {
		slots[i] = uint16(i)
	}
	g.entry(HoldEntry(0, slots))
	return g
}

func (g *rig) entry(e []byte) *Results {
	g.tb.Helper()
	g.index++
	var out Results
	if err := g.table.Apply(g.index, e, &out); err != nil {
		g.tb.Fatalf("apply: %v", err)
	}
	return &out
}

func (g *rig) apply(stamp int64, reqs ...Request) *Results {
	g.tb.Helper()
	return g.entry(g.encode(stamp, reqs...))
}

func (g *rig) encode(stamp int64, reqs ...Request) []byte {
	g.tb.Helper()
	g.b.Reset()
	for i := range reqs {
		if !g.b.Add(&reqs[i]) {
			g.tb.Fatalf("request %d does not fit", i)
		}
	}
	return bytes.Clone(g.b.Entry(stamp))
}

// take asks for one cost of one bucket, without an id.
func (g *rig) take(stamp int64, limit Limit, cost uint64) Answer {
	g.tb.Helper()
	return g.apply(stamp, takeOf(limit, cost)).Answers[0]
}

func (g *rig) peek(stamp int64, r Request) (Result, []Answer) {
	var out Results
	g.table.Peek(stamp, &r, &out)
	return out.Items[0], out.Answers
}

func takeOf(limit Limit, cost uint64) Request {
	return Request{Home: 1, Takes: []Take{{Slot: 1, Key: Key{1, 1}, Rule: Rule{Policy: 1, Version: 1, Limit: limit}, Cost: cost}}}
}

func per(amount uint64, window int64, burst uint64) Limit {
	return Limit{Algorithm: TokenBucket, Amount: amount, Window: window, Burst: burst}
}

func dump(tb tester, t *Table) []byte {
	tb.Helper()
	d := t.BeginDump()
	defer d.Close()
	return written(tb, d)
}

func written(tb tester, d *Dump) []byte {
	tb.Helper()
	var b bytes.Buffer
	if n, err := d.WriteTo(&b); err != nil || n != d.Size() {
		tb.Fatalf("WriteTo wrote %d of %d bytes: %v", n, d.Size(), err)
	}
	return b.Bytes()
}

// spread makes well-mixed keys of small numbers, as the keyed hash would.
func spread(n uint64) Key {
	return Key{Hi: fold(1, n), Lo: fold(2, n)}
}

// restored is a table made of t's dump.
func restored(tb tester, t *Table) *Table {
	tb.Helper()
	other := NewTable(t.Slots())
	if err := other.Restore(bytes.NewReader(dump(tb, t))); err != nil {
		tb.Fatal(err)
	}
	return other
}
