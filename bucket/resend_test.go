package bucket

import (
	"math/rand/v2"
	"testing"
)

// busyCarry moves a slot of so many buckets while changes of them are made between
// any two chunks, and returns how many cells were left for after the seal.
func busyCarry(t *testing.T, buckets, changes int) (left int, from, to *rig) {
	t.Helper()
	g := newRig(t, 2)
	g.fillSlot(buckets, 10)
	rng := rand.New(rand.NewPCG(3, 4))
	now := g.table.Time()
	to = g.carry(64<<10, func() {
		now += 1000
		for range changes {
			i := rng.IntN(buckets)
			g.apply(now, Request{Home: 1, Takes: []Take{{Slot: 1, Key: spread(uint64(i)), Rule: Rule{Policy: uint64(i % 6), Version: 1, Limit: lasting6()[i%6]}, Cost: 1}}})
		}
		left = g.table.slots[1].export.Changed()
	})
	checkBooks(t, to.table)
	sameContents(t, g.table, to.table)
	return left, g, to
}

// TestLittleIsLeftForAfterTheSeal: what changes while a slot is copied is sent again
// ahead of the seal, unless it changes as fast as it is sent.
func TestLittleIsLeftForAfterTheSeal(t *testing.T) {
	left, g, _ := busyCarry(t, 60_000, 100)
	if left > 2*fewChanges {
		t.Errorf("%d of %d cells are left for after the seal", left, g.table.Slot(1).Buckets)
	}
	if left, _, _ = busyCarry(t, 20_000, 4000); left < fewChanges {
		t.Errorf("only %d cells are left where they change as fast as they are sent", left)
	}
}

// TestSealAmidARoundLosesNothing seals while Next still sends again what changed.
func TestSealAmidARoundLosesNothing(t *testing.T) {
	g := newRig(t, 2)
	g.fillSlot(6000, 10)
	e := g.table.Export(1, 1)
	to := &rig{tb: t, table: NewTable(2)}
	m := Move{Slot: 1, Revision: 9}
	adopt := func(c []byte) {
		if c == nil {
			return
		}
		if code := to.entry(AdoptEntry(0, m, g.table.Time(), c)).Items[0].Code; code != Moved {
			t.Fatalf("code %d", code)
		}
	}
	for more, n := true, 0; more && len(e.again) == 0; n++ {
		var c []byte
		c, more = e.Next(32 << 10)
		adopt(c)
		for i := range 3000 {
			k := (n*3000 + i) % 6000
			g.apply(g.table.Time()+1, Request{Home: 1, Takes: []Take{{Slot: 1, Key: spread(uint64(k)), Rule: Rule{Policy: uint64(k % 6), Version: 1, Limit: lasting6()[k%6]}, Cost: 1}}})
		}
	}
	if len(e.again) == 0 {
		t.Fatal("no round is under way")
	}
	g.entry(SealEntry(g.table.Time(), []Move{m}))
	for last := false; !last; {
		var c []byte
		c, last = e.Final(32 << 10)
		adopt(c)
	}
	to.entry(OwnEntry(0, []Move{m}))
	checkBooks(t, to.table)
	sameContents(t, g.table, to.table)
}

// TestListCutByTheEndOfAChunkIsSentWhole: ahead of the seal, the part of a list that
// a chunk had no room for may be gone, or other records, by the next step.
func TestListCutByTheEndOfAChunkIsSentWhole(t *testing.T) {
	limit := lasting6()[3]
	for _, l := range lasting6() {
		if l.Algorithm == SlidingLog {
			limit = l
		}
	}
	limit.Window = int64(100)
	g := newRig(t, 2)
	rule := Rule{Policy: 3, Version: 1, Limit: limit}
	take := func(now int64, key, n int) {
		for range n {
			g.apply(now, Request{Home: 1, Takes: []Take{{Slot: 1, Key: spread(uint64(key)), Rule: rule, Cost: 1}}})
			now++
		}
	}
	for key := range 20 {
		take(1, key, 60)
	}
	now := int64(60)
	to := g.carry(400, func() { // each chunk ends in a list, and then that one changes
		now += 30
		for key := range 20 {
			take(now, key, 1)
		}
	})
	checkBooks(t, to.table)
	sameContents(t, g.table, to.table)
}
