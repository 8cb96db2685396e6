package bucket

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLoweredAndRaisedMintsNothing(t *testing.T) {
	each(t, 1000, 3600*sec, func(t *testing.T, g *rig, l Limit) {
		g.apply(sec, versioned(1, l, 600))
		low := l
		low.Amount, low.Burst = 10, 10
		g.entry(CutoverEntry(sec, []Rule{{Policy: 1, Version: 2, Limit: low}}))
		g.entry(StampEntry(sec, 1<<16)) // the sweep may look at it as it likes
		a := g.apply(sec, versioned(3, l, 0)).Answers[0]
		if a.Remaining > 400 || l.Algorithm != TokenBucket && a.Remaining != 400 {
			t.Fatalf("%d left", a.Remaining)
		}
	})
}

func TestChangedRateIsPricedInTwo(t *testing.T) {
	for _, a := range []Algorithm{TokenBucket, LeakyBucket} {
		g, slow := newRig(t, 2), Limit{Algorithm: a, Amount: 1, Burst: 100, Window: 60 * sec}
		fast := slow
		fast.Amount = 100
		g.apply(0, versioned(1, slow, 100))
		if a := g.apply(60*sec, versioned(2, fast, 0)).Answers[0]; a.Remaining != 1 || a.Rule.Version != 2 {
			t.Fatalf("%+v", a)
		}
		if a := g.apply(66*sec, versioned(2, fast, 0)).Answers[0]; a.Remaining != 11 {
			t.Fatalf("%+v", a)
		}
	}
}

func TestLoweredBelowWhatIsUsed(t *testing.T) {
	each(t, 10, 60*sec, func(t *testing.T, g *rig, l Limit) {
		g.apply(0, versioned(1, l, 8))
		l.Amount, l.Burst = 5, 5
		want := uint64(0)
		if l.Algorithm == TokenBucket {
			want = 2
		}
		if a := g.apply(0, versioned(2, l, 0)).Answers[0]; a.Remaining != want {
			t.Fatalf("%+v", a)
		}
	})
}

// TestRaisedNeverDenies changes only the amount and the burst, upwards: whatever
// the old limit would have admitted now or later, the new one does.
func TestRaisedNeverDenies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := anyLimits().Draw(t, "limit")
		old.Amount, old.Burst = min(old.Amount, MaxAmount/2), min(old.Burst, MaxAmount/2)
		raised := old
		raised.Amount += rapid.Uint64Range(0, MaxAmount/2).Draw(t, "more")
		raised.Burst += rapid.Uint64Range(0, MaxAmount/2).Draw(t, "more burst")
		if !old.Algorithm.HasBurst() {
			raised.Burst = raised.Amount
		}
		a, b, now := newRig(t, 2), newRig(t, 2), int64(0)
		for range rapid.IntRange(1, 8).Draw(t, "before") {
			now += min(steps(old).Draw(t, "step"), MaxWindow) & (1<<62 - 1) % (1 << 55)
			r := versioned(1, old, costs(old).Draw(t, "cost"))
			a.apply(now, r)
			b.apply(now, r)
		}
		b.entry(CutoverEntry(now, []Rule{{Policy: 1, Version: 2, Limit: raised}}))
		now += rapid.Int64Range(0, 2*old.Window).Draw(t, "wait")
		_, was := a.peek(now, versioned(1, old, 0))
		if _, is := b.peek(now, versioned(2, raised, 0)); is[0].Remaining < was[0].Remaining {
			t.Fatalf("%d of %+v, then %d of %+v", was[0].Remaining, old, is[0].Remaining, raised)
		}
	})
}

