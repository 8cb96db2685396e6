package sim

import (
	"math/rand/v2"
	"sync"
	"time"
)

// amnesia: one replica misses what the others commit, both of those die, and one of
// them comes back without memory: together they are two of three, and know nothing
// of it. The third comes back later.
func (w *world) amnesia(b breakage) {
	names := w.several(b.pick, 3)
	if len(names) < 3 {
		return
	}
	pairs := isolated(w.running(), names[0])
	w.cut(pairs, +1)
	time.Sleep(2*time.Second + b.last)
	var wg sync.WaitGroup
	for _, name := range names[1:] {
		wg.Go(func() { w.kill(name) })
	}
	wg.Wait()
	w.launch(int(names[1][0]-'a'), false)
	w.cut(pairs, -1)
	time.Sleep(8 * time.Second)
	w.launch(int(names[2][0]-'a'), false)
}

// newborn: two nodes do not reach each other, and agree with the third, which dies
// when one of them has missed a lot, and is back at once. Its fresh replicas have
// votes nowhere: nobody may be elected by them.
func (w *world) newborn(b breakage) {
	names := w.several(b.pick, 3)
	if len(names) < 3 {
		return
	}
	pair := both(names[0], names[1])
	w.cut(pair, +1)
	time.Sleep(2*time.Second + b.last)
	w.down(names[2:], 600*time.Millisecond, w.kill)
	time.Sleep(6 * time.Second)
	w.cut(pair, -1)
}

// lateReplies: what others say to a leader takes a while, and then they hear of it no
// more: what is on its way keeps it in office while they elect another one. One
// client reaches the old leader alone, another one the others.
func (w *world) lateReplies(b breakage) {
	x := w.leads(b.pick)
	sides := both(x, clientHosts[0])
	var from [][2]string
	for _, o := range w.running() {
		if o != x {
			from = append(from, [2]string{x, o})
			sides = append(sides, both(o, clientHosts[2])...)
			w.net.Delay(o, x, 150*time.Millisecond)
		}
	}
	w.cut(sides, +1)
	time.Sleep(2 * time.Second)
	w.cuts(from, 500*time.Millisecond+b.last)
	for _, p := range from {
		w.net.Delay(p[1], p[0], w.plan.delay)
	}
	w.cut(sides, -1)
	time.Sleep(2 * time.Second)
}

// bounce: a node dies again and again, a moment after it has started.
func (w *world) bounce(b breakage) {
	name := w.picked(b.pick)
	r := rand.New(rand.NewPCG(b.pick, 1))
	for range 6 {
		w.down([]string{name}, 100*time.Millisecond, w.kill)
		time.Sleep(time.Duration(r.Int64N(int64(1500 * time.Millisecond))))
	}
	w.down([]string{name}, 3*time.Second, w.kill)
}
