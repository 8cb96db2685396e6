package bucket

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// leaseOf asks for up to n units of each take, of one part in share.
func leaseOf(id ID, n, share uint64, takes ...Take) Request {
	return Request{Op: OpLease, Home: 1, ID: id, Amount: n, Share: share, Takes: takes}
}

func takeFrom(policy uint64, l Limit, cost uint64) Take {
	return Take{Slot: 1, Key: spread(policy), Rule: Rule{Policy: policy, Version: 1, Limit: l}, Cost: cost}
}

func TestLeaseIsAFairShareOfWhatIsLeft(t *testing.T) {
	for _, l := range []Limit{per(100, 3600*sec, 100), {Algorithm: FixedWindow, Amount: 100, Window: 3600 * sec}} {
		g := newRig(t, 2)
		for _, c := range []struct{ n, share, cost, units, left uint64 }{
			{40, 2, 1, 40, 60}, // as many as were asked for
			{40, 2, 1, 30, 30}, // half of what is left
			{40, 0, 3, 10, 0},  // all that is left, at 3 each
		} {
			a := g.expect("lease", 0, leaseOf(ID{}, c.n, c.share, takeFrom(1, l, c.cost)), Admitted)[0]
			if a.Units != c.units || a.UnitCost != c.cost || a.Remaining != c.left {
				t.Fatalf("%+v: %+v", c, a)
			}
		}
		if a := g.expect("nothing left", 0, leaseOf(ID{}, 5, 1, takeFrom(1, l, 1)), Denied)[0]; a.Units != 0 || a.RetryAfter <= 0 {
			t.Fatalf("%+v", a)
		}
	}
}

func TestLeaseIsOneUnitAtLeast(t *testing.T) {
	g, l := newRig(t, 2), per(3, 3600*sec, 3)
	for left := range uint64(3) {
		if a := g.expect("lease", 0, leaseOf(ID{}, 100, 8, takeFrom(1, l, 1)), Admitted)[0]; a.Units != 1 || a.Remaining != 2-left {
			t.Fatalf("%+v", a)
		}
	}
	g.expect("none left", 0, leaseOf(ID{}, 100, 8, takeFrom(1, l, 1)), Denied)
}

// TestLeaseTakesAlikeFromAllBuckets: the scarcest says how many units there are, each
// bucket gives them at its own cost, and a denied lease takes from none.
func TestLeaseTakesAlikeFromAllBuckets(t *testing.T) {
	g := newRig(t, 2)
	wide, narrow := per(100, 3600*sec, 100), per(50, 3600*sec, 50)
	shadow := takeFrom(3, per(5, 3600*sec, 5), 1)
	shadow.Shadow = true
	a := g.expect("lease", 0, leaseOf(ID{}, 90, 1, takeFrom(1, wide, 1), takeFrom(2, narrow, 10), shadow), Admitted)
	if a[0].Units != 5 || a[0].Remaining != 95 || a[1].Units != 5 || a[1].UnitCost != 10 || a[1].Remaining != 0 || a[2].Units != 5 || a[2].Remaining != 0 {
		t.Fatalf("%+v", a)
	}
	a = g.expect("one is empty", 0, leaseOf(ID{}, 90, 1, takeFrom(1, wide, 1), takeFrom(2, narrow, 10)), Denied)
	if a[0].Remaining != 95 || !a[0].Allowed || a[1].Allowed {
		t.Fatalf("%+v", a)
	}
	if a = g.expect("a shadow counts all or none", 0, leaseOf(ID{}, 4, 1, takeFrom(1, wide, 1), shadow), Admitted); a[0].Units != 4 || a[1].Allowed || a[1].Units != 0 {
		t.Fatalf("%+v", a)
	}
}

