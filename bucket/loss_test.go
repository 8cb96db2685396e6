package bucket

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// born is a table whose slot 1 was born at the group time at.
func bornRig(t tester, at int64) *rig {
	g := &rig{tb: t, table: NewTable(2)}
	g.entry(StampEntry(at, 0))
	if c := g.entry(BirthEntry(at, []Move{{Slot: 1, Revision: 3}})).Items[0]; c.Code != Moved || c.SlotTime != 0 {
		t.Fatalf("%+v", c)
	}
	return g
}

// TestAbsentBucketOfABornSlotIsEmpty compares it with a bucket that was emptied at
// the birth, under random takes, sweeps and restores.
func TestAbsentBucketOfABornSlotIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLimits().Draw(t, "limit")
		at := rapid.SampledFrom([]int64{0, 5, 1 << 50}).Draw(t, "birth")
		rule := Rule{Policy: 1, Version: 1, Limit: l}
		g, ref := bornRig(t, at), newRig(t, 2)
		take := func(key, cost uint64) Request {
			k := spread(key)
			if l.Algorithm == FixedWindow || l.Algorithm == SlidingWindow {
				k.Lo -= k.Lo % uint64(l.Window) // whose windows begin at the birth
			}
			return Request{Home: 1, Takes: []Take{{Slot: 1, Key: k, Rule: rule, Cost: cost}}}
		}
		for key := range uint64(3) {
			ref.apply(0, take(key, l.Capacity()))
		}
		now := int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "takes") {
			now = max(now, min(later(now, steps(l).Draw(t, "step")), 1<<60))
			r := take(rapid.Uint64Range(0, 2).Draw(t, "key"), costs(l).Draw(t, "cost"))
			_, peeked := g.peek(at+now, r)
			want, got := ref.apply(now, r), g.apply(at+now, r)
			for _, a := range [][]Answer{want.Answers, got.Answers, peeked} {
				a[0].PermitID, a[0].FencingToken = 0, 0
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%+v at %d: (-emptied +born)\n%s", r, now, diff)
			}
			if diff := cmp.Diff(got.Answers, peeked); diff != "" {
				t.Fatalf("(-applied +peeked)\n%s", diff)
			}
			g.entry(StampEntry(at+now, rapid.SampledFrom([]int{0, 100}).Draw(t, "sweep")))
			if rapid.IntRange(0, 4).Draw(t, "restore") == 0 {
				g.table = restored(t, g.table)
			}
			checkBooks(t, g.table)
		}
	})
}

// TestLostWindowIsUsedUpForAWholeOne: the window that a bucket was in may have begun
// just before its slot's birth, wherever the key's own windows begin after it.
func TestLostWindowIsUsedUpForAWholeOne(t *testing.T) {
	for _, l := range all(6, 60*sec) {
		if l.Algorithm != FixedWindow && l.Algorithm != SlidingWindow {
			continue
		}
		g := bornRig(t, 9*sec)
		for key := range uint64(50) {
			r := takeOf(l, 1)
			r.Takes[0].Key = spread(key)
			for _, now := range []int64{0, 1, 30 * sec, 60*sec - 1} {
				if _, a := g.peek(9*sec+now, r); a[0].Allowed || a[0].RetryAfter < 60*sec-now {
					t.Fatalf("%v, key %d, %d ns after the birth: %+v", l.Algorithm, key, now, a[0])
				}
			}
			if _, a := g.peek(9*sec+60*sec, r); l.Algorithm == FixedWindow && a[0].Remaining != 5 {
				t.Fatalf("%v, key %d, a window after the birth: %+v", l.Algorithm, key, a[0])
			}
		}
	}
}

func TestLossSaysWhatAnAbsentBucketIs(t *testing.T) {
	for _, l := range all(6, 60*sec) {
		for loss, want := range map[Loss]uint64{LossEmpty: 0, LossSalvage: 0, LossFull: 6} {
			g := bornRig(t, 9*sec)
			r := takeOf(l, 0)
			r.Takes[0].Rule.Loss = loss
			if a := g.apply(9*sec, r).Answers[0]; a.Remaining != want {
				t.Errorf("%v, loss %d: %d remain", l.Algorithm, loss, a.Remaining)
			}
			if _, a := g.peek(9*sec+120*sec, r); a[0].Remaining != 6 || a[0].ResetAfter != 0 {
				t.Errorf("%v, loss %d: %d remain in the end", l.Algorithm, loss, a[0].Remaining)
			}
		}
	}
}

// TestRefundInABornSlotFillsNothing: the bucket is never fuller than an absent one.
func TestRefundInABornSlotFillsNothing(t *testing.T) {
	g := bornRig(t, 0)
	l := per(10, 10*sec, 10)
	r := takeOf(l, 4)
	r.ID = own(1)
	g.expect("take", 5*sec, r, Admitted)
	g.expect("refund", 6*sec, giveBack(OpRefund, own(1), 0), Refunded)
	for now := 6 * sec; now < 20*sec; now += sec / 2 {
		g.entry(StampEntry(now, 100))
		want := min(uint64(now/sec), 10)
		if a := g.take(now, l, 0); a.Remaining != want {
			t.Fatalf("%d remain at %d, want %d", a.Remaining, now, want)
		}
	}
	if g.table.Buckets() != 0 {
		t.Fatal("a bucket that equals an absent one is kept")
	}
}

