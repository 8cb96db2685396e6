// Command processes measures a cluster of three rlnode processes with `rlnode bench`
// at several numbers of callers: decisions per second, latency, and the CPU
// seconds that a million decisions cost the client and the nodes.
//
//	go run ./bench/processes -rlnode bin/rlnode [-duration 5s] [-callers 1,16,64] [-reps 3]
package main

import (
	"context"
	_ "embed"
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

//go:embed policies.yaml
var policies []byte

// options are the command line.
type options struct {
	binary   string
	duration time.Duration
	callers  []int
	reps     int
	batch    int
	keys     int
	groups   int
	output   string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "processes:", err)
		os.Exit(2)
	}
	if err := run(ctx, opts, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "processes:", err)
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var callers string
	fs := flag.NewFlagSet("processes", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.binary, "rlnode", "bin/rlnode", "the `binary` to run")
	fs.DurationVar(&o.duration, "duration", 5*time.Second, "of each run")
	fs.StringVar(&callers, "callers", "1,16,64,256,1024", "`numbers` of callers at once")
	fs.IntVar(&o.reps, "reps", 1, "runs of each; the row shown is the one with the median rate")
	fs.IntVar(&o.batch, "batch", 1, "decisions in one call")
	fs.IntVar(&o.keys, "keys", 10_000, "different tenants")
	fs.IntVar(&o.groups, "groups", 0, "raft groups (0: one for each node)")
	fs.StringVar(&o.output, "o", "text", "text or json")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	for _, f := range strings.Split(callers, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 1 {
			return o, fmt.Errorf("-callers: %q is not a number of callers", f)
		}
		o.callers = append(o.callers, n)
	}
	if o.reps < 1 || o.output != "text" && o.output != "json" {
		return o, fmt.Errorf("-reps must be at least 1 and -o text or json")
	}
	return o, nil
}

// run starts the cluster, measures every number of callers, and prints rows.
func run(ctx context.Context, o options, w io.Writer) error {
	dir, err := os.MkdirTemp("", "rl-processes-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "policies.yaml")
	if err := os.WriteFile(file, policies, 0o644); err != nil {
		return err
	}
	cfg := fleet.Config{Binary: o.binary, Dir: dir, Policies: file}
	if o.groups > 0 {
		cfg.Flags = []string{"--groups", strconv.Itoa(o.groups)}
	}
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	f, err := fleet.Start(ready, cfg)
	if err != nil {
		return err
	}
	defer f.Close()

	var rows []row
	for _, callers := range o.callers {
		r, err := median(o.reps, func() (row, error) { return measure(ctx, f, o, callers) })
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	return write(w, o.output, rows)
}
