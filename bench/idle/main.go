// Command idle measures what a cluster of rlnode processes costs while nobody asks
// it anything: the CPU share of each node, and the writes a second on each ordered
// pair of nodes, with and without buckets.
//
//	go run ./bench/idle -rlnode bin/rlnode [-nodes 3,7] [-duration 1m] [-buckets 10000] [-o json]
//
// It exits with 1 when a figure is above the aim.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// What the project aims at.
const (
	aimCPU    = 0.05 // of a core, per node
	aimWrites = 30.0 // a second, per ordered pair of nodes
)

// policy refills slowly, so that the buckets are held for the whole measurement.
const policies = `home: [tenant]
no_match: deny
policies:
  - {id: idle, match: {}, scope: [tenant], algorithm: token_bucket, amount: 1, window: 8760h, burst: 10}
`

// options are the command line.
type options struct {
	binary   string
	nodes    []int
	duration time.Duration
	settle   time.Duration // before each measurement, for what was asked to come to rest
	buckets  int
	output   string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "idle:", err)
		os.Exit(2)
	}
	met, err := run(ctx, opts, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "idle:", err)
	}
	if err != nil || !met {
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var nodes string
	fs := flag.NewFlagSet("idle", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.binary, "rlnode", "bin/rlnode", "the `binary` to run")
	fs.StringVar(&nodes, "nodes", "3,7", "`numbers` of nodes")
	fs.DurationVar(&o.duration, "duration", time.Minute, "of each measurement")
	fs.DurationVar(&o.settle, "settle", 15*time.Second, "quiet time before each measurement")
	fs.IntVar(&o.buckets, "buckets", 10_000, "buckets of the second measurement")
	fs.StringVar(&o.output, "o", "text", "text or json")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	for _, f := range strings.Split(nodes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 2 || n > 26 {
			return o, fmt.Errorf("-nodes: %q is not a number of nodes, 2 … 26", f)
		}
		o.nodes = append(o.nodes, n)
	}
	switch {
	case o.output != "text" && o.output != "json":
		return o, fmt.Errorf("-o %q: must be text or json", o.output)
	case o.duration < time.Second || o.settle < 0 || o.buckets < 1:
		return o, fmt.Errorf("-duration must be at least 1s, -settle 0 or more, -buckets at least 1")
	}
	return o, nil
}

// run measures every size and prints what came out; met says whether all of it is
// within the aims.
func run(ctx context.Context, o options, stdout, progress io.Writer) (met bool, err error) {
	dir, err := os.MkdirTemp("", "rl-idle-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "policies.yaml")
	if err := os.WriteFile(file, []byte(policies), 0o644); err != nil {
		return false, err
	}
	var results []result
	for _, n := range o.nodes {
		cfg := fleet.Config{Binary: o.binary, Dir: filepath.Join(dir, strconv.Itoa(n)), Nodes: n, Policies: file, Relayed: true}
		r, err := size(ctx, o, cfg, progress)
		if err != nil {
			return false, fmt.Errorf("%d nodes: %w", n, err)
		}
		results = append(results, r...)
	}
	met = true
	for _, r := range results {
		met = met && r.Met
	}
	return met, write(stdout, o.output, results)
}

// size measures a cluster of one size, first without and then with buckets.
func size(ctx context.Context, o options, cfg fleet.Config, progress io.Writer) ([]result, error) {
	ready, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	f, err := fleet.Start(ready, cfg)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var results []result
	for _, buckets := range []int{0, o.buckets} {
		if buckets > 0 {
			if err := fill(ctx, f, buckets); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(progress, "idle: %d nodes, %d buckets: %v\n", cfg.Nodes, buckets, o.settle+o.duration)
		r, err := measure(ctx, f, o)
		if err != nil {
			return nil, err
		}
		r.Buckets = buckets
		results = append(results, r)
	}
	return results, nil
}

// fill makes so many buckets: one take of each tenant.
func fill(ctx context.Context, f *fleet.Fleet, buckets int) error {
	code, out, err := f.Command(ctx, "bench", "--requests", strconv.Itoa(buckets), "--keys", strconv.Itoa(buckets),
		"--concurrency", "64", "--timeout", "10s")
	if err != nil || code != 0 {
		return errors.Join(err, fmt.Errorf("rlnode bench: exit code %d: %s", code, out))
	}
	return nil
}
