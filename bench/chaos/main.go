// Command chaos runs clusters of real rlnode processes, breaks them and counts:
// every admission, every error, the time until all slots are served again.
//
//	go run ./bench/chaos -rlnode bin/rlnode [flags] SCENARIO…
//	go run ./bench/chaos -rlnode bin/rlnode [flags] safety | liveness | nemesis NAME…
//
// A scenario ends ok, with violations (exit code 1), or inconclusive (exit code
// 1 too) when too little ran for its promise to have been tested.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// options are the command line.
type options struct {
	binary string
	dir    string        // for data and logs; empty: a temporary one
	keep   bool          // keep dir when all is well
	short  bool          // a few rounds of everything
	rounds int           // 0: each scenario's own number
	lasts  time.Duration // of what a round keeps up, 0: each scenario's own
	output string        // text or json
	names  []string
	modeFlags
	spender spenderFlags
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second ^C ends it at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its world as arguments; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parse(args, stderr)
	if err != nil {
		if err != flag.ErrHelp {
			fmt.Fprintln(stderr, "chaos:", err)
		}
		return 2
	}
	if opts.spender.nodes != "" {
		if err := spend(ctx, opts.spender, stdout); err != nil {
			fmt.Fprintln(stderr, "chaos:", err)
			return 1
		}
		return 0
	}
	var picked []scenario
	if !isMode(opts.names) {
		if picked, err = pick(opts.names, opts.short); err != nil {
			fmt.Fprintln(stderr, "chaos:", err)
			return 2
		}
	}
	dir, err := workDir(opts.dir)
	if err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
		return 1
	}
	opts.dir = dir
	fleet.SweepDead()
	if isMode(opts.names) {
		return runMode(ctx, opts, stdout, stderr)
	}

	var reports []*report
	for _, s := range picked {
		if ctx.Err() != nil {
			break
		}
		r := s.execute(ctx, opts, stderr)
		fmt.Fprintln(stderr, r.line())
		reports = append(reports, r)
	}
	if err := write(stdout, opts.output, reports); err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
		return 1
	}
	if len(reports) < len(picked) || !allOK(reports) {
		fmt.Fprintln(stderr, "chaos: data and logs are in", dir)
		return 1
	}
	if !opts.keep {
		_ = os.RemoveAll(dir)
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("chaos", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.binary, "rlnode", "bin/rlnode", "the `binary` to run")
	fs.StringVar(&o.dir, "dir", "", "`directory` for a new directory of data and logs (default: the system's temporary one)")
	fs.BoolVar(&o.keep, "keep", false, "keep data and logs when all is well")
	fs.BoolVar(&o.short, "short", false, "a few rounds of each scenario")
	fs.IntVar(&o.rounds, "rounds", 0, "rounds of each scenario (default: its own number)")
	fs.DurationVar(&o.lasts, "lasts", 0, "how `long` each round of flap, split or starved keeps its fault up (default: their own time)")
	fs.StringVar(&o.output, "o", "text", "text or json")
	o.register(fs)
	o.spender.register(fs)
	fs.Usage = func() {
		fmt.Fprintf(stderr, "usage: chaos [flags] SCENARIO…\n\nscenarios (all: every one of them):\n%s\n%s\nflags:\n", usage(), modeUsage())
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.names = fs.Args()
	switch {
	case o.spender.nodes != "":
		return o, nil
	case len(o.names) == 0:
		return o, fmt.Errorf("name a scenario: all or of %s", strings.Join(scenarioNames(), ", "))
	case o.output != "text" && o.output != "json":
		return o, fmt.Errorf("-o %q: must be text or json", o.output)
	case o.rounds < 0:
		return o, fmt.Errorf("-rounds %d: must be 0 or more", o.rounds)
	case o.lasts < 0:
		return o, fmt.Errorf("-lasts %v: must be 0 or more", o.lasts)
	}
	if _, err := os.Stat(o.binary); err != nil {
		return o, fmt.Errorf("-rlnode: %w (run make build first)", err)
	}
	return o, nil
}

// workDir makes a new directory below parent.
func workDir(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "rl-chaos-")
	if err != nil {
		return "", fmt.Errorf("directory for data and logs: %w", err)
	}
	return dir, nil
}