// TestSweepPricesAsATakeWould lets one table sweep between versions and another not.
func TestSweepPricesAsATakeWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		swept, lazy := newRig(t, 2), &rig{tb: t, table: NewTable(1 << 12)}
		lazy.entry(HoldEntry(0, []uint16{0, 1}))
		lazy.table.cursor.slot = 10 // its own sweep comes nowhere
		limit, now := anyLimits().Draw(t, "limit"), int64(0)
		first := versioned(1, limit, rapid.Uint64Range(1, limit.Capacity()).Draw(t, "cost"))
		swept.apply(0, first)
		lazy.apply(0, first)
		version := uint64(1)
		for range rapid.IntRange(1, 6).Draw(t, "versions") {
			now += rapid.Int64Range(0, limit.Window).Draw(t, "wait")
			was := limit.Algorithm
			if limit = anyLimits().Draw(t, "limit"); rapid.Bool().Draw(t, "same algorithm") && limit.Algorithm.HasBurst() == was.HasBurst() {
				limit.Algorithm = was
			}
			version++
			e := CutoverEntry(now, []Rule{{Policy: 1, Version: version, Limit: limit}})
			swept.entry(e)
			lazy.entry(e)
			swept.entry(StampEntry(now+rapid.Int64Range(0, limit.Window).Draw(t, "later"), 1000))
			now = swept.table.Time()
		}
		if swept.table.Rules() > 0 && swept.table.Buckets() > 0 && lazy.table.Buckets() == 0 {
			t.Fatal("lost")
		}
		r := versioned(version, limit, rapid.Uint64Range(0, limit.Capacity()).Draw(t, "asked"))
		want, got := lazy.apply(now, r), swept.apply(now, r)
		for i := range got.Answers { // the counter of grants runs on when the sweep makes a permit
			got.Answers[i].PermitID, got.Answers[i].FencingToken = want.Answers[i].PermitID, want.Answers[i].FencingToken
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-lazy +swept)\n%s", diff)
		}
		checkBooks(t, swept.table)
		checkBooks(t, lazy.table)
	})
}

func TestStaleVersionIsRefused(t *testing.T) {
	g := newRig(t, 2)
	g.expect("first", 0, versioned(5, unit, 1), Admitted)
	g.entry(CutoverEntry(1, []Rule{{Policy: 1, Version: 7, Limit: per(1, sec, 5)}, {Policy: 9, Version: 9, Limit: unit}}))
	g.expect("older", 2, versioned(5, unit, 1), PolicyStale)
	g.expect("newer than known", 2, versioned(8, unit, 1), Admitted)
	g.expect("older again", 2, versioned(7, per(1, sec, 5), 0), PolicyStale)
	if g.table.Rules() != 3 { // policy 9 has no bucket here
		t.Fatalf("%d rules", g.table.Rules())
	}
	mixed := versioned(8, unit, 1)
	mixed.Takes = append(mixed.Takes, Take{Slot: 1, Key: Key{5, 5}, Rule: Rule{Policy: 1, Version: 9, Limit: unit}, Cost: 1})
	g.expect("two versions at once", 2, mixed, PolicyStale)
}

// TestOldRulesAreForgotten changes a policy a thousand times over buckets that
// nobody asks for again.
func TestOldRulesAreForgotten(t *testing.T) {
	each(t, 1000, 3600*sec, func(t *testing.T, g *rig, l Limit) {
		for n := range uint64(50) {
			r := versioned(1, l, 900+n)
			r.Takes[0].Key = spread(n)
			r.ID = own(n)
			g.apply(0, r)
		}
		for v := range uint64(1000) {
			l.Amount = 1000 + v%7
			if !l.Algorithm.HasBurst() {
				l.Burst = l.Amount
			}
			g.entry(CutoverEntry(int64(v), []Rule{{Policy: 1, Version: v + 2, Limit: l}}))
		}
		for i := range 300 {
			g.entry(StampEntry(sec*int64(i), 4096))
		}
		if g.table.Rules() != 1 || len(g.table.rules.list) > 1001 || g.table.Buckets() == 0 {
			t.Fatalf("%d rules, %d buckets", g.table.Rules(), g.table.Buckets())
		}
		checkBooks(t, g.table)
		for i := range 300 {
			g.entry(StampEntry(24*3600*sec+sec*int64(i), 4096))
		}
		if g.table.Rules() != 0 || g.table.Buckets() != 0 || len(g.table.rules.list) != 0 || g.table.ids.pool.used != 0 {
			t.Fatalf("%d rules, %d buckets, %d records left", g.table.Rules(), g.table.Buckets(), g.table.ids.pool.used)
		}
	})
}