func TestOnlySomeCanBeLeased(t *testing.T) {
	g := newRig(t, 2)
	for _, l := range all(10, 60*sec) {
		want := NotLeasable
		if l.Algorithm == TokenBucket || l.Algorithm == FixedWindow {
			want = Admitted
		}
		g.expect(l.Algorithm.String(), 0, leaseOf(own(uint64(l.Algorithm)), 3, 1, takeFrom(uint64(l.Algorithm), l, 1)), want)
	}
	l, shadow := per(10, 60*sec, 10), takeFrom(9, per(10, 60*sec, 10), 1)
	shadow.Shadow = true
	g.expect("a look", 0, leaseOf(ID{}, 3, 1, takeFrom(9, l, 0)), NotLeasable)
	g.expect("a shadow alone", 0, leaseOf(ID{}, 3, 1, shadow), NotLeasable)
	if g.table.Buckets() != 2 {
		t.Fatalf("%d buckets", g.table.Buckets())
	}
}

// TestCopyOfALeaseIsTheSameGrant: also on a replica that has it from a dump, and after
// the bucket has filled up again.
func TestCopyOfALeaseIsTheSameGrant(t *testing.T) {
	for _, id := range []ID{client(1, 0), own(1)} {
		g := newRig(t, 2)
		r := leaseOf(id, 7, 1, takeFrom(1, per(10, sec, 10), 1))
		first := g.expect("granted", 0, r, Admitted)[0]
		g.table = restored(t, g.table)
		if again := g.expect("its copy", 60*sec, r, Repeated)[0]; again != first || again.Units != 7 {
			t.Fatalf("%+v, then %+v", first, again)
		}
		r.ID.Content++
		g.expect("another request", 60*sec, r, IDReused)
		checkBooks(t, g.table)
	}
}

func TestReturnOfALease(t *testing.T) {
	l := per(10, 10*sec, 50)
	for name, c := range map[string]struct {
		after int64
		units uint64
		left  uint64 // then
	}{
		"at once":                 {0, 20, 50},
		"a part":                  {0, 5, 35},
		"all that it was":         {0, 0, 50},
		"more than it was":        {0, 99, 50},
		"the gain is taken off":   {5 * sec, 20, 50}, // 30 + 5 gained + 20 − 5
		"rounded up":              {1, 20, 49},
		"a part, less the gain":   {5 * sec, 7, 37},
		"gained as much meanwile": {20 * sec, 20, 50},
		"older than that":         {30 * sec, 20, 50},
	} {
		g := newRig(t, 2)
		g.expect(name, 0, leaseOf(own(1), 20, 1, takeFrom(1, l, 1)), Admitted)
		if a := g.expect(name, c.after, giveBack(OpRefund, own(1), c.units), Refunded)[0]; a.Remaining != c.left {
			t.Errorf("%s: %d left, want %d", name, a.Remaining, c.left)
		}
		g.expect(name, c.after, giveBack(OpRefund, own(1), c.units), NothingToRefund)
	}
}

// TestReturnUnderAnotherVersionGivesNothing: the bucket may have gained by another rate.
// TestReturnedLeaseIsNotGrantedAgain: its units are back in the bucket, and a copy of its
// request would have them once more.
func TestReturnedLeaseIsNotGrantedAgain(t *testing.T) {
	for _, l := range []Limit{per(100, 3600*sec, 100), {Algorithm: FixedWindow, Amount: 100, Window: 3600 * sec}} {
		g := newRig(t, 2)
		id := ID{Kind: OwnID, Own: spread(7), Content: 7}
		ask := leaseOf(id, 40, 1, takeFrom(1, l, 1))
		g.expect("lease", 0, ask, Admitted)
		g.expect("return", 0, Request{Op: OpRefund, Home: 1, ID: id}, Refunded)
		if a := g.expect("a copy", 0, ask, Denied)[0]; a.Units != 0 || a.Reason != ReasonRefunded {
			t.Errorf("%+v", a)
		}
		if a := g.expect("what is left", 0, leaseOf(ID{}, 100, 1, takeFrom(1, l, 1)), Admitted)[0]; a.Units != 100 {
			t.Errorf("%+v", a)
		}
	}
}

