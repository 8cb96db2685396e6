package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// System is a service that runs, in processes of its own.
type System interface {
	// Nodes are its processes.
	Nodes() []*fleet.Node
	// Addrs is where its clients connect.
	Addrs() []string
	// Held is what each process says that its buckets take, in bytes, garbage
	// collected; nil if it cannot tell.
	Held(ctx context.Context) ([]float64, error)
	// Close ends all of it.
	Close()
}

// Setup is what a system is started with.
type Setup struct {
	Binary string // rlnode
	Dir    string // of data and logs
	Keys   int    // that it must be able to hold
	Procs  int    // GOMAXPROCS of each Go process that serves; 0: all processors
}

// startLimit bounds how long a system may take to start.
const startLimit = time.Minute

// start starts a system and returns when it serves.
func start(ctx context.Context, name string, s Setup) (System, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var err error
	if s.Dir, err = os.MkdirTemp(s.Dir, name+"-"); err != nil {
		return nil, err
	}
	switch name {
	case ours3:
		return startOurs(ctx, s, 0)
	case ours1:
		return startOurs(ctx, s, 1)
	case redis:
		return startRedis(ctx, s)
	case guber:
		return startGubernator(ctx, s)
	}
	return nil, fmt.Errorf("no system %q", name)
}

// limited is what to put before the command line of a Go process.
func (s *Setup) limited() []string {
	if s.Procs == 0 {
		return nil
	}
	return []string{"env", "GOMAXPROCS=" + strconv.Itoa(s.Procs)} // it execs, and is gone
}

// pids are the process ids of a system.
func pids(s System) []int {
	var all []int
	for _, n := range s.Nodes() {
		all = append(all, n.PID())
	}
	return all
}

// processes are a few that make a system.
type processes []*fleet.Node

// run starts one more, in a directory of its own.
func (p *processes) run(dir, name string, limited, args []string) error {
	n, err := fleet.Process(name, filepath.Join(dir, name), args...)
	if err != nil {
		return err
	}
	n.Around(limited...)
	if err := n.Start(); err != nil {
		return err
	}
	*p = append(*p, n)
	return nil
}

func (p processes) Nodes() []*fleet.Node { return p }

func (p processes) Close() {
	for _, n := range p {
		_ = n.Kill() // it may have ended by itself
	}
}

// until asks again and again until it succeeds or ctx ends.
func until(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
