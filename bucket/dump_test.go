package bucket

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestDumpIsWrittenOnceAndUntilClosed(t *testing.T) {
	g := newRig(t, 3)
	g.take(0, unit, 1)
	d := g.table.BeginDump()
	if d.Index() != 2 || d.Chain() != g.table.Chain() {
		t.Fatalf("index %d, chain %x", d.Index(), d.Chain())
	}
	written(t, d)
	if _, err := d.WriteTo(io.Discard); !errors.Is(err, io.ErrClosedPipe) {
		t.Fatalf("written twice: %v", err)
	}
	d = g.table.BeginDump()
	d.Close()
	d.Close()
	g.take(0, unit, 1)
	if _, err := d.WriteTo(io.Discard); !errors.Is(err, io.ErrClosedPipe) {
		t.Fatalf("written after close: %v", err)
	}
}

// TestClosedDumpsAreForgotten: a block that nobody changes must not collect them.
func TestClosedDumpsAreForgotten(t *testing.T) {
	g := newRig(t, 3)
	g.take(0, unit, 1)
	for range 10 {
		g.table.BeginDump().Close()
	}
	if n := len(g.table.slots[1].dir[0].views); n != 1 {
		t.Fatalf("%d dumps known", n)
	}
	open := []*Dump{g.table.BeginDump(), g.table.BeginDump()}
	g.take(0, unit, 1)
	if n := len(g.table.slots[1].dir[0].views); n > 2 {
		t.Fatalf("%d dumps known, 2 are open", n)
	}
	if !bytes.Equal(written(t, open[0]), written(t, open[1])) {
		t.Fatal("two dumps of one index differ")
	}
}

func TestRestoreRefusesAnotherTable(t *testing.T) {
	from := newRig(t, 3)
	from.take(0, unit, 1)
	whole := dump(t, from.table)
	if err := NewTable(4).Restore(bytes.NewReader(whole)); !errors.Is(err, ErrDump) {
		t.Fatalf("another number of slots: %v", err)
	}
	broken := errors.New("broken")
	tb := NewTable(3)
	if err := tb.Restore(io.MultiReader(bytes.NewReader(whole[:200]), iotest.ErrReader(broken))); !errors.Is(err, broken) || tb.Index() != 0 {
		t.Fatalf("reader that fails: %v", err)
	}
	rest := bytes.NewReader(append(bytes.Clone(whole), "more"...))
	if err := tb.Restore(rest); err != nil || rest.Len() != 4 {
		t.Fatalf("%d bytes left: %v", rest.Len(), err)
	}
}

// TestEveryBitOfADumpCounts flips one bit in each part of it.
func TestEveryBitOfADumpCounts(t *testing.T) {
	from := newRig(t, 3)
	from.apply(0, with(client(1, 0), 1), with(own(1), 2))
	whole := dump(t, from.table)
	for at := 0; at < len(whole); at += 1 + at/200 {
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		tb := NewTable(3)
		if err := tb.Restore(bytes.NewReader(b)); !errors.Is(err, ErrDump) || tb.Index() != 0 {
			t.Fatalf("byte %d: %v", at, err)
		}
		if err := tb.Restore(bytes.NewReader(whole[:at])); !errors.Is(err, ErrDump) || tb.Index() != 0 {
			t.Fatalf("cut at %d: %v", at, err)
		}
	}
}
