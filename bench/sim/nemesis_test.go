package sim

import (
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
)

// nemeses break one thing for a time and heal it; each returns when it is healed.
// Several run at once, also on one node.
var nemeses = map[string]func(*world, breakage){
	"kill":        func(w *world, b breakage) { w.down([]string{w.picked(b.pick)}, b.last, w.kill) },
	"kill-leader": func(w *world, b breakage) { w.down([]string{w.leads(b.pick)}, b.last, w.kill) },
	"kill-two":    func(w *world, b breakage) { w.down(w.several(b.pick, 2), b.last, w.kill) },
	"kill-all":    func(w *world, b breakage) { w.down(w.several(b.pick, 9), b.last, w.kill) },
	"stop":        func(w *world, b breakage) { w.down([]string{w.picked(b.pick)}, b.last, w.stop) },
	"freeze":      func(w *world, b breakage) { w.freeze(w.picked(b.pick), b.last) },
	"freeze-leader": func(w *world, b breakage) {
		w.freeze(w.leads(b.pick), b.last)
	},
	"isolate":        func(w *world, b breakage) { w.cuts(isolated(w.running(), w.picked(b.pick)), b.last) },
	"isolate-leader": func(w *world, b breakage) { w.cuts(isolated(w.running(), w.leads(b.pick)), b.last) },
	"one-way": func(w *world, b breakage) {
		x := w.picked(b.pick)
		w.cuts(slices.DeleteFunc(isolated(w.running(), x), func(p [2]string) bool { return (p[0] == x) != (b.pick>>32%2 == 0) }), b.last)
	},
	"pair": func(w *world, b breakage) {
		if s := w.several(b.pick, 2); len(s) == 2 {
			w.cuts(both(s[0], s[1]), b.last)
		}
	},
	"bridge":  func(w *world, b breakage) { w.cuts(bridged(w.shuffled(b.pick)), b.last) },
	"ring":    func(w *world, b breakage) { w.cuts(ringed(w.shuffled(b.pick)), b.last) },
	"shatter": (*world).shatter,
	"clients": func(w *world, b breakage) {
		x := w.leads(b.pick)
		var pairs [][2]string
		for _, c := range clientHosts {
			pairs = append(pairs, both(x, c)...)
		}
		w.cuts(pairs, b.last)
	},
	"loss":  (*world).lossy,
	"delay": (*world).slow,
	"reset": (*world).resets,
	"flap":  (*world).flaps,
	"slow-apply": func(w *world, b breakage) {
		w.costs(b, func(s *switches, d time.Duration) { s.apply.Store(int64(d)) })
	},
	"slow-store": func(w *world, b breakage) {
		w.costs(b, func(s *switches, d time.Duration) { s.store.Store(int64(d)) })
	},
	"hung-apply": func(w *world, b breakage) {
		s, c := w.switches[w.picked(b.pick)], make(chan struct{})
		if s.hung.CompareAndSwap(nil, &c) {
			time.Sleep(b.last)
			release(&s.hung)
		}
	},
	"hung-store": func(w *world, b breakage) {
		s, c := w.switches[w.picked(b.pick)], make(chan struct{})
		if s.hungStore.CompareAndSwap(nil, &c) {
			time.Sleep(b.last)
			release(&s.hungStore)
		}
	},
	"full-disk": func(w *world, b breakage) {
		s := w.switches[w.picked(b.pick)]
		s.full.Store(true)
		time.Sleep(b.last)
		s.full.Store(false)
	},
	"copies": func(w *world, b breakage) {
		w.doubling.extend(w.now() + b.last)
		time.Sleep(b.last)
	},
	"amnesia":      (*world).amnesia,
	"newborn":      (*world).newborn,
	"bounce":       (*world).bounce,
	"late-replies": (*world).lateReplies,
	"gap": func(w *world, b breakage) {
		b.last = 1200*time.Millisecond + b.last/4
		w.shatter(b)
	},
}

// play runs the rounds of the plan and returns when all is healed.
func (w *world) play() (faults []check.Fault) {
	var mu sync.Mutex // guards faults
	for _, r := range w.plan.rounds {
		time.Sleep(r.pause)
		var wg sync.WaitGroup
		for _, b := range r.faults {
			wg.Go(func() {
				time.Sleep(b.wait)
				w.trace.note("%s begins, for %v", b.kind, b.last.Round(time.Millisecond))
				from := w.now()
				nemeses[b.kind](w, b)
				w.trace.note("%s is over", b.kind)
				if w.now() == from {
					return // there was nothing to break, as a pair of one node
				}
				mu.Lock()
				defer mu.Unlock()
				faults = append(faults, check.Fault{Name: b.kind, Span: check.Span{From: from, To: w.now()}})
			})
		}
		wg.Wait()
	}
	return faults
}

// shuffled are the nodes that run, in an order that pick decides.
func (w *world) shuffled(pick uint64) []string {
	names := w.running()
	for i := len(names) - 1; i > 0; i-- {
		k := int(pick % uint64(i+1))
		pick = pick/uint64(i+1)*0x9e3779b97f4a7c15 + 1
		names[i], names[k] = names[k], names[i]
	}
	return names
}

// several are some of the nodes that run.
func (w *world) several(pick uint64, n int) []string {
	names := w.shuffled(pick)
	return names[:min(n, len(names))]
}

// picked is one of the nodes that run; without any it is a, and nothing will happen.
func (w *world) picked(pick uint64) string { return append(w.several(pick, 1), "a")[0] }

// leads is the node that leads most groups.
func (w *world) leads(pick uint64) string {
	best, most := w.picked(pick), uint32(0)
	for _, n := range w.status().GetNodes() {
		if n.Leads > most {
			best, most = n.Name, n.Leads
		}
	}
	return best
}

// down ends nodes in one way or another, and starts them again after a time.
func (w *world) down(names []string, last time.Duration, end func(string)) {
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() { end(name) })
	}
	wg.Wait()
	time.Sleep(last)
	for _, name := range names {
		w.launch(int(name[0]-'a'), false)
	}
}

func (w *world) freeze(name string, last time.Duration) {
	w.trace.note("node %s is frozen", name)
	w.net.Freeze(name)
	time.Sleep(last)
	w.net.Thaw(name)
}

// costs makes each write or apply of a node take a while.
func (w *world) costs(b breakage, set func(*switches, time.Duration)) {
	name := w.picked(b.pick)
	d := time.Duration(1+b.pick>>8%60) * time.Millisecond
	w.trace.note("node %s needs %v each time", name, d)
	set(w.switches[name], d)
	time.Sleep(b.last)
	set(w.switches[name], 0)
}
