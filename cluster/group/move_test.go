package group

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ringlimit/ringlimit/bucket"
)

// twoGroups runs f with two groups of three replicas; only the first holds slots.
func twoGroups(t *testing.T, f func(t *testing.T, from, to *world)) {
	bubble(t, func(t *testing.T, from *world) {
		to := &world{t: t, net: newMemNet(), nodes: map[string]*testNode{}}
		defer to.stop()
		from.start(3, nil)
		to.start(3, nil)
		from.holdAll()
		to.leader()
		f(t, from, to)
	})
}

// parcel is a chunk as it was sent.
type parcel struct {
	chunk    []byte
	slotTime int64
	received time.Time
}

// pack reads a slot of a leader to its end, sealing it in between.
func pack(t *testing.T, l *testNode, m bucket.Move, pass uint64, between func()) (out []parcel) {
	t.Helper()
	e := l.r.Export(m.Slot, pass)
	defer e.Close()
	for more := true; more; {
		chunk, next, err := e.Next(16 << 10)
		if err != nil {
			t.Fatal(err)
		}
		if more = next; chunk != nil {
			out = append(out, parcel{append([]byte(nil), chunk...), 0, time.Now()})
		}
	}
	if between != nil {
		between()
	}
	if done, err := l.r.Seal(t.Context(), []bucket.Move{m}); err != nil || !done[0] {
		t.Fatalf("seal: %v, %v", done, err)
	}
	for {
		chunk, last, err := e.Final(16 << 10)
		if err != nil {
			t.Fatal(err)
		}
		if chunk != nil {
			out = append(out, parcel{append([]byte(nil), chunk...), l.r.SlotClock(m.Slot), time.Now()})
		}
		if last {
			return out
		}
	}
}

// deliver has a leader adopt parcels.
func deliver(t *testing.T, l *testNode, m bucket.Move, parcels []parcel) {
	t.Helper()
	for i, p := range parcels {
		done, info, err := l.r.Adopt(t.Context(), m, p.slotTime, p.received, p.chunk)
		if err != nil || !done && info.State != bucket.SlotComplete {
			t.Fatalf("chunk %d of %d: %v, %v, %+v", i, len(parcels), done, err, info)
		}
	}
}

func settle(t *testing.T, f func(context.Context, []bucket.Move) ([]bool, error), m bucket.Move) {
	t.Helper()
	if done, err := f(t.Context(), []bucket.Move{m}); err != nil || len(done) != 1 || !done[0] {
		t.Fatalf("%v, %v", done, err)
	}
}

func TestSlotMovesWithBucketsAndAnswers(t *testing.T) {
	twoGroups(t, func(t *testing.T, from, to *world) {
		a, b := from.leader(), to.leader()
		m := bucket.Move{Slot: 1, Revision: 7}
		first := ask(1, oneOff(10), 3, 9, 1)
		code, before, err := take(a, first, time.Second)
		if err != nil || code != bucket.Admitted {
			t.Fatalf("%v, %v", code, err)
		}
		deliver(t, b, m, pack(t, a, m, 1, func() {
			if code, _, err := take(a, ask(1, oneOff(10), 2, 9, 2), time.Second); err != nil || code != bucket.Admitted {
				t.Fatalf("while it is copied: %v, %v", code, err)
			}
		}))
		if code, _, _ := take(a, ask(1, oneOff(10), 1, 9, 3), time.Second); code != bucket.NotHeld {
			t.Errorf("a sealed slot answers %v", code)
		}
		if code, _, _ := take(b, ask(1, oneOff(10), 1, 9, 3), time.Second); code != bucket.NotHeld {
			t.Errorf("a slot that is not owned yet answers %v", code)
		}
		settle(t, b.r.Own, m)
		settle(t, a.r.Forget, m)
		code, after, err := take(b, first, time.Second)
		if err != nil || code != bucket.Repeated {
			t.Fatalf("the same id: %v, %v", code, err)
		}
		if diff := cmp.Diff(before.Results.Answers, after.Results.Answers); diff != "" {
			t.Errorf("another answer to the same id: %s", diff)
		}
		if n := to.level(b, 1, oneOff(10)); n != 5 {
			t.Errorf("%d left, want 5", n)
		}
		if a.r.Held(1) || !b.r.Held(1) {
			t.Error("both or none hold the slot")
		}
		from.identical(from.all()...)
		to.identical(to.all()...)
	})
}

