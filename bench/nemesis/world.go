package nemesis

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

// World is the cluster that is broken, and who breaks what. It may be used by
// several nemeses at once.
type World struct {
	Fleet *fleet.Fleet
	has   Needs
	nodes int // at the beginning

	mu      sync.Mutex      // guards what follows
	rand    *rand.Rand      //
	claimed map[string]bool // nodes that a nemesis works on
	counts  map[string]int  // of what was done, by name
	empty   map[string]int  // nodes that lost their memory and have perhaps not got it back: the process that had it
	memory  *check.Memory   // the same, for a checker
	now     func() time.Duration
}

// NewWorld is about a running cluster. r decides all that is left to chance, now is the
// time of the history that is judged.
func NewWorld(f *fleet.Fleet, has Needs, r *rand.Rand, now func() time.Duration) *World {
	return &World{
		Fleet: f, has: has, nodes: len(f.Nodes), rand: r, now: now,
		claimed: map[string]bool{}, counts: map[string]int{}, empty: map[string]int{}, memory: &check.Memory{},
	}
}

// CanBear says whether a kind of fault works on this cluster.
func (w *World) CanBear(k Kind) bool { return k.Needs&^w.has == 0 && w.nodes >= max(k.Nodes, 3) }

// Counts are how often which thing was done.
func (w *World) Counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := make(map[string]int, len(w.counts))
	for k, n := range w.counts {
		counts[k] = n
	}
	return counts
}

func (w *World) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// between draws a duration, intn a number below n.
func (w *World) between(from, to time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return from + time.Duration(w.rand.Int64N(int64(to-from)+1))
}

func (w *World) intn(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}

// claim takes so many running nodes for a nemesis: the preferred one first, if
// it is free, the rest at random. release gives them back.
func (w *World) claim(n int, preferred string) ([]*fleet.Node, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var free []*fleet.Node
	for _, node := range w.Fleet.List() {
		if !w.claimed[node.Name] && node.PID() != 0 {
			free = append(free, node)
		}
	}
	if len(free) < n {
		return nil, ErrNotNow
	}
	w.rand.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	slices.SortStableFunc(free, func(a, b *fleet.Node) int {
		switch preferred {
		case a.Name:
			return -1
		case b.Name:
			return 1
		}
		return 0
	})
	for _, node := range free[:n] {
		w.claimed[node.Name] = true
	}
	return free[:n], nil
}

func (w *World) release(nodes ...*fleet.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range nodes {
		delete(w.claimed, n.Name)
	}
}

// leading names the node that leads most groups, "" if nobody says.
func (w *World) leading(ctx context.Context) string {
	st, err := w.Fleet.Status(ctx)
	if err != nil {
		return ""
	}
	most, count := "", map[string]int{}
	for _, g := range st.GetGroups() {
		if count[g.GetLeader()]++; count[g.GetLeader()] > count[most] {
			most = g.GetLeader()
		}
	}
	return most
}

// wait returns after d, or false when ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (w *World) perm(n int) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.Perm(n)
}
