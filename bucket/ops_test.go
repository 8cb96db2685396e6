package bucket

import (
	"testing"
)

// giveBack is a refund or an undo of an id.
func giveBack(op Op, id ID, amount uint64) Request {
	return Request{Op: op, Home: 1, ID: id, Amount: amount}
}

// permitOp is a release or a renewal under l.
func permitOp(op Op, l Limit, permit uint64) Request {
	r := takeOf(l, 0)
	r.Op, r.Permit = op, permit
	return r
}

func TestRefundOnceAndNeverAboveCapacity(t *testing.T) {
	each(t, 10, 3600*sec, func(t *testing.T, g *rig, l Limit) {
		r := takeOf(l, 4)
		r.ID = own(1)
		now := 10 * sec
		g.expect("taken", now, r, Admitted)
		g.expect("without an id", now, takeOf(l, 3), Admitted)
		if a := g.expect("part of it", now, giveBack(OpRefund, own(1), 3), Refunded); a[0].Remaining != 6 {
			t.Fatalf("%+v", a)
		}
		g.expect("twice", now, giveBack(OpRefund, own(1), 0), NothingToRefund)
		g.expect("a copy of the take", now, r, Repeated)
		if _, a := g.peek(now, takeOf(l, 0)); a[0].Remaining != 6 {
			t.Fatalf("%+v", a)
		}
		r.ID = own(2)
		g.expect("another", now, r, Admitted)
		a := g.expect("long after", 3*Horizon+now, giveBack(OpRefund, own(2), 0), NothingToRefund)
		if len(a) != 0 {
			t.Fatalf("%+v", a)
		}
		later := 3600*sec*3 + now
		r.ID = own(3)
		g.expect("the last", later, r, Admitted)
		g.expect("all of it", later, giveBack(OpRefund, own(3), MaxAmount), Refunded)
		if _, a := g.peek(later, takeOf(l, 0)); a[0].Remaining != 10 || a[0].ResetAfter != 0 {
			t.Fatalf("%+v", a)
		}
		checkBooks(t, g.table)
	})
}

// TestRefundCreditsOnlyTheWindowCharged: what was taken in a window that is over
// does not make room in the next.
func TestRefundCreditsOnlyTheWindowCharged(t *testing.T) {
	g := &rig{tb: t, table: NewTable(2, WithPhaseZero())}
	g.entry(HoldEntry(0, []uint16{0, 1}))
	l := Limit{Algorithm: FixedWindow, Amount: 10, Window: 60 * sec}
	r := takeOf(l, 8)
	r.ID = own(1)
	g.expect("first window", 59*sec, r, Admitted)
	g.expect("second window", 60*sec, takeOf(l, 8), Admitted)
	if a := g.expect("late refund", 61*sec, giveBack(OpRefund, own(1), 0), Refunded); a[0].Remaining != 2 {
		t.Fatalf("%+v", a)
	}
}

func TestRefundBeforeTheTakeRefusesIt(t *testing.T) {
	g := newRig(t, 2)
	g.expect("not seen yet", 0, giveBack(OpRefund, own(1), 0), NothingToRefund)
	a := g.expect("its take", 1, with(own(1), 5), Denied)
	if a[0].Allowed || a[0].Reason != ReasonRefunded || a[0].RetryAfter != 0 || a[0].Remaining != unit.Burst || g.spent(1) != 0 {
		t.Fatalf("%+v", a)
	}
	g.expect("again", Horizon, with(own(1), 5), Denied)
	g.expect("a horizon later", Horizon+1, with(own(1), 5), Admitted)
}

func TestUndoIsFinal(t *testing.T) {
	for _, id := range []ID{client(1, 0), own(1)} {
		g := newRig(t, 2)
		g.expect("taken", 0, with(id, 5), Admitted)
		if a := g.expect("undone", 1, giveBack(OpUndo, id, 0), Refunded); a[0].Remaining != unit.Burst {
			t.Fatalf("%+v", a)
		}
		g.expect("twice", 1, giveBack(OpUndo, id, 0), NothingToRefund)
		for range 2 {
			a := g.expect("a later copy", 2, with(id, 5), Denied)
			if a[0].Allowed || a[0].Reason != ReasonDeniedElsewhere || a[0].RetryAfter != 0 || a[0].Remaining != unit.Burst {
				t.Fatalf("%+v", a)
			}
		}
		if g.spent(2) != 0 {
			t.Fatalf("spent %d", g.spent(2))
		}
		other := id
		other.Sequence, other.Own = 2, spread(2)
		g.expect("before its take", 3, giveBack(OpUndo, other, 0), NothingToRefund)
		g.expect("its take", 3, with(other, 5), Denied)
		g.expect("no id", 3, giveBack(OpUndo, ID{}, 0), NothingToRefund)
		checkBooks(t, g.table)
	}
}

func TestUndoAfterAcknowledgementIsTooOld(t *testing.T) {
	g := newRig(t, 2)
	g.expect("taken", 0, with(client(1, 0), 5), Admitted)
	g.expect("acknowledges it", 0, with(client(2, 1), 1), Admitted)
	g.expect("undo", 0, giveBack(OpUndo, client(1, 0), 0), TooOld)
	if g.spent(0) != 6 {
		t.Fatalf("spent %d", g.spent(0))
	}
}