func TestRequestFromBeforeTheBirthIsTooOld(t *testing.T) {
	g := bornRig(t, 50*sec)
	r := with(client(1, 0), 1)
	r.Takes[0].Rule.Loss = LossFull
	r.ID.AgeNanos = uint64(3 * sec)
	g.expect("older than the birth", 52*sec, r, TooOld)
	r.Op, r.Takes = OpUndo, nil
	g.expect("undo", 52*sec, r, TooOld)
	r.Op, r.Takes = OpTake, with(r.ID, 1).Takes
	r.Takes[0].Rule.Loss = LossFull
	g.expect("sent after the birth", 53*sec, r, Admitted)
	r.ID.AgeNanos = uint64(90 * sec)
	g.expect("known", 54*sec, r, Repeated)
}

// TestBirthMovesAlong: what a slot has lost is lost wherever it goes.
func TestBirthMovesAlong(t *testing.T) {
	g := bornRig(t, 50*sec)
	l := per(10, 10*sec, 10)
	g.take(53*sec, l, 1)
	to := g.carry(64<<10, func() {})
	sameContents(t, g.table, to.table)
	r := takeOf(l, 0)
	r.Takes[0].Key = spread(9)
	if _, a := to.peek(sec, r); a[0].Remaining != 4 {
		t.Fatalf("%d remain", a[0].Remaining)
	}
	r = with(own(1), 1)
	r.ID.AgeNanos = uint64(5 * sec)
	to.expect("older than the birth", sec, r, TooOld)
}

// TestFencingTokensOutliveTheReadingOfACopy: what a slot was loaded under, to be read, is
// no revision of the cluster. Taken for one it may be above all that follow, and tokens
// that were given in one epoch are given again in the next.
func TestFencingTokensOutliveTheReadingOfACopy(t *testing.T) {
	permits := Rule{Policy: 1, Version: 1, Loss: LossSalvage, Limit: Limit{Algorithm: Concurrency, Amount: 100, Window: sec}}
	g := newRig(t, 2)
	last := uint64(0)
	for epoch := range uint64(3) {
		chunk, _ := restored(t, g.table).Salvage(1, 1).Final(64 << 10) // older than the last grants
		chunk = append([]byte(nil), chunk...)
		for i := range uint64(3) {
			out := g.expect("grant", 500*sec, Request{Home: 1, ID: own(100*epoch + i), Takes: []Take{{Slot: 1, Key: spread(1), Rule: permits, Cost: 1}}}, Admitted)
			if token := out[0].FencingToken; token <= last {
				t.Fatalf("epoch %d: token %d after %d", epoch, token, last)
			} else {
				last = token
			}
		}
		read := &rig{tb: t, table: NewTable(2)}
		if c := read.entry(AdoptEntry(7, Move{1, 62}, 510*sec, chunk)).Items[0].Code; c != Moved {
			t.Fatalf("code %d", c)
		}
		chunk, _ = read.table.Salvage(1, 1).Final(64 << 10)
		chunk = append([]byte(nil), chunk...)
		g = &rig{tb: t, table: NewTable(2)}
		for _, e := range [][]byte{AdoptEntry(7, Move{1, 5 + epoch}, 510*sec, chunk), OwnEntry(7, []Move{{1, 5 + epoch}})} {
			if c := g.entry(e).Items[0].Code; c != Moved {
				t.Fatalf("code %d", c)
			}
		}
	}
}

// TestSalvage takes over what the policies say, and the results.
func TestSalvage(t *testing.T) {
	from := newRig(t, 2)
	l := per(10, 100*sec, 10)
	rules := []Rule{{Policy: 1, Version: 1, Limit: l}, {Policy: 2, Version: 1, Limit: l, Loss: LossSalvage}, {Policy: 3, Version: 1, Limit: l, Loss: LossFull}}
	take := func(i int, key uint64) Request {
		return Request{Home: 1, ID: own(uint64(i)), Takes: []Take{{Slot: 1, Key: spread(key), Rule: rules[i], Cost: 3}}}
	}
	for i := range rules {
		from.expect("take", 500*sec, take(i, uint64(i)), Admitted)
	}
	survivor := restored(t, from.table)
	e := survivor.Salvage(1, 1)
	chunk, last := e.Final(64 << 10)
	if info, err := ParseChunk(chunk); err != nil || !last || !info.Salvage || info.Cells != 1 || info.Results != 3 {
		t.Fatalf("%+v: %v", info, err)
	}
	g := &rig{tb: t, table: NewTable(2)}
	for _, e := range [][]byte{AdoptEntry(7, Move{1, 9}, 510*sec, chunk), OwnEntry(7, []Move{{1, 9}})} {
		if c := g.entry(e).Items[0].Code; c != Moved {
			t.Fatalf("code %d", c)
		}
	}
	if i := g.table.Slot(1); !i.Born || i.Time != 510*sec || i.State != SlotHeld {
		t.Fatalf("%+v", i)
	}
	if n := g.table.slots[1].grants; n < 9<<32 {
		t.Errorf("fencing tokens go on from %d, which may have been given already", n)
	}
	for i := range rules {
		g.expect("repeated", 8, take(i, uint64(i)), Repeated)
		for key, want := range [][2]uint64{{0, 0}, {8, 10}, {10, 10}}[i] {
			r := take(i, uint64(i+9*key))
			r.ID, r.Takes[0].Cost = ID{}, 0
			if _, a := g.peek(8, r); a[0].Remaining != want {
				t.Errorf("policy %d, key %d: %d remain, want %d", i, key, a[0].Remaining, want)
			}
		}
	}
	r := with(client(1, 0), 1)
	r.ID.AgeNanos = uint64(3 * sec)
	g.expect("older than the birth", 7+2*sec, r, TooOld)
	checkBooks(t, g.table)
	same(t, g.table, restored(t, g.table))
}
