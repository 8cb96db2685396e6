package bucket

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzApply feeds any bytes as an entry, then a sound one: no panic, and after
// an error nothing has changed.
func FuzzApply(f *testing.F) {
	log := newBulk(f, 1)
	f.Add(log.entry(3, 10, 3, sec))
	f.Add(log.entry(40, 10, 3, sec))
	f.Add(StampEntry(5, 100))
	f.Add(HoldEntry(1<<62, []uint16{0, 2}))
	f.Add(CutoverEntry(1<<40, []Rule{{Policy: 1, Version: 9, Limit: Limit{Algorithm: SlidingLog, Amount: 3, Window: sec}}}))
	everything := everyOp(f)
	f.Add(everything)
	for _, e := range []func(int64, []Move) []byte{SealEntry, UnsealEntry, OwnEntry, ForgetEntry, DropEntry, BirthEntry} {
		f.Add(e(7, []Move{{1, 1}, {2, 5}}))
	}
	f.Add(AdoptEntry(7, Move{2, 1}, 9, emptySlot(f)))
	sound := log.entry(20, 10, 3, sec)
	f.Fuzz(func(t *testing.T, entry []byte) {
		tb := NewTable(3)
		apply(t, tb, 1, HoldEntry(0, []uint16{0, 1}))
		apply(t, tb, 2, sound)
		apply(t, tb, 3, everything)
		before := dump(t, tb)
		var out Results
		err := tb.Apply(4, entry, &out)
		switch {
		case err == nil:
			apply(t, tb, 5, sound)
			checkBooks(t, tb)
			same(t, tb, restored(t, tb))
		case !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion):
			t.Fatalf("unknown error %v", err)
		case !bytes.Equal(before, dump(t, tb)) || len(out.Items) > 0:
			t.Fatalf("changed by a refused entry: %v", err)
		}
		for _, a := range out.Answers {
			if a.Remaining > a.Capacity || a.ResetAfter < 0 || a.RetryAfter < -1 {
				t.Fatalf("%+v", a)
			}
		}
	})
}

// everyOp is an entry with a bucket of every algorithm under two versions, and
// every operation on them.
func everyOp(t tester) []byte {
	var reqs []Request
	for i, l := range all(5, 10*sec) {
		for v := range uint64(2) {
			k := Take{Slot: uint16(i % 2), Key: spread(uint64(i)), Rule: Rule{Policy: uint64(i), Version: v, Limit: l}, Cost: 2, Shadow: v == 1}
			id := own(uint64(i)<<8 | v)
			reqs = append(reqs, Request{Home: k.Slot, ID: id, Takes: []Take{k}},
				Request{Op: OpLease, Home: k.Slot, ID: own(uint64(i)<<16 | v), Amount: 2, Share: 2, Takes: []Take{k}})
			if v == 1 {
				reqs = append(reqs, Request{Op: OpRefund, Home: k.Slot, ID: id, Amount: 1},
					Request{Op: OpUndo, Home: k.Slot, ID: client(uint64(i), 0)},
					Request{Op: OpRenew, Home: k.Slot, Permit: permitID(k.Slot, 1), Takes: []Take{k}},
					Request{Op: OpRelease, Home: k.Slot, Permit: permitID(k.Slot, 2), Takes: []Take{k}})
			}
		}
	}
	return (&rig{tb: t}).encode(4, reqs...)
}

// numbers reads n numbers from fuzzed bytes, zeros when they run out.
func numbers(b []byte, n int) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			break
		}
		all[i], b = v, b[size:]
	}
	return all
}

func fuzzLimit(algorithm byte, amount, window, burst uint64) Limit {
	l := per(1+amount%MaxAmount, MinWindow+int64(window%(MaxWindow-MinWindow+1)), 1+burst%MaxAmount)
	if l.Algorithm = TokenBucket + Algorithm(algorithm)%Concurrency; !l.Algorithm.HasBurst() {
		l.Burst = l.Amount
	}
	return l
}

