package sim

import (
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
)

// cuts cuts pairs of hosts, each in one direction. What several faults cut at once is
// healed by the last of them.
func (w *world) cuts(pairs [][2]string, last time.Duration) {
	w.trace.note("cut: %v", pairs)
	w.cut(pairs, +1)
	time.Sleep(last)
	w.cut(pairs, -1)
}

func (w *world) cut(pairs [][2]string, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range pairs {
		w.cutBy[p] += by
		if w.cutBy[p] > 0 {
			w.net.Cut(p[0], p[1])
		} else {
			w.net.Heal(p[0], p[1])
		}
	}
}

func both(a, b string) [][2]string { return [][2]string{{a, b}, {b, a}} }

// isolated cuts one node off from the others, both ways.
func isolated(names []string, x string) (pairs [][2]string) {
	for _, o := range names {
		if o != x {
			pairs = append(pairs, both(o, x)...)
		}
	}
	return pairs
}

// bridged leaves two halves that only the first node still reaches.
func bridged(names []string) (pairs [][2]string) {
	for i := 1; i < len(names); i++ {
		for k := i + 1; k < len(names); k++ {
			if i%2 != k%2 {
				pairs = append(pairs, both(names[i], names[k])...)
			}
		}
	}
	return pairs
}

// ringed leaves each node only its neighbours: every node sees a majority, each
// another one. Three nodes lose one pair.
func ringed(names []string) (pairs [][2]string) {
	n := len(names)
	for i := range n {
		for k := i + 1; k < n; k++ {
			if d := min(k-i, n-k+i); d > 1 || n == 3 && i == 0 && k == 1 {
				pairs = append(pairs, both(names[i], names[k])...)
			}
		}
	}
	return pairs
}

// shatter cuts every node off from every other: no group has a majority, and after
// the leases nobody answers.
func (w *world) shatter(b breakage) {
	names := w.known() // also those that are about to start
	var pairs [][2]string
	for i, a := range names {
		for _, o := range names[i+1:] {
			pairs = append(pairs, both(a, o)...)
		}
	}
	from := w.now() + 1500*time.Millisecond
	w.cuts(pairs, b.last)
	if to := w.now(); !w.plan.members() && to > from { // groups of one replica need nobody
		w.mu.Lock()
		w.silent = append(w.silent, check.Span{From: from, To: to})
		w.mu.Unlock()
	}
}