func TestReturnUnderAnotherVersionGivesNothing(t *testing.T) {
	g, l := newRig(t, 2), per(10, 3600*sec, 50)
	g.expect("granted", 0, leaseOf(own(1), 20, 1, takeFrom(1, l, 1)), Admitted)
	l.Amount = 20
	g.entry(CutoverEntry(0, []Rule{{Policy: 1, Version: 2, Limit: l}}))
	if a := g.expect("returned", 0, giveBack(OpRefund, own(1), 0), Refunded)[0]; a.Remaining != 30 {
		t.Fatalf("%+v", a)
	}
}

func TestReturnToAWindowThatIsOverGivesNothing(t *testing.T) {
	g := &rig{tb: t, table: NewTable(2, WithPhaseZero())}
	g.entry(HoldEntry(0, []uint16{0, 1}))
	l := Limit{Algorithm: FixedWindow, Amount: 10, Window: 60 * sec}
	g.expect("granted", 59*sec, leaseOf(own(1), 8, 1, takeFrom(1, l, 2)), Admitted)
	g.expect("the next window", 60*sec, Request{Home: 1, Takes: []Take{takeFrom(1, l, 9)}}, Admitted)
	if a := g.expect("returned", 61*sec, giveBack(OpRefund, own(1), 0), Refunded)[0]; a.Remaining != 1 {
		t.Fatalf("%+v", a)
	}
	g.expect("not enough", 119*sec, leaseOf(own(2), 8, 1, takeFrom(1, l, 2)), Denied)
	g.expect("granted", 120*sec, leaseOf(own(3), 4, 1, takeFrom(1, l, 2)), Admitted)
	if a := g.expect("returned in its window", 130*sec, giveBack(OpRefund, own(3), 3), Refunded)[0]; a.Remaining != 8 {
		t.Fatalf("%+v", a)
	}
}

// TestEntryWithoutALeaseIsAsBefore: a build that knows none reads it.
func TestEntryWithoutALeaseIsAsBefore(t *testing.T) {
	var b Builder
	take, lease := takeOf(unit, 1), leaseOf(ID{}, 1, 1, takeFrom(1, unit, 1))
	b.Add(&take)
	if e := bytes.Clone(b.Entry(1)); e[0] != entryVersion {
		t.Fatalf("version %d", e[0])
	}
	b.Add(&lease)
	if e := b.Detach(1); e[0] != leaseEntryVersion {
		t.Fatalf("version %d of a lease", e[0])
	}
	b.Add(&take)
	if e := b.Entry(1); e[0] != entryVersion {
		t.Fatalf("version %d after a lease", e[0])
	}
}

// TestReturnsDoNotSaveTokensUp: leases that are returned just before their time, and
// taken again at once, hold no more together than one burst and what came in since.
func TestReturnsDoNotSaveTokensUp(t *testing.T) {
	const step = sec / 2
	g, l := newRig(t, 2), per(10, sec, 10)
	var held []holder
	for n := range uint64(20) {
		now := int64(n) * step
		for i := range held {
			h := &held[i]
			if h.units > 0 {
				g.apply(now, giveBack(OpRefund, h.id, h.units))
			}
			h.id = own(1000*n + uint64(i) + 1)
			if h.units = 0; i < 10 {
				h.units = g.apply(now, leaseOf(h.id, 5, 1, takeFrom(1, l, 1))).Answers[0].Units
			}
		}
		if a := g.apply(now, leaseOf(own(n+1), 5, 1, takeFrom(1, l, 1))).Answers[0]; a.Allowed {
			held = append(held, holder{id: own(n + 1), units: a.Units})
		}
		total := uint64(0)
		for _, h := range held {
			total += h.units
		}
		if total > 10+10 { // burst + rate × 1 s
			t.Fatalf("%d tokens are held after %d steps", total, n)
		}
	}
}

// holder is somebody who has leased tokens and may spend them until a time.
type holder struct {
	id    ID
	until int64
	units uint64 // unspent
}