func FuzzTakeAgainstOracle(f *testing.F) {
	f.Add(byte(0), uint64(1), uint64(1e9), uint64(10), []byte{1, 2, 3, 4, 200, 1, 7})
	f.Add(byte(1), uint64(999_999_999), uint64(MaxWindow), uint64(999_999_999), bytes.Repeat([]byte{0xff, 0xff, 0xff, 0xff, 0x7f, 3}, 4))
	f.Add(byte(3), uint64(7), uint64(5e6), uint64(0), []byte{1, 2, 3, 4, 200, 200, 1, 7, 0, 9, 3, 2})
	f.Add(byte(5), uint64(7), uint64(5e6), uint64(0), []byte{1, 2, 3, 4, 200, 200, 1, 7, 0, 9, 3, 2})
	f.Fuzz(func(t *testing.T, algorithm byte, amount, window, burst uint64, moves []byte) {
		limit := fuzzLimit(algorithm, amount, window, burst)
		rule := Rule{Policy: 1, Version: 1, Limit: limit}
		g, o := newRig(t, 2), newOracle(limit, 0)
		m := numbers(moves, 40)
		for now := int64(0); len(m) > 0; m = m[2:] {
			now = max(now, min(later(now, int64(m[0])), 1<<61))
			cost := m[1] % (limit.Capacity() + 2)
			want := o.take(rule, now, cost)
			got := g.take(now, limit, cost)
			got.PermitID, got.FencingToken = 0, 0
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%+v, cost %d at %d: (-oracle +table)\n%s", limit, cost, now, diff)
			}
		}
	})
}

