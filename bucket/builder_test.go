package bucket

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// decoded is an entry taken apart and made requests again.
func decoded(t tester, entry []byte) []Request {
	t.Helper()
	var w work
	if err := w.requests(entry[entryBody:]); err != nil {
		t.Fatal(err)
	}
	var all []Request
	for _, j := range w.jobs {
		r := Request{Op: j.op, Home: j.home, ID: j.id, NoNewBucket: j.noNew, Share: j.share}
		if j.op == OpRefund || j.op == OpLease {
			r.Amount = j.number
		} else {
			r.Permit = j.number
		}
		for _, a := range w.asks[j.first : j.first+j.count] {
			r.Takes = append(r.Takes, Take{Slot: a.slot, Key: a.key, Rule: w.uses[a.use].Rule, Cost: a.cost, Shadow: a.shadow})
		}
		all = append(all, r)
	}
	return all
}

func TestEntryCarriesRequestsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds(t)
		g := &rig{tb: t}
		var reqs []Request
		for range rapid.IntRange(0, 12).Draw(t, "requests") {
			r := w.request(t, NewTable(3))
			r.Home = rapid.Uint16().Draw(t, "home")
			for i := range r.Takes {
				r.Takes[i].Cost = min(r.Takes[i].Cost, MaxAmount+1) // more is not told apart
			}
			if r.ID.Kind != NoID {
				r.ID.AgeNanos = rapid.Uint64().Draw(t, "age")
			}
			reqs = append(reqs, r)
		}
		stamp := rapid.Int64().Draw(t, "stamp")
		e := g.encode(stamp, reqs...)
		if got, ok := EntryStamp(e); !ok || got != stamp {
			t.Fatalf("stamp %d %v, want %d", got, ok, stamp)
		}
		if diff := cmp.Diff(reqs, decoded(t, e)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestBuilderIsBounded(t *testing.T) {
	t.Run("requests", func(t *testing.T) {
		var b Builder
		r := takeOf(unit, 1)
		for range MaxEntryRequests {
			if !b.Add(&r) {
				t.Fatalf("refused request %d", b.Len())
			}
		}
		if b.Add(&r) || b.Len() != MaxEntryRequests {
			t.Fatalf("%d requests", b.Len())
		}
		if b.Reset(); !b.Add(&r) {
			t.Fatal("refused after a reset")
		}
	})
	t.Run("takes", func(t *testing.T) {
		var b Builder
		many, none := Request{Takes: make([]Take, MaxRequestTakes+1)}, Request{}
		if b.Add(&many) || b.Add(&none) || b.Len() != 0 {
			t.Fatal("took a request that no entry can carry")
		}
	})
	t.Run("bytes", func(t *testing.T) {
		var b Builder
		var all []Request
		for n := uint64(0); ; n++ {
			r := Request{Home: 9, ID: ID{Kind: ClientID, Session: n, Sequence: math.MaxUint64, Acked: n, AgeNanos: math.MaxUint64}}
			for i := range uint64(MaxRequestTakes) {
				rule := Rule{Policy: n, Version: i, Limit: Limit{TokenBucket, MaxAmount, MaxAmount, MaxWindow}}
				r.Takes = append(r.Takes, Take{Slot: 0xffff, Key: spread(i), Rule: rule, Cost: MaxAmount + 1})
			}
			if !b.Add(&r) {
				break
			}
			all = append(all, r)
		}
		if b.Bytes() > MaxEntryBytes || len(all) < 20 {
			t.Fatalf("%d bytes, %d requests", b.Bytes(), len(all))
		}
		small := takeOf(unit, 1) // fits, and names a rule after those that were taken back
		small.ID = client(1, 0)
		if !b.Add(&small) {
			t.Fatal("refused a small request")
		}
		first := b.Detach(7)
		if diff := cmp.Diff(append(all, small), decoded(t, first)); diff != "" {
			t.Fatal(diff)
		}
		kept := bytes.Clone(first)
		if !b.Add(&small) || b.Len() != 1 || !bytes.Equal(kept, first) {
			t.Fatal("the builder still uses an entry it gave away")
		}
	})
}

func TestForeignEntryStopsTheReplica(t *testing.T) {
	sound := (&rig{tb: t}).encode(5, takeOf(unit, 1), with(client(1, 0), 1))
	edit := func(at int, b byte) []byte {
		e := bytes.Clone(sound)
		e[at] = b
		return e
	}
	other := takeOf(unit, 1)
	other.Takes[0].Rule.Limit.Algorithm = 9
	for _, c := range []struct {
		name  string
		entry []byte
		want  error
	}{
		{"empty", nil, ErrVersion},
		{"version", edit(0, leaseEntryVersion+1), ErrVersion},
		{"older version", edit(0, entryVersion-1), ErrVersion},
		{"kind", edit(1, 99), ErrVersion},
		{"algorithm", (&rig{tb: t}).encode(5, other), ErrVersion},
		{"too long", append(bytes.Clone(sound), make([]byte, MaxEntryBytes)...), ErrVersion},
		{"count", edit(entryBody, 3), ErrMalformed},
		{"large count", edit(entryBody+3, 0xff), ErrMalformed},
		{"flags", edit(entryBody+4, 0x80), ErrMalformed},
		{"op", edit(entryBody+4, 0x70), ErrMalformed},
		{"cutover", append(CutoverEntry(1, nil), 0), ErrMalformed},
		{"cutover of an unknown algorithm", CutoverEntry(1, []Rule{{Policy: 1, Version: 1, Limit: Limit{Algorithm: 9}}}), ErrVersion},
		{"cut off", sound[:len(sound)-1], ErrMalformed},
		{"more behind", append(bytes.Clone(sound), 0), ErrMalformed},
		{"sweep", append(StampEntry(1, 5), 0), ErrMalformed},
		{"slot outside", HoldEntry(1, []uint16{0, 7}), ErrMalformed},
		{"hold", append(HoldEntry(1, []uint16{0}), 1), ErrMalformed},
	} {
		g := newRig(t, 2)
		before := dump(t, g.table)
		var out Results
		err := g.table.Apply(5, c.entry, &out)
		if !errors.Is(err, c.want) || !bytes.Equal(before, dump(t, g.table)) || len(out.Items) > 0 {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	g := newRig(t, 2)
	if err := g.table.Apply(1, sound, nil); !errors.Is(err, ErrOrder) {
		t.Errorf("index again: %v", err)
	}
}

// TestLimitOutOfRangeIsReadAsTheNearest: no stored entry may stop or mint.
func TestLimitOutOfRangeIsReadAsTheNearest(t *testing.T) {
	g := newRig(t, 2)
	wild := Limit{Algorithm: TokenBucket, Amount: math.MaxUint64, Burst: math.MaxUint64, Window: math.MinInt64}
	if a := g.take(0, wild, math.MaxUint64); a.Allowed || a.Capacity != MaxAmount || a.Reason != ReasonCostExceedsCapacity {
		t.Fatalf("%+v", a)
	}
	if a := g.take(0, wild, MaxAmount); !a.Allowed || a.Remaining != 0 {
		t.Fatalf("%+v", a)
	}
	r, a := g.peek(5, takeOf(wild, MaxAmount))
	if r.Code != Denied || a[0].RetryAfter < 0 || a[0].Rule.Limit.Validate() != nil {
		t.Fatalf("%+v", a)
	}
	if a := g.take(0, Limit{Algorithm: TokenBucket, Amount: 5}, 1); a.Allowed || a.Capacity != 0 {
		t.Fatalf("%+v", a)
	}
}
