package bucket

import (
	"math/rand/v2"
	"testing"
)

// each runs f for amount per window of every algorithm.
func each(t *testing.T, amount uint64, window int64, f func(t *testing.T, g *rig, l Limit)) {
	t.Helper()
	for _, l := range all(amount, window) {
		t.Run(l.Algorithm.String(), func(t *testing.T) { f(t, newRig(t, 2), l) })
	}
}

// admitted asks n times for cost 1 at each time from on, step apart.
func (g *rig) admitted(l Limit, from, step int64, n int) (yes int) {
	for i := range n {
		if g.take(from+step*int64(i), l, 1).Allowed {
			yes++
		}
	}
	return yes
}

// versioned is a take under a version of its policy.
func versioned(version uint64, l Limit, cost uint64) Request {
	r := takeOf(l, cost)
	r.Takes[0].Rule.Version = version
	return r
}

func TestPublishedComparison(t *testing.T) {
	want := map[Algorithm][2]int{FixedWindow: {200, 0}, SlidingLog: {100, 0}, SlidingWindow: {102, 48}, TokenBucket: {103, 48}}
	for a, want := range want {
		l := Limit{Algorithm: a, Amount: 100, Burst: 100, Window: 60 * sec}
		g := &rig{tb: t, table: NewTable(2, WithPhaseZero())}
		g.entry(HoldEntry(0, []uint16{0, 1}))
		got := [2]int{g.admitted(l, 59*sec, 10*ms, 200)}
		if got[1] = g.admitted(l, 90*sec, 0, 100); got != want {
			t.Errorf("%v: admitted %v, want %v", a, got, want)
		}
	}
}

func TestCostAboveCapacityLeavesAllThere(t *testing.T) {
	each(t, 10, 60*sec, func(t *testing.T, g *rig, l Limit) {
		a := g.take(0, l, 11)
		if a.Allowed || a.Reason != ReasonCostExceedsCapacity || a.RetryAfter != -1 || a.Remaining != 10 || a.Capacity != 10 || g.table.Buckets() != 0 {
			t.Fatalf("%+v", a)
		}
		if n := g.admitted(l, 0, 0, 20); n != 10 {
			t.Fatalf("%d admitted", n)
		}
	})
}

func TestAmountZeroDeniesAllInEveryAlgorithm(t *testing.T) {
	each(t, 0, sec, func(t *testing.T, g *rig, l Limit) {
		for _, cost := range []uint64{0, 1, 5} {
			if a := g.take(0, l, cost); a.Allowed || a.RetryAfter != -1 || a.Capacity != 0 || a.Reason != ReasonNothingAllowed {
				t.Fatalf("%+v", a)
			}
		}
	})
}

func TestThousandCallersOnALimitOfTen(t *testing.T) {
	each(t, 10, 3600*sec, func(t *testing.T, g *rig, l Limit) {
		reqs := make([]Request, 1000)
		for i := range reqs {
			reqs[i] = takeOf(l, 1)
		}
		yes, out, tokens := 0, g.apply(0, reqs...), map[uint64]bool{}
		for _, item := range out.Items {
			if item.Code == Admitted {
				yes++
				tokens[out.Answers[item.First].FencingToken] = true
			}
		}
		if yes != 10 || l.Algorithm == Concurrency && len(tokens) != 10 {
			t.Fatalf("%d admitted, %d tokens", yes, len(tokens))
		}
	})
}

// TestDeniedTogetherTakesNothing: three limits on one request, of which one denies.
func TestDeniedTogetherTakesNothing(t *testing.T) {
	each(t, 10, 3600*sec, func(t *testing.T, g *rig, l Limit) {
		r := Request{Home: 1}
		for i := range uint64(3) {
			r.Takes = append(r.Takes, Take{Slot: 1, Key: spread(i), Rule: Rule{Policy: i, Version: 1, Limit: l}, Cost: 1})
		}
		g.apply(0, Request{Home: 1, Takes: []Take{{Slot: 1, Key: spread(2), Rule: Rule{Policy: 2, Version: 1, Limit: l}, Cost: 10}}})
		for range 1000 {
			g.expect("one of three denies", 0, r, Denied)
		}
		_, left := g.peek(0, r)
		if left[0].Remaining != 10 || left[1].Remaining != 10 || left[2].Remaining != 0 {
			t.Fatalf("%+v", left)
		}
	})
}