// FuzzNeverAdmitsMoreThanTheLimit checks burst + rate × time over every
// interval between two takes, in rational numbers.
func FuzzNeverAdmitsMoreThanTheLimit(f *testing.F) {
	f.Add(false, uint64(2), uint64(1e9), uint64(4), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add(true, uint64(1999), uint64(1e9), uint64(0), bytes.Repeat([]byte{0xa0, 0xc2, 0x1e, 0}, 10))
	f.Fuzz(func(t *testing.T, leaky bool, amount, window, burst uint64, moves []byte) {
		limit := fuzzLimit(0, amount, window, burst)
		if leaky {
			limit.Algorithm = LeakyBucket
		}
		g := newRig(t, 2)
		type admission struct {
			at   int64
			cost uint64
		}
		var all []admission
		m := numbers(moves, 60)
		for now := int64(0); len(m) > 0; m = m[2:] {
			stamp := later(now, int64(m[0])>>1) // half of them backwards
			now = max(now, stamp)
			cost := 1 + m[1]%limit.Burst
			if g.take(stamp, limit, cost).Allowed {
				all = append(all, admission{now, cost})
			}
			total := uint64(0)
			for i := len(all) - 1; i >= 0; i-- {
				total += all[i].cost
				if total > limit.Burst && rat(total-limit.Burst).Cmp(gained(limit, now-all[i].at)) > 0 {
					t.Fatalf("%d admitted in %d ns under %+v", total, now-all[i].at, limit)
				}
			}
		}
	})
}

// FuzzRestore cuts off and flips: the table is unchanged, or the dump was whole.
func FuzzRestore(f *testing.F) {
	from := NewTable(3)
	for i, e := range newBulk(f, 3).log(1)[:3] {
		apply(f, from, i+1, e)
	}
	apply(f, from, 4, everyOp(f))
	whole := dump(f, from)
	f.Add(uint32(0), byte(0), uint32(0), false)
	f.Add(uint32(9), byte(1), uint32(0), true)
	f.Add(uint32(len(whole)/2), byte(0x80), uint32(0), true)
	f.Add(uint32(0), byte(0), uint32(1), false)
	f.Fuzz(func(t *testing.T, at uint32, flip byte, cut uint32, sum bool) {
		b := bytes.Clone(whole)
		b[int(at)%len(b)] ^= flip
		if n := len(dumpMagic) + 4 + int(le.Uint32(whole[len(dumpMagic):])); sum && int(at)%len(b) < n && int(at)%len(b) >= len(dumpMagic)+4 {
			le.PutUint32(b[n:], crc32.Checksum(b[:n], castagnoli)) // a damaged header with a good checksum
		}
		b = b[:len(b)-int(cut)%len(b)]
		tb := NewTable(3)
		apply(t, tb, 1, HoldEntry(5, []uint16{1}))
		before := dump(t, tb)
		err := tb.Restore(bytes.NewReader(b))
		if err == nil {
			if !sum && !bytes.Equal(b, whole) {
				t.Fatal("a damaged dump was taken")
			}
			if next := tb.Index(); next < math.MaxUint64-2 { // whatever was taken can be worked with
				for i, e := range [][]byte{everyOp(t), StampEntry(1<<60, 1<<16)} {
					if err := tb.Apply(next+uint64(i)+1, e, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			return
		}
		if !errors.Is(err, ErrDump) || !bytes.Equal(before, dump(t, tb)) {
			t.Fatalf("a refused dump changed the table: %v", err)
		}
	})
}

// FuzzAdopt changes a chunk and gives it a good checksum: no panic, and whatever
// was adopted can be worked with, dumped and restored.
func FuzzAdopt(f *testing.F) {
	from := newRig(f, 3)
	from.entry(everyOp(f))
	from.fillSlot(30, 12)
	from.entry(SealEntry(9*sec, []Move{{1, 1}}))
	var chunks [][]byte
	for e, last := from.table.Export(1, 1), false; !last; {
		var c []byte
		if c, last = e.Final(3000); c != nil {
			chunks = append(chunks, c)
		}
	}
	f.Add(uint16(0), []byte{1}, uint16(3), []byte{9}, 10*sec)
	f.Add(uint16(40), []byte{0xff, 0xff, 0xff, 0xff, 0x7f}, uint16(300), []byte{9}, int64(math.MaxInt64))
	f.Add(uint16(16), []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, uint16(3), []byte{}, int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, at uint16, with []byte, at2 uint16, with2 []byte, slotTime int64) {
		tb := NewTable(3)
		apply(t, tb, 1, HoldEntry(0, []uint16{0, 2}))
		apply(t, tb, 2, everyOp(t))
		index := 2
		next := func(e []byte) *Results {
			index++
			return apply(t, tb, index, e)
		}
		for i, c := range chunks {
			c = bytes.Clone(c)
			body := c[:len(c)-chunkSum]
			copy(body[int(at)%len(body):], with)
			if i > 0 {
				copy(body[int(at2)%len(body):], with2)
			}
			le.PutUint32(c[len(body):], crc32.Checksum(body, castagnoli))
			info, err := ParseChunk(c)
			if err != nil {
				if !errors.Is(err, ErrChunk) && !errors.Is(err, ErrVersion) {
					t.Fatal(err)
				}
				continue
			}
			next(AdoptEntry(5, Move{info.Slot % 3, 7}, slotTime, c))
		}
		checkBooks(t, tb)
		next(OwnEntry(6, []Move{{1, 7}}))
		next(everyOp(t))
		next(CutoverEntry(7, []Rule{{Policy: 0, Version: 9, Limit: unit}, {Policy: 4, Version: 9, Limit: unit}, {Policy: 5, Version: 9, Limit: unit}}))
		next(StampEntry(1<<50, 1<<16))
		next(everyOp(t))
		checkBooks(t, tb)
		same(t, tb, restored(t, tb))
		next(SealEntry(1<<51, []Move{{1, 8}}))
		e := tb.Export(1, 1)
		for n, last := 0, e.Ended(); !last; n++ {
			var c []byte
			if c, last = e.Final(5000); c != nil {
				if _, err := ParseChunk(c); err != nil {
					t.Fatalf("exported again: %v", err)
				}
			}
			if n > 10_000 {
				t.Fatal("never ends")
			}
		}
		next(DropEntry(1<<51, []Move{{1, 9}}))
		next(ForgetEntry(1<<51, []Move{{1, 8}}))
		next(StampEntry(1<<51, 1<<16))
		checkBooks(t, tb)
	})
}
