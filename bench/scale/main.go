// Command scale measures how the cost of a decision, the memory of a bucket and the
// tails of latency hold as a cluster of rlnode processes grows, fills and is asked for
// more than it can give. Each measurement starts its own nodes on loopback.
//
//	go run ./bench/scale -rlnode bin/rlnode [flags] nodes|keys|overload|open|neighbour|calm…
//
// It exits with 1 when a figure misses the project's aim. docs/benchmarks.md tells how it
// measures and what came out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A measurement fills in a result; on an error what it has is shown as well.
type measurement struct {
	name    string
	what    string
	measure func(ctx context.Context, b *bench, r *Result) error
	lasts   time.Duration // beyond -limit, if nothing else is said
}

var measurements = []measurement{
	{"nodes", "cost of a decision in clusters of several sizes, at the same load on each group", measureNodes, 0},
	{"keys", "cost of a decision and memory of a bucket as buckets become many; a node that comes back to them", measureKeys, 0},
	{"overload", "three times as much as the cluster can decide: goodput, how fast it refuses, memory, recovery", measureOverload, 0},
	{"open", "latency at an even rate with every tenth request denied, and of a single caller", measureOpen, 0},
	{"neighbour", "latency of tenants beside one that floods, and beside a program that burns as much CPU", measureNeighbour, 0},
	{"calm", "changes of leader at full load", measureCalm, 10 * time.Minute},
}

// options are the command line.
type options struct {
	binary   string
	output   string
	profiles string // directory for CPU profiles of the nodes; empty: none
	procs    int    // GOMAXPROCS of each node; 0: Go's own choice
	groups   int    // 0: one for each node
	duration time.Duration
	warm     time.Duration
	limit    time.Duration // of one measurement

	nodes    []int
	perGroup float64 // decisions a second
	keys     []int
	callers  int
	batch    int
	clients  int
	rate     float64
	names    []string
}

// burnCommand is the first argument of the process that burns CPU time.
const burnCommand = "burn"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 3 && os.Args[1] == burnCommand {
		if err := burnMain(ctx, os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "scale:", err)
			os.Exit(2)
		}
		return
	}
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(2)
	}
	met, err := run(ctx, o, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
	}
	if err != nil || !met {
		os.Exit(1)
	}
}

// run takes all measurements that were named, and writes what came out, also of those
// that failed half-way.
func run(ctx context.Context, o options, stdout, progress io.Writer) (met bool, err error) {
	rep := newReport(o.binary)
	for _, name := range o.names {
		i := slices.IndexFunc(measurements, func(m measurement) bool { return m.name == name })
		m := measurements[i]
		r := &Result{Name: m.name, What: m.what}
		b := &bench{options: o, progress: progress}
		if failed := m.within(ctx, b, r); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", m.name, failed))
			r.Error = failed.Error()
		}
		rep.Results = append(rep.Results, r)
	}
	return rep.met(), errors.Join(err, rep.write(stdout, o.output))
}

// within measures for so long as may be. The context has no deadline: clients would
// send one with each call, and wait until then.
func (m *measurement) within(ctx context.Context, b *bench, r *Result) error {
	limit := b.limit
	if m.lasts > 0 {
		limit += b.length(m.lasts)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(limit, func() { cancel(fmt.Errorf("not done within %v", limit)) }).Stop()
	err := m.measure(ctx, b, r)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return err
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var nodes, keys string
	fs := flag.NewFlagSet("scale", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.binary, "rlnode", "bin/rlnode", "the `binary` to run")
	fs.StringVar(&o.output, "o", "text", "text or json")
	fs.StringVar(&o.profiles, "profiles", "", "`directory` for CPU profiles of each node; taking them costs a little")
	fs.IntVar(&o.procs, "procs", 0, "GOMAXPROCS of each node; 0: all processors")
	fs.IntVar(&o.groups, "groups", 0, "raft groups; 0: one for each node. nodes has its own numbers")
	fs.DurationVar(&o.duration, "duration", 0, "of each load; 0: 5s, overload 20s, calm 10m")
	fs.DurationVar(&o.warm, "warm", 2*time.Second, "the same load before each")
	fs.DurationVar(&o.limit, "limit", 200*time.Second, "of each measurement, filling included; calm takes its -duration more")
	fs.StringVar(&nodes, "nodes", "3,5,7", "nodes: `numbers` of nodes; each with --groups 1, 3 and one for each node")
	fs.Float64Var(&o.perGroup, "per-group", 4000, "nodes: decisions a second on each group")
	fs.StringVar(&keys, "keys", "10000,100000,1000000,10000000", "keys: `numbers` of buckets, rising")
	fs.IntVar(&o.callers, "callers", 16, "keys: callers at once")
	fs.IntVar(&o.batch, "batch", 100, "keys, overload: decisions a call")
	fs.IntVar(&o.clients, "clients", 32, "overload: clients, each with its own connections")
	fs.Float64Var(&o.rate, "rate", 50_000, "open: decisions a second")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.nodes, err = numbers("-nodes", nodes, 3, 26); err != nil {
		return o, err
	}
	if o.keys, err = numbers("-keys", keys, 1, 100_000_000); err != nil {
		return o, err
	}
	o.names = fs.Args()
	return o, o.validate()
}

// validate says what is wrong with o.
func (o *options) validate() error {
	var known []string
	for _, m := range measurements {
		known = append(known, m.name)
	}
	if len(o.names) == 0 {
		return fmt.Errorf("name a measurement: %s", strings.Join(known, ", "))
	}
	for _, name := range o.names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("no measurement %q, there are %s", name, strings.Join(known, ", "))
		}
	}
	switch {
	case o.output != "text" && o.output != "json":
		return fmt.Errorf("-o %q: must be text or json", o.output)
	case o.duration < 0 || o.warm < 0 || o.limit <= 0:
		return errors.New("-duration and -warm must be at least 0, -limit more")
	case o.procs < 0 || o.groups < 0 || o.perGroup <= 0 || o.rate <= 0:
		return errors.New("-procs and -groups must be at least 0, -per-group and -rate more")
	case o.callers < 1 || o.batch < 1 || o.batch > 1000 || o.clients < 1:
		return errors.New("-callers, -batch and -clients must be at least 1, -batch at most 1000")
	}
	return nil
}

// numbers reads a list that rises from least to most.
func numbers(name, list string, least, most int) (out []int, err error) {
	for f := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < least || n > most || len(out) > 0 && n <= out[len(out)-1] {
			return nil, fmt.Errorf("%s %q: want numbers from %d to %d, rising", name, list, least, most)
		}
		out = append(out, n)
	}
	return out, nil
}

// length is the duration of a load that takes so long if nothing else is said.
func (o *options) length(usual time.Duration) time.Duration {
	if o.duration > 0 {
		return o.duration
	}
	return usual
}
