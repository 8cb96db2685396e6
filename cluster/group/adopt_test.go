package group

import (
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// TestChunksOfManySlotsShareACommit: chunks of different slots that come at once do
// not wait for each other's commit.
func TestChunksOfManySlotsShareACommit(t *testing.T) {
	twoGroups(t, func(t *testing.T, from, to *world) {
		a, b := from.leader(), to.leader()
		const slots = testSlots
		parcels := make([][]parcel, slots)
		for slot := range uint16(slots) {
			if code, _, err := take(a, ask(uint64(slot), oneOff(100), 1+uint64(slot), 9, uint64(slot)+1), time.Second); err != nil || code != bucket.Admitted {
				t.Fatalf("%v, %v", code, err)
			}
			parcels[slot] = pack(t, a, bucket.Move{Slot: slot, Revision: 5}, 1, nil)
		}
		to.net.hook(hooks{delay: func(string, string, any) time.Duration { return 2 * time.Millisecond }})
		begun := time.Now()
		var wg sync.WaitGroup
		for slot := range uint16(slots) {
			wg.Go(func() { deliver(t, b, bucket.Move{Slot: slot, Revision: 5}, parcels[slot]) })
		}
		wg.Wait()
		if took := time.Since(begun); took > slots*4*time.Millisecond/2 {
			t.Errorf("%d slots took %v, as if one came after the other", slots, took)
		}
		for slot := range uint16(slots) {
			m := bucket.Move{Slot: slot, Revision: 5}
			settle(t, b.r.Own, m)
			settle(t, a.r.Forget, m)
			if n := to.level(b, uint64(slot), oneOff(100)); n != 99-uint64(slot) {
				t.Errorf("slot %d: %d left, want %d", slot, n, 99-uint64(slot))
			}
		}
		to.identical(to.all()...)
	})
}

// TestChunksOfOneSlotKeepTheirOrder: two leaders of the source may send chunks of
// one slot at the same moment. A slot that one of them completes stays complete.
func TestChunksOfOneSlotKeepTheirOrder(t *testing.T) {
	twoGroups(t, func(t *testing.T, from, to *world) {
		a, b := from.leader(), to.leader()
		for i := range uint64(2000) {
			if _, _, err := take(a, ask(1+testSlots*i, oneOff(10), 1+i%10, 9, i+1), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		for round := range uint64(5) {
			m := bucket.Move{Slot: 1, Revision: 3 + round}
			old, next := pack(t, a, m, 1, nil), pack(t, a, m, 2, nil)
			deliver(t, b, m, old[:len(old)-1])
			var wg sync.WaitGroup
			send := func(p parcel) {
				wg.Go(func() { _, _, _ = b.r.Adopt(t.Context(), m, p.slotTime, p.received, p.chunk) })
			}
			for range 4 {
				send(old[len(old)-1])
				send(next[0])
			}
			wg.Wait()
			if info, _ := b.r.Slot(1); info.State == bucket.SlotComplete && info.Pass == 1 {
				if done, info, err := b.r.Adopt(t.Context(), m, 0, time.Now(), next[0].chunk); done || err != nil || info.State != bucket.SlotComplete {
					t.Fatalf("a complete slot began anew: %v, %v, %+v", done, err, info)
				}
			} else if info.State == bucket.SlotComplete || info.Pass == 2 && info.Next == 0 {
				t.Fatalf("%+v", info)
			} else {
				deliver(t, b, m, next)
			}
			settle(t, b.r.Own, m)
			settle(t, a.r.Forget, m)
			a, b, from, to = b, a, to, from
		}
		for i := range uint64(2000) {
			if n := from.level(a, 1+testSlots*i, oneOff(10)); n != 10-(1+i%10) {
				t.Fatalf("bucket %d has %d", i, n)
			}
		}
	})
}