func TestLeakyAdmitsAsItDrains(t *testing.T) {
	g, l := newRig(t, 2), Limit{Algorithm: LeakyBucket, Amount: 10, Burst: 10, Window: 30 * sec}
	for i := range int64(10) {
		if a := g.take(0, l, 1); !a.Allowed || a.Delay != i*3*sec {
			t.Fatalf("%+v", a)
		}
	}
	for s := range int64(9) {
		if a := g.take((s+1)*sec, l, 1); a.Allowed != ((s+1)%3 == 0) {
			t.Fatalf("at %d s: %+v", s+1, a)
		}
	}
}

func TestWindowIsHalfOpen(t *testing.T) {
	for _, a := range []Algorithm{SlidingLog, Concurrency, FixedWindow} {
		g := &rig{tb: t, table: NewTable(2, WithPhaseZero())}
		g.entry(HoldEntry(0, []uint16{0, 1}))
		l := Limit{Algorithm: a, Amount: 2, Window: sec}
		if n := g.admitted(l, 0, 0, 3); n != 2 {
			t.Fatalf("%v: %d admitted", a, n)
		}
		if g.take(sec-1, l, 1).Allowed || !g.take(sec, l, 1).Allowed {
			t.Fatalf("%v: not admitted exactly at 1 s", a)
		}
	}
}

func TestBurstNeverRepeatsEarly(t *testing.T) {
	for _, a := range []Algorithm{TokenBucket, LeakyBucket} {
		g, l := newRig(t, 2), Limit{Algorithm: a, Amount: 1, Burst: 10, Window: sec}
		g.take(0, l, 1)
		if n := g.admitted(l, 8900*ms, 0, 20); n > 10 {
			t.Fatalf("%v: %d admitted", a, n)
		}
	}
}

// TestLongLogIsNeverLooser: beyond 1,000 entries the log admits nothing that an
// exact one would not, and denies nothing that would pass window/1000 later.
func TestLongLogIsNeverLooser(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 7))
		window := []int64{sec, 60 * sec, 1_234_567, 10 * sec}[seed]
		g, l := newRig(t, 2), Limit{Algorithm: SlidingLog, Amount: 4000, Window: window}
		type entry struct {
			at   int64
			cost uint64
		}
		var in []entry
		usedAt := func(now int64) (n uint64) {
			for i := len(in) - 1; i >= 0 && now-in[i].at < window; i-- {
				n += in[i].cost
			}
			return n
		}
		late := func(now int64) (n uint64) { // were all to count for one cell longer
			for i := len(in) - 1; i >= 0 && now-in[i].at < window+l.grain(); i-- {
				n += in[i].cost
			}
			return n
		}
		now := int64(0)
		for i := range 12_000 {
			step := window / 3000
			if i%4000 > 3000 {
				step = window / 200
			}
			now += rng.Int64N(step) + 1
			cost := 1 + rng.Uint64N(3)
			ok := g.take(now, l, cost).Allowed
			if ok && usedAt(now)+cost > l.Amount {
				t.Fatalf("%d admitted over the limit", usedAt(now)+cost-l.Amount)
			}
			if !ok && late(now)+cost <= l.Amount {
				t.Fatalf("denied more than %d ns early", l.grain())
			}
			if ok {
				in = append(in, entry{now, cost})
			}
			if records := g.table.ids.pool.used; records > 2*logExact/logPerRecord+2 {
				t.Fatalf("%d records", records)
			}
		}
		checkBooks(t, g.table)
	}
}

func TestHomeBucketsNeverUnderCounts(t *testing.T) {
	g := newRig(t, 4)
	g.table.counting = true
	want := map[[2]uint64]int{}
	rng := rand.New(rand.NewPCG(3, 3))
	limit := per(1, sec, 5)
	check := func() {
		t.Helper()
		over := 0
		for k, n := range want {
			got := g.table.HomeBuckets(uint16(k[0]), Key{Hi: k[1]})
			if got < n {
				t.Fatalf("home %v: %d, truth %d", k, got, n)
			}
			over += got - n
		}
		if over > 20 {
			t.Fatalf("%d too many", over)
		}
	}
	for n := range uint64(3000) {
		slot, tag := uint16(rng.IntN(4)), rng.Uint64N(500)
		key := spread(n)
		key.Hi = key.Hi&^0xffff_ffff | tag
		g.apply(0, Request{Home: slot, Takes: []Take{{Slot: slot, Key: key, Rule: Rule{Policy: 1, Version: 1, Limit: limit}, Cost: 1}}})
		want[[2]uint64{uint64(slot), tag}]++
	}
	check()
	for range 20 {
		g.entry(StampEntry(10*sec, 1<<16))
	}
	for k := range want {
		want[k] = 0
	}
	check()
}
