package bucket

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var unit = per(1, 365*24*3600*sec, 1_000_000) // never refills in a test

func client(seq, acked uint64) ID {
	return ID{Kind: ClientID, Session: 9, Sequence: seq, Acked: acked, Content: seq}
}

func own(n uint64) ID { return ID{Kind: OwnID, Own: spread(n), Content: n} }

func with(id ID, cost uint64) Request {
	r := takeOf(unit, cost)
	r.ID = id
	return r
}

func (g *rig) spent(now int64) uint64 {
	_, a := g.peek(now, takeOf(unit, 0))
	return a[0].Capacity - a[0].Remaining
}

func (g *rig) expect(what string, stamp int64, r Request, want Code) []Answer {
	g.tb.Helper()
	out := g.apply(stamp, r)
	if out.Items[0].Code != want {
		g.tb.Fatalf("%s: code %d, want %d", what, out.Items[0].Code, want)
	}
	return out.Answers
}

func TestChargedOncePerID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newRig(t, 2)
		admitted := map[uint64]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "entries") {
			var reqs []Request
			for range rapid.IntRange(1, 5).Draw(t, "copies") {
				seq := rapid.Uint64Range(1, 6).Draw(t, "id")
				id := client(seq, 0)
				if seq%2 == 0 {
					id = own(seq)
				}
				reqs = append(reqs, with(id, seq*seq))
			}
			out := g.apply(g.table.Time()+rapid.Int64Range(0, Horizon/40).Draw(t, "step"), reqs...)
			for i, item := range out.Items {
				seq := reqs[i].ID.Content
				want := Admitted
				if admitted[seq] {
					want = Repeated
				}
				if item.Code != want {
					t.Fatalf("id %d: code %d, want %d", seq, item.Code, want)
				}
				admitted[seq] = true
			}
		}
		want := uint64(0)
		for seq := range admitted {
			want += seq * seq
		}
		if got := g.spent(g.table.Time()); got != want {
			t.Fatalf("spent %d, want %d", got, want)
		}
	})
}

func TestRepeatedAnswerIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newRig(t, 2)
		r := Request{Home: 0, ID: rapid.SampledFrom([]ID{client(1, 0), own(1)}).Draw(t, "id")}
		for i := range rapid.IntRange(1, 12).Draw(t, "takes") {
			limit := limits().Draw(t, "limit")
			r.Takes = append(r.Takes, Take{
				Slot: uint16(i % 2), Key: spread(uint64(i)), Rule: Rule{Policy: uint64(i), Version: 3, Limit: limit},
				Cost: rapid.Uint64Range(min(1, uint64(i)), limit.Burst).Draw(t, "cost"),
			})
		}
		r.Takes[0].Cost = max(r.Takes[0].Cost, 1)
		at := rapid.Int64Range(0, Horizon).Draw(t, "at")
		first := g.apply(at, r)
		if first.Items[0].Code != Admitted {
			t.Fatalf("%+v", first)
		}
		again := at + rapid.Int64Range(0, Horizon).Draw(t, "later")
		g.apply(again, Request{Home: 1, Takes: r.Takes})
		copied := g.apply(again, r)
		if copied.Items[0].Code != Repeated || copied.Items[0].SlotTime != at {
			t.Fatalf("%+v", copied.Items[0])
		}
		if diff := cmp.Diff(first.Answers, copied.Answers); diff != "" {
			t.Fatalf("(-first +copy)\n%s", diff)
		}
	})
}

func TestAllOrNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newRig(t, 4)
		r := Request{Home: 0}
		for i := range rapid.IntRange(2, 6).Draw(t, "takes") {
			r.Takes = append(r.Takes, Take{
				Slot: uint16(i % 5 % 4), Key: spread(uint64(i % 5)), Rule: Rule{Policy: 1, Version: 1, Limit: unit}, Cost: rapid.Uint64Range(1, 400_000).Draw(t, "cost"),
			})
		}
		left := map[Key]uint64{}
		for range 6 {
			asked, fits := map[Key]uint64{}, true
			for _, k := range r.Takes {
				if _, ok := left[k.Key]; !ok {
					left[k.Key] = unit.Burst
				}
				asked[k.Key] += k.Cost
				fits = fits && asked[k.Key] <= left[k.Key]
			}
			out := g.apply(0, r)
			if fits != (out.Items[0].Code == Admitted) {
				t.Fatalf("fits %v, got %+v", fits, out)
			}
			for i, k := range r.Takes {
				if want := left[k.Key] - asked[k.Key]; fits && out.Answers[i].Remaining != want {
					t.Fatalf("%d remain, want %d", out.Answers[i].Remaining, want)
				}
				if want := left[k.Key]; !fits && out.Answers[i].Remaining != want {
					t.Fatalf("denied, and %d remain, not %d", out.Answers[i].Remaining, want)
				}
			}
			for k, n := range asked {
				if fits {
					left[k] -= n
				}
			}
		}
	})
}

func TestAcknowledgedIDIsTooOld(t *testing.T) {
	g := newRig(t, 2)
	for seq := range uint64(5) {
		g.expect("new", 0, with(client(seq+1, 0), 1), Admitted)
	}
	g.expect("copy", 1, with(client(2, 0), 1), Repeated)
	g.expect("later take acknowledges 1 … 3", 2, with(client(6, 3), 1), Admitted)
	g.expect("acknowledged", 3, with(client(2, 0), 1), TooOld)
	g.expect("not acknowledged", 3, with(client(4, 0), 1), Repeated)
	g.expect("acknowledges itself", 3, with(client(7, 7), 1), TooOld)
	if g.spent(3) != 6 {
		t.Fatalf("spent %d", g.spent(3))
	}
}

func TestDeniedIDIsJudgedAfresh(t *testing.T) {
	g, limit := newRig(t, 2), per(1, sec, 1)
	g.take(0, limit, 1)
	r := takeOf(limit, 1)
	for _, id := range []ID{client(1, 0), own(1)} {
		r.ID = id
		g.expect("too early", g.table.Time()+sec/2, r, Denied)
		if g.table.ids.index.count > 1 {
			t.Fatal("a denial left a record")
		}
		g.expect("in time", g.table.Time()+sec/2, r, Admitted)
		g.entry(StampEntry(g.table.Time()+3*Horizon, 1<<16))
		g.take(g.table.Time(), limit, 1)
	}
}

func TestReusedIDIsAnError(t *testing.T) {
	g := newRig(t, 2)
	for _, id := range []ID{client(1, 0), own(1)} {
		g.expect("first", 0, with(id, 1), Admitted)
		id.Content++
		g.expect("other content", 1, with(id, 2), IDReused)
	}
	if g.spent(1) != 2 {
		t.Fatalf("spent %d", g.spent(1))
	}
}

func TestHorizon(t *testing.T) {
	g := newRig(t, 2)
	aged := client(1, 0)
	aged.AgeNanos = Horizon + 1
	g.expect("an old copy of nothing", 0, with(aged, 1), TooOld)
	g.expect("client", 0, with(client(5, 0), 1), Admitted)
	g.expect("own", 0, with(own(1), 1), Admitted)
	g.expect("client, at the horizon", Horizon, with(client(5, 0), 1), Repeated)
	g.expect("own, at the horizon", Horizon, with(own(1), 1), Repeated)
	g.expect("client, beyond", Horizon+1, with(client(5, 0), 1), TooOld)
	g.expect("client, evicted with it", Horizon+1, with(client(3, 0), 1), TooOld)
	g.expect("own, beyond", Horizon+1, with(own(1), 1), Admitted)
	g.expect("session remembered", 2*Horizon, with(client(5, 0), 1), TooOld)
	g.expect("session forgotten", 2*Horizon+1, with(client(5, 0), 1), Admitted)
}

