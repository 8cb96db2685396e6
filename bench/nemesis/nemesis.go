// Package nemesis breaks clusters of real processes on purpose. Each kind of fault
// is a small file: it starts, it stops, and it knows when what it did is healed.
//
//	w := nemesis.NewWorld(fleet, rand.New(…))
//	for _, k := range nemesis.Usable(w) { … }
//	n := kind.New(w)
//	what, err := n.Start(ctx)   // "paused b for 3 s, again and again"
//	…
//	err = n.Stop(ctx)           // and wait until it is healed
//
// Several may be at work at once: the World sees to it that they choose different
// nodes, and that no two of them together destroy what a cluster in memory may only
// lose on purpose.
package nemesis

import (
	"context"
	"errors"
	"time"
)

// Nemesis is one fault. Start, Stop and Healed are called once each, in this order,
// by one goroutine.
type Nemesis interface {
	// Start begins the fault and says what it does, for a person. ErrNotNow: it
	// cannot, as the cluster is.
	Start(ctx context.Context) (what string, err error)
	// Stop ends the fault and puts everything back. It works though ctx may be
	// over soon, and also after a Start that failed.
	Stop(ctx context.Context) error
	// Healed waits until nothing is left of the fault.
	Healed(ctx context.Context) error
}

// ErrNotNow is returned by Start when there is no node to choose, or the fault
// could destroy more than it says.
var ErrNotNow = errors.New("not as the cluster is now")

// Needs says what a kind of fault needs beside processes.
type Needs uint8

// What a fleet may have.
const (
	Cuts       Needs = 1 << iota // links can be cut: relays or namespaces
	Namespaces                   // and no relays
	Relays
	Clock     // a build with a test clock
	Disk      // small disks
	Processor // control groups
	TimeSpace // time namespaces
)

// Kind is a kind of fault.
type Kind struct {
	Name  string
	Does  string
	Needs Needs
	Loses bool // a majority of groups forget: promises about budgets shrink to "never too many"
	Bends bool // a clock is wrong: promises about time hold with the error that was made
	Nodes int  // in the cluster, at least; 0: three
	Stays bool // may stay for good: every group must serve all the same

	Instead string // the kind that comes nearest where this one does not work; empty: none
	New     func(w *World) Nemesis
}

// HealIn is how long a cluster may take to be whole again after a fault.
const HealIn = 60 * time.Second

// whole is the part that most faults share: they are healed when the cluster is.
type whole struct{ w *World }

func (h whole) Healed(ctx context.Context) error { return h.w.Whole(ctx, HealIn) }
