package nemesis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

// mayEmpty says that a node is about to lose its memory; false: another one has, and
// nobody has seen the cluster whole since, so that this one may hold the last copy
// but one of something.
func (w *World) mayEmpty(n *fleet.Node) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other := range w.empty {
		if other != n.Name {
			return false
		}
	}
	w.lose(n)
	return true
}

// wipe says that nodes are about to lose their memory whatever others did.
func (w *World) wipe(nodes []*fleet.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range nodes {
		w.lose(n)
	}
}

// lose is the part that both share. w.mu is held.
func (w *World) lose(n *fleet.Node) {
	w.empty[n.Name] = n.PID()
	w.memory.Lose(n.Name, w.now())
}

// spared says that a node did not lose its memory after all.
func (w *World) spared(n *fleet.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pid, ok := w.empty[n.Name]; ok && pid == n.PID() {
		w.empty[n.Name] = 0
	}
}

// renewed are those emptied nodes that run as another process by now, or are no part of the
// cluster any more: the next look at the cluster tells whether they have their memory back.
// What is not dead yet looks well.
func (w *World) renewed() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, pid := range w.empty {
		if n := w.Fleet.Node(name); n == nil || n.PID() != 0 && n.PID() != pid {
			names = append(names, name)
		}
	}
	return names
}

// regained says that the cluster was seen whole, from a time on, with these nodes.
func (w *World) regained(names []string, from time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		delete(w.empty, name)
	}
	w.memory.Regained(from, w.now(), names)
}

// Whole waits until every node calls the cluster healthy.
func (w *World) Whole(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		names, from := w.renewed(), w.now()
		if _, err := w.Fleet.WaitHealthy(ctx); err != nil {
			return fmt.Errorf("the cluster is not whole %v after the fault: %w", within, err)
		}
		w.regained(names, from)
		if len(w.renewed()) == 0 {
			return nil
		}
	}
}

// See notes which nodes vote in a group.
func (w *World) See(group uint32, voters []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.memory.Voters(group, slices.Clone(voters), w.now())
}

// Memory is what became of the memory of all nodes. Nobody uses w any more.
func (w *World) Memory() *check.Memory { return w.memory }