// TestLeasedNeverExceedsTheBound: whatever holders do with their tokens, spend, return
// at any time, or keep and die, what they spend and what is taken without a lease is
// in any interval at most burst + rate × (time + ttl), and of a fixed window at most
// its amount.
func TestLeasedNeverExceedsTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SampledFrom([]Limit{
			per(10, sec, 5), per(3, 7*ms, 40), per(100, 60*sec, 10), per(7, sec, 1000),
			{Algorithm: FixedWindow, Amount: 20, Window: sec},
		}).Draw(t, "limit")
		ttl := rapid.SampledFrom([]int64{1, 50 * ms, sec, 5 * sec}).Draw(t, "ttl")
		g := &rig{tb: t, table: NewTable(2, WithPhaseZero())}
		g.entry(HoldEntry(0, []uint16{0, 1}))
		b := bound{l: l, ttl: ttl}
		var holders []holder
		now := int64(0)
		for n := range uint64(rapid.IntRange(1, 60).Draw(t, "steps")) {
			now += rapid.SampledFrom([]int64{0, 0, 1, ms, 99 * ms, sec / 2, ttl / 2, ttl - 1, ttl}).Draw(t, "step")
			late := rapid.SampledFrom([]int64{0, ms, 20 * ms}).Draw(t, "sent before")
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1:
				a := g.apply(now, leaseOf(own(n), rapid.Uint64Range(1, 30).Draw(t, "units"), rapid.Uint64Range(1, 3).Draw(t, "share"), takeFrom(1, l, 1))).Answers[0]
				h := holder{own(n), now - late + ttl, a.Units}
				if l.Algorithm == FixedWindow {
					h.until = now - late + min(ttl, a.ResetAfter)
				}
				holders = append(holders, h)
			case 2:
				cost := rapid.Uint64Range(1, 5).Draw(t, "cost")
				if r := g.apply(now, Request{Home: 1, Takes: []Take{takeFrom(1, l, cost)}}); r.Items[0].Code == Admitted {
					b.admit(t, now, cost)
				}
			case 3, 4:
				for i := range holders {
					if h := &holders[i]; now < h.until && h.units > 0 {
						k := rapid.Uint64Range(0, h.units).Draw(t, "spent")
						h.units -= k
						b.admit(t, now, k)
					}
				}
			case 5:
				for i := range holders { // each is returned and taken again
					h := &holders[i]
					was := h.units
					if was > 0 {
						g.apply(now, giveBack(OpRefund, h.id, was))
					}
					h.id = own(n<<16 | uint64(i)<<8)
					a := g.apply(now, leaseOf(h.id, max(was, 1), 1, takeFrom(1, l, 1))).Answers[0]
					h.units, h.until = a.Units, now+ttl
					if l.Algorithm == FixedWindow {
						h.until = now + min(ttl, a.ResetAfter)
					}
				}
			case 6:
				if len(holders) > 0 {
					i := rapid.IntRange(0, len(holders)-1).Draw(t, "who")
					if h := &holders[i]; h.units > 0 {
						g.apply(now, giveBack(OpRefund, h.id, h.units))
						h.units = 0
					}
				}
			}
		}
	})
}

// bound is what may be admitted, and what was.
type bound struct {
	l     Limit
	ttl   int64
	times []int64
	costs []uint64
}

// admit notes that cost was spent at now and looks at each interval that ends there.
func (b *bound) admit(t tester, now int64, cost uint64) {
	t.Helper()
	b.times, b.costs = append(b.times, now), append(b.costs, cost)
	total := uint64(0)
	for i := len(b.times) - 1; i >= 0; i-- {
		total += b.costs[i]
		if b.l.Algorithm == FixedWindow {
			if b.times[i]/b.l.Window == now/b.l.Window && total > b.l.Amount {
				t.Fatalf("%d spent in one window of %+v", total, b.l)
			}
			continue
		}
		if total > b.l.Burst && rat(total-b.l.Burst).Cmp(gained(b.l, now-b.times[i]+b.ttl)) > 0 {
			t.Fatalf("%d spent in %d ns under %+v, leases of %d ns", total, now-b.times[i], b.l, b.ttl)
		}
	}
}
