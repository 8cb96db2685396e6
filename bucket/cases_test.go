package bucket

import (
	"math"
	"testing"
)

func TestLimitValidate(t *testing.T) {
	ok := per(10, sec, 20)
	for _, c := range []struct {
		name string
		edit func(*Limit)
		ok   bool
	}{
		{"plain", func(*Limit) {}, true},
		{"nothing allowed", func(l *Limit) { l.Amount, l.Burst = 0, 0 }, true},
		{"largest", func(l *Limit) { l.Amount, l.Burst, l.Window = MaxAmount, MaxAmount, MaxWindow }, true},
		{"no algorithm", func(l *Limit) { l.Algorithm = 0 }, false},
		{"amount", func(l *Limit) { l.Amount = MaxAmount + 1 }, false},
		{"burst", func(l *Limit) { l.Burst = MaxAmount + 1 }, false},
		{"no burst", func(l *Limit) { l.Burst = 0 }, false},
		{"short window", func(l *Limit) { l.Window = MinWindow - 1 }, false},
		{"long window", func(l *Limit) { l.Window = MaxWindow + 1 }, false},
	} {
		l := ok
		c.edit(&l)
		if err := l.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestOlderStampMintsNothing: golang/go#56287, tikv/pd#10744.
func TestOlderStampMintsNothing(t *testing.T) {
	g, limit, admitted := newRig(t, 2), per(1, 100*sec, 5), 0
	for i := range 1000 {
		if g.take(10*sec-sec*int64(i%2), limit, 1).Allowed {
			admitted++
		}
	}
	if admitted != 5 || g.table.Time() != 10*sec {
		t.Fatalf("admitted %d, time %d", admitted, g.table.Time())
	}
}

// TestAmountZeroDeniesAll: golang/go#39984, #47221.
func TestAmountZeroDeniesAll(t *testing.T) {
	for _, burst := range []uint64{0, 1, 1000} {
		g := newRig(t, 2)
		for i := range int64(1000) {
			for _, cost := range []uint64{0, 1} {
				a := g.take(i*sec, per(0, sec, burst), cost)
				if a.Allowed || a.Reason != ReasonNothingAllowed || a.RetryAfter != -1 || a.Capacity != 0 || a.Remaining != 0 {
					t.Fatalf("burst %d: %+v", burst, a)
				}
			}
		}
	}
}

// TestFrequentPollingDoesNotStopTheRefill: mailgun/gubernator#77.
func TestFrequentPollingDoesNotStopTheRefill(t *testing.T) {
	g, limit := newRig(t, 2), per(10, 30*sec, 10)
	g.take(0, limit, 10)
	for s := range int64(31) {
		for k := range int64(10) {
			now := s*sec + k*100*ms
			if a := g.take(now, limit, 0); a.Remaining != min(10, uint64(s/3)) {
				t.Fatalf("at %d ms: %d remain", now/ms, a.Remaining)
			}
		}
	}
}

// TestSlowBucketUnderAFlood takes as often as it can.
func TestSlowBucketUnderAFlood(t *testing.T) {
	g, limit := newRig(t, 2), per(1, sec, 10)
	g.take(0, limit, 1)
	admitted := 0
	for i := range int64(1000) {
		if g.take(8900*ms+i, limit, 1).Allowed {
			admitted++
		}
	}
	if admitted != 10 {
		t.Fatalf("admitted %d", admitted)
	}
}

func TestFastBucketWithBurstOne(t *testing.T) {
	g, limit, admitted := newRig(t, 2), per(2000, sec, 1), 0
	for us := range int64(1_000_000 / 50) { // one second, a take every 50 µs
		if g.take(us*50_000, limit, 1).Allowed {
			admitted++
		}
	}
	if admitted != 2000 {
		t.Fatalf("admitted %d", admitted)
	}
}

func TestWorkedExamples(t *testing.T) {
	t.Run("1 per 1,000 ms, asked 200 ms after", func(t *testing.T) {
		g, limit := newRig(t, 2), per(1, 1000*ms, 1)
		g.take(0, limit, 1)
		if a := g.take(200*ms, limit, 1); a.Allowed || a.RetryAfter != 800*ms || a.ResetAfter != 800*ms {
			t.Fatalf("%+v", a)
		}
	})
	t.Run("cost above capacity", func(t *testing.T) {
		g, limit := newRig(t, 2), per(10, 60*sec, 10)
		a := g.take(0, limit, 11)
		if a.Allowed || a.Reason != ReasonCostExceedsCapacity || a.RetryAfter != -1 || a.Remaining != 10 || g.table.Buckets() != 0 {
			t.Fatalf("%+v", a)
		}
		if a := g.take(0, limit, 10); !a.Allowed || a.Remaining != 0 || a.ResetAfter != 60*sec {
			t.Fatalf("%+v", a)
		}
	})
	t.Run("20 per s, burst 40 spent, 37 asked at 10 ms", func(t *testing.T) {
		g, limit := newRig(t, 2), per(20, sec, 40)
		g.take(0, limit, 40)
		if a := g.take(10*ms, limit, 37); a.Allowed || a.RetryAfter != 1840*ms || a.Reason != ReasonRateLimited {
			t.Fatalf("%+v", a)
		}
	})
	t.Run("a look creates nothing", func(t *testing.T) {
		g := newRig(t, 2)
		if a := g.take(0, per(1, sec, 1), 0); !a.Allowed || a.Remaining != 1 || g.table.Buckets() != 0 {
			t.Fatalf("%+v, %d buckets", a, g.table.Buckets())
		}
	})
	t.Run("a thousand million years", func(t *testing.T) {
		g, limit := newRig(t, 2), per(1, MaxWindow, MaxAmount)
		g.take(0, limit, MaxAmount)
		if a := g.take(5, limit, MaxAmount); a.RetryAfter != math.MaxInt64 || a.ResetAfter != math.MaxInt64 {
			t.Fatalf("%+v", a)
		}
	})
	t.Run("the end of time", func(t *testing.T) {
		g, limit := newRig(t, 2), per(3, 7*sec, 5)
		g.take(math.MinInt64, limit, 5)
		if a := g.take(math.MaxInt64, limit, 5); !a.Allowed {
			t.Fatalf("%+v", a)
		}
		if a := g.take(0, limit, 1); a.Allowed || a.RetryAfter != (7*sec+2)/3 {
			t.Fatalf("%+v", a)
		}
	})
}

// TestChangedLimit: tokens carry over as min(level, new burst).
func TestChangedLimit(t *testing.T) {
	slow, other := per(1, 100*sec, 10), per(5, sec, 4)
	for _, c := range []struct {
		name    string
		spent   uint64
		at      int64
		from    Limit
		to      Limit
		remains uint64
	}{
		{"raised, tokens stay", 9, 0, slow, per(1, 100*sec, 20), 1},
		{"elapsed time at the old rate", 10, 250 * sec, slow, other, 2},
		{"lowered", 2, 0, slow, other, 4},
		{"a fresh bucket is fresh under the new limit", 1, 100 * sec, slow, per(1, 100*sec, 20), 20},
		{"nothing allowed, then as before", 3, 0, slow, slow, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, 2)
			g.take(0, c.from, c.spent)
			r := takeOf(c.to, 0)
			r.Takes[0].Rule.Version = 2
			if a := g.apply(c.at, r).Answers[0]; a.Remaining != c.remains || a.Rule.Version != 2 {
				t.Fatalf("%+v", a)
			}
		})
	}
}
