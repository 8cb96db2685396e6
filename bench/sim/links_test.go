package sim

import (
	"time"
)

// paths calls f for both directions of every pair of nodes, or of those of one node,
// whether they run or not.
func (w *world) paths(of string, f func(from, to string)) {
	names := w.known()
	for _, a := range names {
		for _, b := range names {
			if a != b && (of == "" || a == of || b == of) {
				f(a, b)
			}
		}
	}
}

// scope is one node, or all of them.
func (w *world) scope(b breakage) string {
	if b.pick>>40%2 == 0 {
		return ""
	}
	return w.picked(b.pick)
}

// lossy loses packets, and holds up streams as lost segments would.
func (w *world) lossy(b breakage) {
	of, share := w.scope(b), 0.02+float64(b.pick>>8%30)/100
	w.trace.note("loss %.2f on the links of %q (all if empty)", share, of)
	w.paths(of, func(x, y string) { w.net.Drop(x, y, share); w.net.Resend(x, y, share/2, 200*time.Millisecond) })
	time.Sleep(b.last)
	w.paths("", func(x, y string) { w.net.Drop(x, y, 0); w.net.Resend(x, y, 0, 0) })
}

// slow adds delay and jitter, and doubles packets.
func (w *world) slow(b breakage) {
	of, d := w.scope(b), time.Duration(1+b.pick>>8%100)*time.Millisecond
	w.trace.note("delay %v on the links of %q (all if empty)", d, of)
	w.paths(of, func(x, y string) {
		w.net.Delay(x, y, d)
		w.net.Jitter(x, y, d)
		w.net.Double(x, y, 0.2)
	})
	time.Sleep(b.last)
	w.paths("", func(x, y string) {
		w.net.Delay(x, y, w.plan.delay)
		w.net.Jitter(x, y, 0)
		w.net.Double(x, y, 0)
	})
}

// resets breaks all connections of a node again and again.
func (w *world) resets(b breakage) {
	x, gap := w.picked(b.pick), time.Duration(50+b.pick>>8%500)*time.Millisecond
	for end := time.Now().Add(b.last); time.Now().Before(end); time.Sleep(gap) {
		for _, o := range append(w.running(), clientHosts...) {
			if o != x {
				w.net.Reset(x, o)
			}
		}
	}
}

// flaps takes the links of a node away and gives them back, again and again.
func (w *world) flaps(b breakage) {
	x, gap := w.picked(b.pick), time.Duration(100+b.pick>>8%900)*time.Millisecond
	for end := time.Now().Add(b.last); time.Now().Before(end); time.Sleep(gap) {
		w.cuts(isolated(w.running(), x), gap)
	}
}