func TestOldestResultOfASessionIsEvicted(t *testing.T) {
	g := newRig(t, 2)
	for seq := range uint64(MaxSessionResults + 1) {
		g.expect("new", 0, with(client(seq+1, 0), 1), Admitted)
	}
	g.expect("evicted", 0, with(client(1, 0), 1), TooOld)
	g.expect("kept", 0, with(client(2, 0), 1), Repeated)
	if g.spent(0) != MaxSessionResults+1 {
		t.Fatalf("spent %d", g.spent(0))
	}
}

func TestOwnIDsAreBounded(t *testing.T) {
	g := newRig(t, 2)
	for n := uint64(0); n < MaxOwnResults; n += 64 {
		var reqs []Request
		for i := range uint64(64) {
			reqs = append(reqs, with(own(n+i), 1))
		}
		g.apply(int64(n), reqs...)
	}
	now := int64(MaxOwnResults)
	g.expect("full", now, with(own(MaxOwnResults), 1), StoreFull)
	g.expect("known", now, with(own(7), 1), Repeated)
	g.expect("without an id", now, with(ID{}, 1), Admitted)
	if r, _ := g.peek(Horizon+1, with(own(MaxOwnResults), 1)); r.Code != Admitted {
		t.Fatalf("peek after the first expired: %d", r.Code)
	}
	g.expect("the first expired", Horizon+1, with(own(MaxOwnResults), 1), Admitted)
	g.expect("charged again", Horizon+1, with(own(1), 1), Admitted)
	if want := uint64(MaxOwnResults + 3); g.spent(Horizon+1) != want {
		t.Fatalf("spent %d, want %d", g.spent(Horizon+1), want)
	}
	for range 40 {
		g.entry(StampEntry(3*Horizon, 1<<16))
	}
	if _, results := g.table.MemoryBytes(); g.table.ids.pool.used != 0 || results != recordPage+headsPage*4 {
		t.Fatalf("%d records, %d bytes left", g.table.ids.pool.used, results)
	}
	checkBooks(t, g.table)
}

func TestSlotNotHeldIsRefused(t *testing.T) {
	g := &rig{tb: t, table: NewTable(4)}
	g.entry(HoldEntry(0, []uint16{1}))
	g.expect("held", 0, takeOf(unit, 1), Admitted)
	away, home, outside := takeOf(unit, 1), takeOf(unit, 1), takeOf(unit, 1)
	away.Takes = append(away.Takes, Take{Slot: 2, Key: Key{3, 3}, Rule: Rule{Policy: 1, Version: 1, Limit: unit}, Cost: 1})
	home.Home = 2
	outside.Takes[0].Slot = 40
	for _, r := range []Request{away, home, outside} {
		if a := g.expect("not held", 0, r, NotHeld); len(a) != 0 {
			t.Fatalf("answers %+v", a)
		}
		if res, _ := g.peek(0, r); res.Code != NotHeld {
			t.Fatalf("peek: %d", res.Code)
		}
	}
	if g.spent(0) != 1 || !g.table.Held(1) || g.table.Held(2) || g.table.Held(40) || g.table.HeldCount() != 1 {
		t.Fatalf("spent %d, held %d", g.spent(0), g.table.HeldCount())
	}
}

func TestNoNewBucketIsObeyed(t *testing.T) {
	g, limit := newRig(t, 2), per(1, sec, 5)
	r := takeOf(limit, 1)
	r.NoNewBucket = true
	g.expect("absent", 0, r, StoreFull)
	look := takeOf(limit, 0)
	look.NoNewBucket = true
	g.expect("a look needs none", 0, look, Admitted)
	dear := takeOf(limit, 6)
	dear.NoNewBucket = true
	g.expect("nor a denial", 0, dear, Denied)
	g.take(0, limit, 2)
	g.expect("known", 0, r, Admitted)
	g.expect("fresh again, as good as absent", 3*sec, r, StoreFull)
	if a := g.take(3*sec, limit, 5); !a.Allowed {
		t.Fatalf("%+v", a)
	}
}