func TestShadowNeverDenies(t *testing.T) {
	g := newRig(t, 2)
	r := Request{Home: 1, ID: own(1), Takes: []Take{
		{Slot: 1, Key: spread(1), Rule: Rule{Policy: 1, Version: 1, Limit: per(100, 3600*sec, 100)}, Cost: 1},
		{Slot: 1, Key: spread(2), Rule: Rule{Policy: 2, Version: 1, Limit: per(1, 3600*sec, 1)}, Cost: 1, Shadow: true},
	}}
	a := g.expect("both", 0, r, Admitted)
	if !a[1].Shadow || !a[1].Allowed || a[1].Remaining != 0 || a[0].Shadow {
		t.Fatalf("%+v", a)
	}
	r.ID = own(2)
	a = g.expect("the shadow is exhausted", 0, r, Admitted)
	if a[1].Allowed || a[1].Reason != ReasonRateLimited || a[1].RetryAfter != 3600*sec || a[0].Remaining != 98 {
		t.Fatalf("%+v", a)
	}
	b := g.expect("its copy", 1, r, Repeated)
	if a[0] != b[0] || a[1] != b[1] {
		t.Fatalf("%+v, then %+v", a, b)
	}
	r.ID, r.Takes[0].Cost = ID{}, 99
	if a := g.expect("denied", 10*sec, r, Denied); a[1].Remaining != 0 {
		t.Fatalf("%+v", a)
	}
	g.expect("refund of both", 2, giveBack(OpRefund, own(1), 0), Refunded)
	r.ID, r.Takes[0].Cost, r.NoNewBucket = ID{}, 1, true
	r.Takes[1].Key = spread(3)
	if a := g.expect("no new bucket for a shadow", 20*sec, r, Admitted); g.table.Buckets() > 2 || a[1].Remaining != 1 {
		t.Fatalf("%d buckets, %+v", g.table.Buckets(), a)
	}
}

func TestPermitOfACrashedHolderExpires(t *testing.T) {
	g, l := newRig(t, 2), Limit{Algorithm: Concurrency, Amount: 1, Window: 60 * sec}
	first := g.take(0, l, 1)
	if a := g.take(20*sec, l, 1); a.Allowed || a.RetryAfter != 40*sec || a.ResetAfter != 40*sec {
		t.Fatalf("%+v", a)
	}
	g.entry(StampEntry(60*sec-1, 1000))
	if g.take(60*sec-1, l, 1).Allowed {
		t.Fatal("admitted before the time limit")
	}
	second := g.take(60*sec, l, 1)
	if !second.Allowed || second.FencingToken <= first.FencingToken || second.PermitID == first.PermitID {
		t.Fatalf("%+v after %+v", second, first)
	}
	g.expect("late release", 61*sec, permitOp(OpRelease, l, first.PermitID), NoSuchPermit)
	g.expect("late renewal", 61*sec, permitOp(OpRenew, l, first.PermitID), NoSuchPermit)
	if g.take(61*sec, l, 1).Allowed {
		t.Fatal("a late release freed another's permit")
	}
	if a := g.expect("renewed", 100*sec, permitOp(OpRenew, l, second.PermitID), Admitted)[0]; a.ResetAfter != 60*sec || a.FencingToken != second.FencingToken {
		t.Fatalf("%+v", a)
	}
	if g.take(160*sec-1, l, 1).Allowed {
		t.Fatal("admitted while a renewed permit is held")
	}
	if a := g.expect("released", 160*sec-1, permitOp(OpRelease, l, second.PermitID), Refunded)[0]; a.Remaining != 1 || a.ResetAfter != 0 {
		t.Fatalf("%+v", a)
	}
	g.expect("released twice", 160*sec-1, permitOp(OpRelease, l, second.PermitID), NoSuchPermit)
	elsewhere := permitOp(OpRelease, l, g.take(161*sec, l, 1).PermitID)
	elsewhere.Takes[0].Key = Key{2, 2}
	g.expect("of another bucket", 161*sec, elsewhere, NoSuchPermit)
	checkBooks(t, g.table)
}

func TestPermitsOfSeveralUnits(t *testing.T) {
	g, l := newRig(t, 2), Limit{Algorithm: Concurrency, Amount: 10, Window: 60 * sec}
	big := g.take(0, l, 6)
	g.take(10*sec, l, 3)
	if a := g.take(20*sec, l, 5); a.Allowed || a.Remaining != 1 || a.RetryAfter != 40*sec {
		t.Fatalf("%+v", a)
	}
	if a := g.take(20*sec, l, 9); a.RetryAfter != 50*sec {
		t.Fatalf("%+v", a)
	}
	g.expect("the shorter window of a newer version", 20*sec, func() Request {
		short := l
		short.Window = sec
		return versioned(2, short, 1)
	}(), Admitted)
	l.Window = sec
	r := versioned(2, l, 0)
	if a := g.apply(21*sec, r).Answers[0]; a.Remaining != 1 {
		t.Fatalf("a permit granted later did not expire first: %+v", a)
	}
	release := permitOp(OpRelease, l, big.PermitID)
	if a := g.expect("released under any version", 21*sec, release, Refunded); a[0].Remaining != 7 || a[0].Rule.Version != 2 {
		t.Fatalf("%+v", a)
	}
	checkBooks(t, g.table)
}

// TestPermitSurvivesARestore: another replica goes on with the same deadlines.
func TestPermitSurvivesARestore(t *testing.T) {
	g, l := newRig(t, 2), Limit{Algorithm: Concurrency, Amount: 1, Window: 60 * sec}
	a := g.take(0, l, 1)
	for i := range int64(5) {
		g.table = restored(t, g.table)
		if g.take((i+1)*10*sec, l, 1).Allowed {
			t.Fatal("a restore let go of a permit")
		}
	}
	g.table = restored(t, g.table)
	if b := g.take(60*sec, l, 1); !b.Allowed || b.FencingToken <= a.FencingToken {
		t.Fatalf("%+v", b)
	}
}
