package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

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
	empty   map[string]bool // nodes that lost their memory and have perhaps not got it back
	counts  map[string]int  // of what was done, by name
}

// NewWorld is about a running cluster. r decides all that is left to chance.
func NewWorld(f *fleet.Fleet, has Needs, r *rand.Rand) *World {
	return &World{
		Fleet: f, has: has, nodes: len(f.Nodes), rand: r,
		claimed: map[string]bool{}, empty: map[string]bool{}, counts: map[string]int{},
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

// mayEmpty says that a node is about to lose its memory; false: another one has, and
// nobody has seen the cluster whole since, so that this one may hold the last copy
// but one of something.
func (w *World) mayEmpty(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other := range w.empty {
		if other != name {
			return false
		}
	}
	w.empty[name] = true
	return true
}

// Whole waits until every node calls the cluster healthy.
func (w *World) Whole(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if _, err := w.Fleet.WaitHealthy(ctx); err != nil {
		return fmt.Errorf("the cluster is not whole %v after the fault: %w", within, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.empty)
	return nil
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
