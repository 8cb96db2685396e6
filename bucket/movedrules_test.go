package bucket

import "testing"

// TestOlderVersionArrives moves a slot to a group that has known a newer version
// of its policies for long: each bucket was priced at the old one until it came,
// and is at the new one since. Nothing is minted, whatever the algorithm.
func TestOlderVersionArrives(t *testing.T) {
	for i, l := range all(10, 100*sec) {
		newer := l
		newer.Amount, newer.Burst, newer.Window = 8, 8, 200*sec
		from, to := newRig(t, 2), &rig{tb: t, table: NewTable(2)}
		to.entry(HoldEntry(0, []uint16{0}))
		newest := Rule{Policy: 1, Version: 2, Limit: newer}
		to.apply(sec, Request{Takes: []Take{{Key: spread(1), Rule: newest, Cost: 1}}})
		at := 1010 * sec
		from.take(at, l, 10)
		from.entry(SealEntry(at+sec, []Move{{1, 1}}))
		chunk, _ := from.table.Export(1, 1).Final(64 << 10)
		now := 5000 * sec
		to.entry(AdoptEntry(now, Move{1, 1}, at+2*sec, chunk))
		to.entry(OwnEntry(now, []Move{{1, 1}}))
		if i == 0 && (len(to.table.rules.list) != 2 || to.table.rules.list[0].older != 1) {
			t.Fatalf("%+v", to.table.rules.list)
		}
		checkBooks(t, to.table)
		same(t, to.table, restored(t, to.table))
		r := takeOf(newer, 1)
		r.Takes[0].Rule = newest
		out := to.apply(now, r)
		if a := out.Answers[0]; a.Allowed || a.Remaining != 0 || out.Items[0].SlotTime != at+2*sec {
			t.Errorf("%v: %+v", l.Algorithm, a)
		}
		if n := to.table.rules.list; n[1].refs != 0 || n[0].refs == 0 {
			t.Errorf("%v: the old version is still named: %+v", l.Algorithm, n)
		}
		stale := takeOf(l, 1)
		if c := to.apply(now, stale).Items[0].Code; c != PolicyStale {
			t.Errorf("the old version: code %d", c)
		}
		to.entry(StampEntry(now+Horizon+1, 100))
		to.entry(StampEntry(now+Horizon+1, 100))
		if to.table.rules.version(2).used() || to.table.rules.list[0].older != 0 {
			t.Errorf("%v: the old version is not forgotten", l.Algorithm)
		}
	}
}

// TestThawArrives lowers a limit, moves the bucket, and raises the limit: it must
// not mint, also where nobody has seen the first change.
func TestThawArrives(t *testing.T) {
	high, low := per(10, 100*sec, 10), per(10, 100*sec, 2)
	from, to := newRig(t, 2), &rig{tb: t, table: NewTable(2)}
	from.take(sec, high, 9)
	from.entry(CutoverEntry(sec, []Rule{{Policy: 1, Version: 2, Limit: low}}))
	r := takeOf(low, 0)
	r.Takes[0].Rule.Version = 2
	from.apply(20*sec, r)
	m := []Move{{1, 1}}
	from.entry(SealEntry(50*sec, m))
	chunk, _ := from.table.Export(1, 1).Final(64 << 10)
	to.entry(AdoptEntry(7*sec, m[0], 52*sec, chunk))
	to.entry(OwnEntry(7*sec, m))
	from.entry(UnsealEntry(52*sec, m))
	for _, g := range []*rig{from, to} {
		if got, want := shift(g.table.rules.list[len(g.table.rules.list)-1].thaw, g.table.slots[1].offset), 101*sec; got != want {
			t.Fatalf("thaw %d, want %d", got, want)
		}
		back := 52*sec - g.table.slotTime(1) + g.table.Time()
		g.entry(CutoverEntry(back, []Rule{{Policy: 1, Version: 3, Limit: high}}))
		r.Takes[0].Rule = Rule{Policy: 1, Version: 3, Limit: high}
		if a := g.apply(back, r).Answers[0]; a.Remaining != 2 {
			t.Errorf("%d remain", a.Remaining)
		}
	}
}

// TestLoweringWhereItArrivesMintsNothing: the same where the lower limit is that of
// the group that the bucket comes to.
func TestLoweringWhereItArrivesMintsNothing(t *testing.T) {
	high, low := per(10, 100*sec, 10), per(10, 100*sec, 2)
	from, to := newRig(t, 2), &rig{tb: t, table: NewTable(2)}
	to.entry(HoldEntry(0, []uint16{0}))
	to.apply(sec, Request{Takes: []Take{{Key: spread(1), Rule: Rule{Policy: 1, Version: 2, Limit: low}, Cost: 1}}})
	from.take(sec, high, 9)
	from.entry(SealEntry(2*sec, []Move{{1, 1}}))
	chunk, _ := from.table.Export(1, 1).Final(64 << 10)
	to.entry(AdoptEntry(5000*sec, Move{1, 1}, 2*sec, chunk))
	to.entry(OwnEntry(5000*sec, []Move{{1, 1}}))
	r := takeOf(low, 0)
	r.Takes[0].Rule.Version = 2
	if a := to.apply(5050*sec, r).Answers[0]; a.Remaining != 2 {
		t.Fatalf("%d remain", a.Remaining)
	}
	r.Takes[0].Rule = Rule{Policy: 1, Version: 3, Limit: high}
	if a := to.apply(5060*sec, r).Answers[0]; a.Remaining != 2 {
		t.Fatalf("%d remain", a.Remaining)
	}
}

// TestRefundKnowsTheWindowOfAnotherSlot: a result whose takes are in two slots
// credits windows only if both have been here since.
func TestRefundKnowsTheWindowOfAnotherSlot(t *testing.T) {
	limit := all(10, 100*sec)[2]
	for _, moved := range []bool{false, true} {
		g := newRig(t, 2)
		g.entry(SealEntry(sec, []Move{{0, 1}}))
		chunk, _ := g.table.Export(0, 1).Final(64 << 10)
		g.entry(ForgetEntry(sec, []Move{{0, 1}}))
		arrive := func(at int64, rev uint64) {
			g.entry(AdoptEntry(at, Move{0, rev}, at+500*sec, chunk))
			g.entry(OwnEntry(at, []Move{{0, rev}}))
		}
		arrive(2*sec, 2)
		r := with(own(1), 4)
		r.Home, r.Takes[0].Rule.Limit = 0, limit
		if a := g.expect("take", 10*sec, r, Admitted); a[0].Remaining != 6 {
			t.Fatalf("%+v", a)
		}
		want := uint64(10)
		if moved {
			g.entry(SealEntry(11*sec, []Move{{0, 3}}))
			chunk, _ = g.table.Export(0, 1).Final(64 << 10)
			g.entry(ForgetEntry(11*sec, []Move{{0, 3}}))
			arrive(12*sec, 4)
			want = 6
		}
		back := giveBack(OpRefund, own(1), 0)
		back.Home = 0
		if a := g.expect("refund", 13*sec, back, Refunded); a[0].Remaining != want {
			t.Errorf("moved %v: %d remain, want %d", moved, a[0].Remaining, want)
		}
	}
}
