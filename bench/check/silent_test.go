package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// limitsOf is one limit of each algorithm, small enough to be reached.
func (w *world) anyLimit() Limit {
	windows := []time.Duration{50 * time.Millisecond, 333333333, time.Second, 8760 * time.Hour}
	l := Limit{
		Algorithm: bucket.Algorithm(1 + w.rng.IntN(5)), Amount: 1 + w.rng.Uint64N(40),
		Window: int64(windows[w.rng.IntN(len(windows))]),
	}
	if l.Algorithm.HasBurst() {
		l.Burst = 1 + w.rng.Uint64N(60)
	}
	if w.chance(0.03) {
		l.Amount = 0
	}
	return l
}

// anyRun is a run with everything that may happen and is no fault.
func anyRun(tb testing.TB, seed uint64, n int) *world {
	w := newWorld(tb, seed)
	var names []string
	for i := range 3 {
		names = append(names, fmt.Sprint("b", i))
		w.limit(names[i], w.anyLimit())
	}
	w.peeking = w.chance(0.5)
	if w.chance(0.6) {
		w.lossy = 0.1 * w.rng.Float64()
	}
	if w.chance(0.5) {
		w.copies = 0.2
	}
	keyed, several, refunds := w.chance(0.7), w.chance(0.3), w.chance(0.2)
	ids := 0
	draw := func() ask {
		a := ask{cost: 1 + w.rng.Uint64N(3), buckets: names[:1]}
		if b := w.rng.IntN(3); !several {
			a.buckets = names[b : b+1]
		} else if w.chance(0.5) {
			a.buckets = names[:2]
		}
		switch {
		case w.chance(0.05):
			a.kind, a.cost = Look, 0
		case refunds && ids > 0 && w.chance(0.05):
			a.kind, a.cost, a.id, a.buckets = Refund, 0, fmt.Sprint("r", 1+w.rng.IntN(ids)), []string{names[0]}
		case refunds:
			ids++
			a.id, a.buckets = fmt.Sprint("r", ids), names[:1]
		case keyed:
			ids++
			a.id = fmt.Sprint("k", ids)
		}
		return a
	}
	for part := range 3 {
		w.run(n/3, draw)
		switch {
		case part == 2:
		case w.chance(0.3):
			w.failover(w.between(0, 100*time.Millisecond))
		case w.chance(0.3):
			w.move()
		case w.chance(0.3):
			w.limit(names[w.rng.IntN(3)], w.anyLimit())
		}
	}
	return w
}

// TestNoFalseAlarms: thousands of right histories, with lost and late requests,
// copies, retries, several limits, refunds, moves, new leaders and changed limits.
func TestNoFalseAlarms(t *testing.T) {
	seeds := uint64(3000)
	if testing.Short() {
		seeds = 300
	}
	checked, alarms := map[string]int{}, 0
	for seed := range seeds {
		w := anyRun(t, seed, 120)
		for _, v := range All(&w.setup, w.ops) {
			checked[v.Checker] += v.Checked
			for _, f := range v.Findings {
				if t.Errorf("seed %d: %s", seed, f.Explain()); alarms == 10 {
					t.FailNow()
				}
				alarms++
			}
		}
	}
	t.Log(checked)
	for _, name := range []string{"exact", "final", "codes", "once", "whole", "hints", "window", "starved", "versions", "terms", "order", "time", "kept", "replay", "linear"} {
		if checked[name] < int(seeds)/5 {
			t.Errorf("checker %s looked at %d answers of %d histories only", name, checked[name], seeds)
		}
	}
}

// TestPermitsAreRight: the same for concurrency limits.
func TestPermitsAreRight(t *testing.T) {
	checked := 0
	for seed := range uint64(500) {
		w := permitRun(t, seed)
		for _, v := range All(&w.setup, w.ops) {
			for _, f := range v.Findings {
				t.Fatalf("seed %d: %s", seed, f.Explain())
			}
			if v.Checker == "permits" {
				checked += v.Checked
			}
		}
	}
	if checked < 5000 {
		t.Errorf("only %d permits", checked)
	}
}

func permitRun(tb testing.TB, seed uint64) *world {
	w := newWorld(tb, seed)
	w.limit("p", Limit{Algorithm: bucket.Concurrency, Amount: 2 + w.rng.Uint64N(6), Window: int64(60 * time.Millisecond)})
	w.lossy, w.copies = 0.05, 0.1
	ids := 0
	w.run(150, func() ask {
		ids++
		a := ask{kind: Acquire, cost: 1 + w.rng.Uint64N(2), buckets: []string{"p"}, id: fmt.Sprint("k", ids)}
		if len(w.held) > 0 && w.chance(0.5) {
			k := w.rng.IntN(len(w.held))
			p := w.held[k]
			a.kind, a.id, a.permit, a.cost = Renew, "", &p, 0
			if w.chance(0.5) {
				a.kind, w.held = Release, append(w.held[:k:k], w.held[k+1:]...)
			}
		}
		return a
	})
	return w
}
