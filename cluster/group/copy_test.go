package group

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// salvaged is oneOff of a policy that is to be salvaged.
func salvaged(k uint64) Request {
	q := ask(k, oneOff(10), 1, 1, k+1)
	for i := range q.Takes {
		q.Takes[i].Rule.Loss = bucket.LossSalvage
	}
	return q
}

// chunks reads a slot to its end.
func chunks(t testing.TB, d *Reading, size int) (all [][]byte) {
	t.Helper()
	defer d.Close()
	for {
		chunk, last, err := d.Next(size)
		if err != nil {
			t.Fatal(err)
		}
		if chunk != nil {
			all = append(all, append([]byte(nil), chunk...))
		}
		if last {
			return all
		}
	}
}

func TestCopyOfAFollowerHasAllThatWasAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		slots := make(map[uint16]int)
		for k := range uint64(200) {
			q := salvaged(k)
			if got, _, err := take(l, q, time.Second); err != nil || got != bucket.Admitted {
				t.Fatal(got, err)
			}
			slots[q.Takes[0].Slot]++
		}
		time.Sleep(5 * time.Millisecond)
		for _, n := range append(w.others(l), l) {
			// The last entry is in every log by now, and followers do not know that it is committed.
			c, err := n.r.Copy(true)
			if err != nil {
				t.Fatal(err)
			}
			if last := n.r.Status().LastIndex; c.Look.Index < last {
				t.Errorf("%s: copied as of %d of %d", n.id, c.Look.Index, last)
			}
			to := NewCopy(testSlots)
			for slot := range uint16(testSlots) {
				if got := c.Slot(slot).Buckets; got != slots[slot] {
					t.Errorf("%s: slot %d has %d buckets, want %d", n.id, slot, got, slots[slot])
				}
				for pass := range uint64(2) { // a place may be used again
					if err := to.Load(slot, 0, chunks(t, c.Salvage(slot, pass+1), 4096)); err != nil {
						t.Fatal(err)
					}
					if got := to.Slot(slot); got.Buckets != slots[slot] || got.Time != c.Slot(slot).Time || !got.Born {
						t.Errorf("%s: slot %d is salvaged as %+v of %+v", n.id, slot, got, c.Slot(slot))
					}
					d, err := to.Whole(slot, 9)
					if err != nil {
						t.Fatal(err)
					}
					if len(chunks(t, d, 4096)) == 0 {
						t.Error("nothing was read")
					}
					to.Drop(slot)
				}
			}
		}
	})
}

func TestLookTellsWhichSlotsChanged(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		take(l, salvaged(1), time.Second)
		before := l.r.Look()
		time.Sleep(30 * time.Second) // stamps
		if now := l.r.Look(); now.Index == before.Index || now.Time == before.Time {
			t.Errorf("looks at %d and %d", before.Index, now.Index)
		}
		q := salvaged(2)
		take(l, q, time.Second)
		now := l.r.Look()
		for slot := range testSlots {
			if got, want := now.Same(&before, slot), slot != int(q.Takes[0].Slot); got != want {
				t.Errorf("slot %d: same is %v, want %v", slot, got, want)
			}
		}
		n := w.fresh(nil)
		w.join(n)
		synctest.Wait()
		theirs := n.r.Look()
		if theirs.Same(&now, 0) {
			t.Error("looks at two replicas are the same")
		}
	})
}

func TestCopyIsMadeWhileTakesGoOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		stop := w.load(20, 10*time.Millisecond)
		for range 20 {
			time.Sleep(7 * time.Millisecond)
			for _, n := range w.all() {
				if _, err := n.r.Copy(false); err != nil {
					t.Error(err)
				}
			}
		}
		if stop() == 0 {
			t.Error("nothing was admitted")
		}
		if _, err := l.r.Copy(true); err != nil {
			t.Error(err)
		}
	})
}

// FuzzLoad: no file can lead a copy astray.
func FuzzLoad(f *testing.F) {
	c := NewCopy(4)
	apply := func(entry []byte) {
		if err := c.table.Apply(c.table.Index()+1, entry, nil); err != nil {
			f.Fatal(err)
		}
	}
	apply(bucket.HoldEntry(1, []uint16{0, 1, 2, 3}))
	var b bucket.Builder
	for k := range uint64(20) {
		q := salvaged(k)
		q.Home, q.Takes[0].Slot = 1, 1
		b.Add(&q.Request)
	}
	apply(b.Detach(2))
	for _, chunk := range chunks(f, c.Salvage(1, 1), 64<<10) {
		f.Add(chunk, int64(5))
	}
	f.Fuzz(func(t *testing.T, chunk []byte, at int64) {
		if n := len(chunk) - 4; n > 0 { // else the checksum keeps all out
			chunk = binary.LittleEndian.AppendUint32(chunk[:n:n], crc32.Checksum(chunk[:n], crc32.MakeTable(crc32.Castagnoli)))
		}
		c := NewCopy(4)
		if c.Load(1, at, [][]byte{chunk}) != nil {
			return
		}
		all := chunks(t, c.Salvage(1, 2), 4096)
		if err := NewCopy(4).Load(1, 0, all); err != nil {
			t.Errorf("what was loaded and read cannot be loaded: %v", err)
		}
	})
}

// BenchmarkCopy measures a copy of 300,000 buckets with a result each, and reading
// all slots of it.
func BenchmarkCopy(b *testing.B) {
	w := &world{t: new(testing.T), net: newMemNet(), nodes: map[string]*testNode{}}
	w.start(1, nil)
	l := w.holdAll()
	defer w.stop()
	const per = 5000
	reqs := make([]Request, per)
	for n := range uint64(60) {
		for i := range reqs {
			reqs[i] = salvaged(n*per + uint64(i))
			reqs[i].ID.Session = n % 50
		}
		var out Outcome
		if err := l.r.Take(context.Background(), reqs, &out); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.r.Copy(false); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		c, err := l.r.Copy(false)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			n := 0
			for slot := range uint16(testSlots) {
				for _, chunk := range chunks(b, c.Salvage(slot, 1), 64<<10) {
					n += len(chunk)
				}
			}
			b.ReportMetric(float64(n), "bytes")
		}
	})
}
