package check

import (
	"fmt"
	"testing"
	"time"
)

// bend lets slot time go on from where it is at another rate.
func (w *world) bend(rate float64) {
	w.skew += time.Duration((w.rate - rate) * float64(w.now))
	w.rate = rate
}

// bentRun is a right history of a cluster whose clocks are set: slow, fast, standing still
// and leaping, with new leaders in between.
func bentRun(tb testing.TB, seed uint64) *world {
	w := newWorld(tb, seed)
	for i, l := range []Limit{tokenLimit(50, 100), tokenLimit(50, 20), frozenLimit(60)} {
		w.limit(fmt.Sprint("b", i), l)
	}
	w.setup.Bent, w.setup.Drift, w.setup.LostTime = true, 0.5, 6*time.Second
	w.peeking = w.chance(0.5)
	w.run(40, w.drawUnit)
	for range 4 {
		from := w.now
		switch w.rng.IntN(5) {
		case 0:
			w.bend(0)
		case 1:
			w.skew += 10 * time.Second
			for name := range w.limits {
				w.setup.Given = append(w.setup.Given, Given{name, 500, Span{w.now - 3*time.Millisecond, w.now + time.Second}})
			}
		default:
			w.bend([]float64{0.5, 1, 1.5}[w.rng.IntN(3)])
		}
		w.run(60, w.drawUnit)
		w.setup.Faults = append(w.setup.Faults, Fault{"bent", Span{from, w.now}})
		if w.bend(1); w.chance(0.5) {
			w.failover(w.between(0, 100*time.Millisecond))
		}
		w.run(20, w.drawUnit)
	}
	return w
}

// TestBentClocksAreNoFault, though slot time runs as it likes; every checker goes on looking.
func TestBentClocksAreNoFault(t *testing.T) {
	checked, seeds := map[string]int{}, uint64(100)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		w := bentRun(t, seed)
		for _, v := range All(&w.setup, w.ops) {
			checked[v.Checker] += v.Checked
			for _, f := range v.Findings {
				t.Fatalf("seed %d: %s", seed, f.Explain())
			}
		}
	}
	for _, name := range []string{"exact", "window", "hints", "time", "kept", "replay", "linear"} {
		if checked[name] < int(seeds)*10 {
			t.Errorf("checker %s looked at %d answers only", name, checked[name])
		}
	}
}

// TestFaultsBesideBentClocksAreFound: what does not depend on how fast time runs.
func TestFaultsBesideBentClocksAreFound(t *testing.T) {
	for _, c := range []struct {
		checker, want string
		spoil         func(w *world)
	}{
		{"time", "stepped back", func(w *world) { w.pick(50, admitted).Witness.SlotTime -= 30 * time.Second }},
		{"hints", "are left", func(w *world) { o := w.pick(20, admitted); o.Remaining = o.Capacity + 1 }},
		{"replay", "", func(w *world) { w.pick(20, admitted).Remaining++ }},
	} {
		w := bentRun(t, 5)
		c.spoil(w)
		expect(t, w, c.checker, c.want)
	}
}