func TestSlotTimeRunsOnWhileASlotMoves(t *testing.T) {
	twoGroups(t, func(t *testing.T, from, to *world) {
		time.Sleep(5 * time.Second) // the groups' times differ
		a, b := from.leader(), to.leader()
		limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 10, Burst: 1000, Window: int64(time.Second)}
		if code, _, err := take(a, ask(1, limit, 1000, 9, 1), time.Second); err != nil || code != bucket.Admitted {
			t.Fatalf("%v, %v", code, err)
		}
		begun := time.Now()
		ws := []*world{from, to}
		for i := range uint64(10) {
			m := bucket.Move{Slot: 1, Revision: i + 1}
			parcels := pack(t, a, m, i+1, nil)
			time.Sleep(200 * time.Millisecond) // they are adopted late, after they have arrived
			deliver(t, b, m, parcels)
			settle(t, b.r.Own, m)
			settle(t, a.r.Forget, m)
			a, b = b, a
			ws[0], ws[1] = ws[1], ws[0]
			time.Sleep(100 * time.Millisecond)
		}
		gone := time.Since(begun)
		want := uint64(gone * 10 / time.Second)
		if n := ws[0].level(a, 1, limit); n > want || n+1 < want {
			t.Errorf("%d tokens after %v and ten moves, want %d", n, gone, want)
		}
	})
}

func TestLateAndRepeatedChunksChangeNothing(t *testing.T) {
	twoGroups(t, func(t *testing.T, from, to *world) {
		a, b := from.leader(), to.leader()
		for i := range uint64(2000) {
			if _, _, err := take(a, ask(1+testSlots*i, oneOff(10), 1+i%10, 9, i+1), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		m := bucket.Move{Slot: 1, Revision: 3}
		old := pack(t, a, m, 1, nil)
		next := pack(t, a, m, 2, nil)
		if len(old) < 3 {
			t.Fatalf("only %d chunks", len(old))
		}
		deliver(t, b, m, old[:2])
		for i, p := range next {
			deliver(t, b, m, []parcel{p, p}) // twice
			o := old[min(i, len(old)-1)]     // and one of the earlier pass, late
			if done, info, err := b.r.Adopt(t.Context(), m, o.slotTime, o.received, o.chunk); err != nil || done {
				t.Fatalf("a late chunk was taken: %v, %v, %+v", done, err, info)
			}
		}
		if i, _ := b.r.Slot(1); i.State != bucket.SlotComplete {
			t.Fatalf("%+v", i)
		}
		// What another leader of the source begins to send once the slot is complete.
		again := pack(t, a, m, 9, nil)
		if done, i, err := b.r.Adopt(t.Context(), m, 0, time.Now(), again[0].chunk); err != nil || done || i.State != bucket.SlotComplete {
			t.Fatalf("a complete slot began anew: %v, %v, %+v", done, err, i)
		}
		settle(t, b.r.Own, m)
		settle(t, a.r.Forget, m)
		for i := range uint64(2000) {
			if n := to.level(b, 1+testSlots*i, oneOff(10)); n != 10-(1+i%10) {
				t.Fatalf("bucket %d has %d", i, n)
			}
		}
	})
}

func TestAnyLeaderGoesOnWithAMove(t *testing.T) {
	twoGroups(t, func(t *testing.T, from, to *world) {
		a, b := from.leader(), to.leader()
		for i := range uint64(1000) {
			if _, _, err := take(a, ask(1+testSlots*i, oneOff(10), 4, 9, i+1), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		m := bucket.Move{Slot: 1, Revision: 3}
		parcels := pack(t, a, m, 1, nil)
		deliver(t, b, m, parcels[:len(parcels)/2])
		from.kill(a)
		to.kill(b)
		a, b = from.leader(), to.leader()
		if i, _ := a.r.Slot(1); i.State != bucket.SlotSealed {
			t.Fatalf("the new leader's slot is %+v", i)
		}
		if i, _ := b.r.Slot(1); i.State != bucket.SlotIncoming || i.Next == 0 {
			t.Fatalf("the new leader's slot is %+v", i)
		}
		deliver(t, b, m, pack(t, a, m, 2, nil))
		settle(t, b.r.Own, m)
		settle(t, b.r.Own, m) // again
		settle(t, a.r.Forget, m)
		settle(t, a.r.Forget, m)
		for i := range uint64(1000) {
			if n := to.level(b, 1+testSlots*i, oneOff(10)); n != 6 {
				t.Fatalf("bucket %d has %d", i, n)
			}
		}
	})
}

func TestCancelledMoveServesOn(t *testing.T) {
	twoGroups(t, func(t *testing.T, from, to *world) {
		a, b := from.leader(), to.leader()
		if _, _, err := take(a, ask(1, perSecond(10), 10, 9, 1), time.Second); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		m := bucket.Move{Slot: 1, Revision: 3}
		parcels := pack(t, a, m, 1, nil)
		deliver(t, b, m, parcels)
		time.Sleep(300 * time.Millisecond)
		settle(t, a.r.Unseal, m)
		settle(t, b.r.Drop, m)
		if done, _, err := b.r.Adopt(t.Context(), m, 0, time.Now(), parcels[0].chunk); err != nil || done {
			t.Errorf("a chunk of a cancelled move was taken: %v", err)
		}
		time.Sleep(400*time.Millisecond - time.Since(begun)%time.Millisecond)
		want := uint64(time.Since(begun) / (100 * time.Millisecond))
		if n := from.level(a, 1, perSecond(10)); n != want {
			t.Errorf("%d tokens after %v, want %d: time stood still or ran twice", n, time.Since(begun), want)
		}
	})
}
