package bucket

import "testing"

// What an entry of a hundred takes may allocate once memory is reused: nothing.
// Every replica pays for it, for each decision.

const perEntry = 100

// takesOf is requests of a client on buckets that are there, all answers before them
// acknowledged.
func takesOf(round uint64) []Request {
	reqs := make([]Request, perEntry)
	for i := range reqs {
		k := spread(uint64(i))
		slot := uint16(i % 8)
		seq := round*perEntry + uint64(i) + 1
		reqs[i] = Request{
			Home: slot, ID: ID{Kind: ClientID, Session: 9, Sequence: seq, Acked: seq - min(seq, 2*perEntry), Content: seq},
			Takes: []Take{{Slot: slot, Key: k, Rule: Rule{Policy: 1, Version: 1, Limit: unit}, Cost: 1}},
		}
	}
	return reqs
}

func TestEncodingAnEntryAllocatesNothing(t *testing.T) {
	reqs := takesOf(0)
	var b Builder
	n := testing.AllocsPerRun(100, func() {
		b.Reset()
		for i := range reqs {
			if !b.Add(&reqs[i]) {
				t.Fatal("full")
			}
		}
		b.Entry(5)
	})
	if n != 0 {
		t.Errorf("%v allocations for an entry of %d takes, want none", n, perEntry)
	}
}

func TestApplyingAnEntryAllocatesNothing(t *testing.T) {
	const runs = 100
	for _, wanted := range []bool{true, false} {
		g := newRig(t, 8)
		var entries [][]byte
		for i := range uint64(2*runs + 2) {
			entries = append(entries, g.encode(int64(i), takesOf(i)...))
		}
		var out *Results
		if wanted {
			out = new(Results)
		}
		next := func() {
			if out != nil {
				out.Reset()
			}
			g.index++
			if err := g.table.Apply(g.index, entries[0], out); err != nil || out != nil && out.Items[perEntry-1].Code != Admitted {
				t.Fatal(err)
			}
			entries = entries[1:]
		}
		for range runs { // pages, segments, and memory that is reused
			next()
		}
		if n := testing.AllocsPerRun(runs, next); n != 0 {
			t.Errorf("results wanted %v: %v allocations for an entry of %d takes, want none", wanted, n, perEntry)
		}
	}
}

func TestPeekingAllocatesNothing(t *testing.T) {
	g := newRig(t, 8)
	reqs := takesOf(0)
	g.apply(1, reqs...)
	var out Results
	n := testing.AllocsPerRun(100, func() {
		out.Reset()
		g.table.Peek(2, &reqs[7], &out)
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
