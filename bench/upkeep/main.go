// Command upkeep measures what a cluster of three rlnode processes costs beside
// deciding: a set of very many policies, a thousand changes under load, slots that
// move under load, and the memory that a million buckets leave behind.
//
//	go run ./bench/upkeep -rlnode bin/rlnode [flags] policies|changes|moves|keys…
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// options are the command line.
type options struct {
	binary   string
	policies int
	size     int // bytes of each policy
	changes  int
	callers  int
	keys     int
	idle     time.Duration
	large    int     // keys in one slot
	rate     float64 // decisions a second while slots move; 0: half of what the cluster can
	keep     bool    // data and logs
	names    []string
}

// A measurement has a cluster of its own.
type measurement struct {
	name  string
	what  string
	start string // policies to start with
	run   func(ctx context.Context, b *bench) error
}

var measurements = []measurement{
	{"policies", "one put of very many policies: put, diff, load, memory", "home: [tenant]\npolicies: []\n", measurePolicies},
	{"changes", "policies changed under load: no decision mixes two versions, none is lost, when each node has it", changing(0), measureChanges},
	{"moves", "a node joins and one is drained under load, with very many buckets, also in one slot: how long callers wait", lasting, measureMoves},
	{"keys", "very many one-shot keys, then nothing: memory before and after", oneShot, measureKeys},
}

// bench is a cluster being measured.
type bench struct {
	options
	fleet *fleet.Fleet
	dir   string
	out   io.Writer
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.out, format+"\n", args...)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "upkeep:", err)
		os.Exit(2)
	}
	for _, name := range o.names {
		for _, m := range measurements {
			if name != m.name {
				continue
			}
			if err := m.measure(ctx, o); err != nil {
				fmt.Fprintf(os.Stderr, "upkeep: %s: %v\n", name, err)
				stop()
				os.Exit(1)
			}
		}
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("upkeep", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.binary, "rlnode", "bin/rlnode", "the `binary` to run")
	fs.IntVar(&o.policies, "policies", 100_000, "policies to put")
	fs.IntVar(&o.size, "size", 200, "`bytes` of each of them, about")
	fs.IntVar(&o.changes, "changes", 1000, "changes of policies")
	fs.IntVar(&o.callers, "callers", 16, "callers at once beside the changes")
	fs.IntVar(&o.keys, "keys", 1_000_000, "one-shot keys, or tenants beside moves")
	fs.IntVar(&o.large, "large", 1_000_000, "keys in one slot that moves")
	fs.Float64Var(&o.rate, "rate", 0, "decisions a second while slots move; 0: half of what the cluster can")
	fs.DurationVar(&o.idle, "idle", 90*time.Second, "how long to wait after the keys")
	fs.BoolVar(&o.keep, "keep", false, "keep data and logs")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.names = fs.Args()
	var known []string
	for _, m := range measurements {
		known = append(known, m.name)
	}
	for _, name := range o.names {
		if !strings.Contains(" "+strings.Join(known, " ")+" ", " "+name+" ") {
			return o, fmt.Errorf("no measurement %q, there are %s", name, strings.Join(known, ", "))
		}
	}
	if len(o.names) == 0 {
		return o, fmt.Errorf("name a measurement: %s", strings.Join(known, ", "))
	}
	return o, nil
}

// measure runs a measurement on three fresh nodes.
func (m measurement) measure(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "rl-upkeep-")
	if err != nil {
		return err
	}
	if o.keep {
		fmt.Fprintln(os.Stderr, "upkeep: data and logs are in", dir)
	} else {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	file := filepath.Join(dir, "start.yaml")
	if err := os.WriteFile(file, []byte(m.start), 0o644); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	f, err := fleet.Start(ready, fleet.Config{
		Binary: o.binary, Dir: dir, Policies: file, Flags: []string{"--enable-pprof"},
	})
	if err != nil {
		return err
	}
	defer f.Close()
	b := &bench{options: o, fleet: f, dir: dir, out: os.Stdout}
	b.say("%s: %s", m.name, m.what)
	return m.run(ctx, b)
}