// TestOverrideChangesHands moves a bucket to another policy's number and back.
func TestOverrideChangesHands(t *testing.T) {
	each(t, 100, 3600*sec, func(t *testing.T, g *rig, l Limit) {
		g.apply(sec, versioned(1, l, 60))
		low := l
		low.Amount, low.Burst = 10, 10
		override := takeOf(low, 0)
		override.Takes[0].Rule = Rule{Policy: 77, Version: 3, Limit: low}
		g.apply(2*sec, override)
		if a := g.apply(3*sec, versioned(1, l, 0)).Answers[0]; a.Remaining > 41 {
			t.Fatalf("%d left", a.Remaining)
		}
		checkBooks(t, g.table)
	})
}

// TestRefusedCopyHoldsWhatItsRuleWouldLeave: a copy of what was undone first is
// denied without a look at its version. Its bucket is shown as a cut-over from
// the newest version to the copy's would leave it, be that one older or newer.
func TestRefusedCopyHoldsWhatItsRuleWouldLeave(t *testing.T) {
	denies := Limit{Algorithm: LeakyBucket, Burst: 2, Window: ms}
	for _, c := range []struct {
		name      string
		spent     uint64 // under version 2, 1 per ms
		version   uint64 // of the copy
		at, reset int64
	}{
		{"an older version", 1, 1, 527, ms},
		{"a newer version", 1, 3, 527, ms},
		{"of a fresh bucket", 1, 1, ms, 0},
		{"of no bucket", 0, 1, 527, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, m := newRig(t, 2), newModel()
			m.held[1] = true
			both := func(at int64, r Request) Answer {
				out := g.apply(at, r)
				m.now = at
				want, answers := m.apply(&r, out.Answers)
				if diff := cmp.Diff(want, out.Items[0]); diff != "" {
					t.Fatalf("(-model +table)\n%s", diff)
				}
				if diff := cmp.Diff(append([]Answer(nil), answers...), out.Answers); diff != "" {
					t.Fatalf("(-model +table)\n%s", diff)
				}
				return append(out.Answers, Answer{})[0]
			}
			both(0, versioned(2, per(1, ms, 1), c.spent))
			both(0, giveBack(OpUndo, client(1, 0), 0))
			r := versioned(c.version, denies, 0)
			r.ID = client(1, 0)
			if a := both(c.at, r); a.Reason != ReasonDeniedElsewhere || a.ResetAfter != c.reset {
				t.Fatalf("%+v", a)
			}
		})
	}
}

// TestChargeGoesBackBehindACutOverToALog: the log's first entry is the use that was
// carried over, a moment after the charge that it is of: within a cell of the log.
func TestChargeGoesBackBehindACutOverToALog(t *testing.T) {
	g, id := newRig(t, 2), client(1, 0)
	r := versioned(1, per(1, ms, 1), 1)
	r.ID = id
	g.expect("charged", ms+1, r, Admitted)
	cut := versioned(2, Limit{Algorithm: SlidingLog, Amount: 1, Window: ms}, 0)
	g.expect("cut over", ms+2, cut, Denied)
	if a := g.expect("undone", ms+2, giveBack(OpUndo, id, 0), Refunded)[0]; a.Remaining != 1 || a.ResetAfter != 0 {
		t.Fatalf("%+v", a)
	}
	checkBooks(t, g.table)
}

// TestRefusedCopyBehindACutOver: the copy's rule was current when its entry
// began, and is old when the copy is judged.
func TestRefusedCopyBehindACutOver(t *testing.T) {
	g, wide, narrow := newRig(t, 2), per(10, 3600*sec, 10), per(10, 3600*sec, 3)
	g.expect("undone first", 0, giveBack(OpUndo, client(1, 0), 0), NothingToRefund)
	cut, r := versioned(2, narrow, 1), versioned(1, wide, 0)
	cut.Takes[0].Key, r.ID = Key{2, 2}, client(1, 0)
	out := g.apply(0, versioned(1, wide, 2), cut, r)
	if a := out.Answers[2]; a.Reason != ReasonDeniedElsewhere || a.Remaining != 3 {
		t.Fatalf("%+v", a)
	}
	checkBooks(t, g.table)
}
