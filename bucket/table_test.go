package bucket

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

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
		m := newModel()
		for i := range w.slots {
			m.held[uint16(i)] = i != 2
		}
		for range rapid.IntRange(1, 60).Draw(t, "entries") {
			e, reqs := w.entry(t, g, g.table.Time())
			stamp, _ := EntryStamp(e)
			m.now = max(m.now, stamp)
			switch entryKind(e[1]) {
			case holdEntry:
				m.held[2] = true
			case cutoverEntry:
				rules, _ := cutoverRules(e[entryBody:])
				m.cut(rules[0])
			}
			if len(reqs) == 1 && reqs[0].Op == OpTake {
				comparePeek(t, g, stamp, reqs[0], e)
			}
			out := g.entry(e)
			if g.table.Time() != m.now || len(out.Items) != len(reqs) {
				t.Fatalf("time %d, not %d; %d results for %d requests", g.table.Time(), m.now, len(out.Items), len(reqs))
			}
			for i := range reqs {
				item := out.Items[i]
				want, answers := m.apply(&reqs[i], out.Answers[item.First:item.First+item.Count])
				compare(t, &reqs[i], out, i, want, answers)
			}
			w.granted(reqs, out)
			m.forget(t, g.table)
		}
		checkBooks(t, g.table)
	})
}

// forget lets m forget the policies that tb has forgotten; their buckets must be fresh.
func (m *model) forget(t *rapid.T, tb *Table) {
	for p := range m.policies {
		if tb.rules.newest[p] != 0 {
			continue
		}
		for k, b := range m.buckets {
			if b.rule.Policy != p {
				continue
			}
			if b = m.bucket(k, b.rule); !b.full() {
				t.Fatalf("policy %d is forgotten, and a bucket of it is not fresh", p)
			}
			delete(m.buckets, k)
		}
		delete(m.policies, p)
	}
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
	for i := range applied.Answers { // Peek grants nothing
		applied.Answers[i].PermitID, applied.Answers[i].FencingToken = 0, 0
		if peeked.Items[0].Code == Repeated {
			peeked.Answers[i].PermitID, peeked.Answers[i].FencingToken = 0, 0
		}
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
