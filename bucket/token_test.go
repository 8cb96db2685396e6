package bucket

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTakeEqualsOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := anyLimits().Draw(t, "limit")
		rule := Rule{Policy: 1, Version: 1, Limit: limit}
		g := newRig(t, 2)
		o := newOracle(limit, 0)
		now := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "takes") {
			stamp := min(later(now, steps(limit).Draw(t, "step")), 1<<61)
			now = max(now, stamp)
			cost := costs(limit).Draw(t, "cost")
			want := o.take(rule, now, min(cost, MaxAmount+1))
			got := g.take(stamp, limit, cost)
			if named := limit.Algorithm == Concurrency && got.Allowed && cost > 0; named != (got.PermitID != 0 && got.FencingToken != 0) {
				t.Fatalf("cost %d at %d: %+v", cost, now, got)
			}
			got.PermitID, got.FencingToken = 0, 0
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("cost %d at %d: (-oracle +table)\n%s", cost, now, diff)
			}
		}
	})
}

// TestLevelIsOneLine advances in one step and in many, and compares states.
func TestLevelIsOneLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := limits().Draw(t, "limit")
		s := limit.full(0)
		s.a -= uint32(rapid.Uint64Range(1, limit.Burst).Draw(t, "taken"))
		at, now := s, int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now = max(now, later(now, steps(limit).Draw(t, "step")))
			at = limit.advance(at, now)
			once := limit.advance(s, now)
			if full := uint64(once.a) == limit.Burst; full != limit.fresh(s, now) || full != limit.fresh(at, now) {
				t.Fatalf("full %v at %d, fresh %v and %v", full, now, limit.fresh(s, now), limit.fresh(at, now))
			} else if full {
				return
			}
			if at != once {
				t.Fatalf("at %d: step by step %+v, at once %+v", now, at, once)
			}
			if uint64(at.b) >= limit.Amount {
				t.Fatalf("rem %d of amount %d", at.b, limit.Amount)
			}
		}
	})
}

// drained draws a table with one bucket that takes and time have moved somewhere.
func drained(t *rapid.T) (g *rig, limit Limit, now int64) {
	limit = anyLimits().Draw(t, "limit")
	g = newRig(t, 2)
	for range rapid.IntRange(1, 10).Draw(t, "before") {
		now = max(now, min(later(now, steps(limit).Draw(t, "step")), 1<<61))
		g.take(now, limit, costs(limit).Draw(t, "cost"))
	}
	return g, limit, now
}

func TestDeniedTakeConsumesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, limit, now := drained(t)
		_, before := g.peek(now, takeOf(limit, 0))
		cells := cellBytes(g.table)
		a := g.take(now, limit, before[0].Remaining+rapid.Uint64Range(1, limit.Burst).Draw(t, "excess"))
		if a.Allowed {
			t.Fatalf("admitted %+v beyond the %d that remained", a, before[0].Remaining)
		}
		_, after := g.peek(now, takeOf(limit, 0))
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatal(diff)
		}
		if before[0].ResetAfter > 0 && cells != cellBytes(g.table) { // else the sweep may drop it
			t.Fatal("a denied take changed a cell")
		}
	})
}

// cellBytes is all bytes of all segments.
func cellBytes(t *Table) string {
	var all []byte
	for i := range t.slots {
		t.slots[i].segments(func(_ int, g *segment) { all = append(all, g.buf...) })
	}
	return string(all)
}

func TestRetryAtRetryAfterIsAdmitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, limit, now := drained(t)
		cost := rapid.Uint64Range(0, limit.Burst).Draw(t, "asked")
		_, a := g.peek(now, takeOf(limit, cost))
		if a[0].Allowed || a[0].RetryAfter == math.MaxInt64 || a[0].RetryAfter > math.MaxInt64-now {
			return
		}
		if r, _ := g.peek(now+a[0].RetryAfter-1, takeOf(limit, cost)); r.Code != Denied {
			t.Fatalf("admitted 1 ns before retry_after %d", a[0].RetryAfter)
		}
		if r := g.apply(now+a[0].RetryAfter, takeOf(limit, cost)); r.Items[0].Code != Admitted {
			t.Fatalf("denied at retry_after %d", a[0].RetryAfter)
		}
	})
}

func TestRemainingIsTheLargestCostAdmitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, limit, now := drained(t)
		_, look := g.peek(now, takeOf(limit, 0))
		n := look[0].Remaining
		if look[0].Allowed != (n > 0) {
			t.Fatalf("a look says %v with %d remaining", look[0].Allowed, n)
		}
		if r, _ := g.peek(now, takeOf(limit, n+1)); r.Code != Denied {
			t.Fatalf("cost %d admitted with %d remaining", n+1, n)
		}
		if n == 0 {
			return
		}
		if r := g.apply(now, takeOf(limit, n)); r.Items[0].Code != Admitted || r.Answers[0].Remaining != 0 {
			t.Fatalf("cost %d: %+v", n, r)
		}
	})
}

func TestBucketIsFreshAtResetAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, limit, now := drained(t)
		_, a := g.peek(now, takeOf(limit, 0))
		reset := a[0].ResetAfter
		if reset == 0 || reset == math.MaxInt64 || reset > math.MaxInt64-now {
			return
		}
		for _, c := range []struct{ at, left int64 }{{now + reset - 1, 1}, {now + reset, 0}} {
			if _, a := g.peek(c.at, takeOf(limit, 0)); a[0].ResetAfter != c.left {
				t.Fatalf("reset after %d ns, and %d ns before it %d", reset, c.left, a[0].ResetAfter)
			}
		}
		g.entry(StampEntry(now+reset-1, 1000))
		before := g.table.Buckets()
		g.entry(StampEntry(now+reset, 1000))
		if before != 1 || g.table.Buckets() != 0 {
			t.Fatalf("%d buckets before it was fresh, %d after", before, g.table.Buckets())
		}
	})
}

// TestChangedLimitEqualsOracle gives one bucket other limits as it goes, of other
// algorithms too; each take names the newest version.
func TestChangedLimitEqualsOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := anyLimits().Draw(t, "limit")
		g := newRig(t, 2)
		o := newOracle(limit, 0)
		now, version := int64(0), uint64(1)
		for range rapid.IntRange(1, 30).Draw(t, "takes") {
			now = max(now, min(later(now, steps(limit).Draw(t, "step")), 1<<60))
			cost := costs(limit).Draw(t, "cost")
			if rapid.IntRange(0, 2).Draw(t, "change") == 0 {
				old := limit
				if limit = anyLimits().Draw(t, "limit"); rapid.Bool().Draw(t, "same algorithm") {
					limit.Algorithm = old.Algorithm
				}
				if !limit.Algorithm.HasBurst() {
					limit.Burst = limit.Amount
				}
				version++
				o.advance(now)
				if g.table.Rules() > 0 {
					g.entry(CutoverEntry(now, []Rule{{Policy: 1, Version: version, Limit: limit}}))
					o.change(limit, max(o.thaw, after(now, old.fill())))
				} else {
					o = newOracle(limit, now)
				}
				now += rapid.SampledFrom([]int64{0, 1, ms, limit.Window / 2}).Draw(t, "wait")
			}
			rule := Rule{Policy: 1, Version: version, Limit: limit}
			want := o.take(rule, now, min(cost, MaxAmount+1))
			r := Request{Home: 1, Takes: []Take{{Slot: 1, Key: Key{1, 1}, Rule: rule, Cost: cost}}}
			got := g.apply(now, r).Answers[0]
			got.PermitID, got.FencingToken = 0, 0
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("at %d: (-oracle +table)\n%s", now, diff)
			}
		}
		checkBooks(t, g.table)
	})
}
