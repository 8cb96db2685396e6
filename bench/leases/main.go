// Command leases measures one hot key of a leased policy: client processes that all ask
// for it, against three rlnode processes. It prints decisions per second, latencies, how
// many of them came from leases and what the leases cost, and fails if more was admitted
// than burst + rate × (time + a lease's second).
//
//	go run ./bench/leases -rlnode bin/rlnode [-clients 8] [-callers 4] [-duration 5s] [-rate 150000] [-amount 1000000]
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
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// options are the command line.
type options struct {
	binary   string
	clients  int
	callers  int
	duration time.Duration
	rate     float64
	amount   uint64
	output   string
	child    string // addresses: this is one of the clients
}

// policies has the one policy: amount a second, and as much at once.
const policies = `home: [tenant]
no_match: deny
policies:
  - {id: hot, match: {}, scope: [tenant], algorithm: token_bucket, amount: %d, window: 1s, burst: %d, consistency: leased}
`

// leaseTime is how long nodes let clients keep tokens.
const leaseTime = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "leases:", err)
		os.Exit(2)
	}
	if o.child != "" {
		err = child(ctx, o, os.Stdout)
	} else {
		err = run(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "leases:", err)
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("leases", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.binary, "rlnode", "bin/rlnode", "the `binary` to run")
	fs.IntVar(&o.clients, "clients", 8, "client processes")
	fs.IntVar(&o.callers, "callers", 4, "callers of each at once")
	fs.DurationVar(&o.duration, "duration", 5*time.Second, "of the load")
	fs.Float64Var(&o.rate, "rate", 0, "decisions a second of all clients, in an open loop (0: a closed loop)")
	fs.Uint64Var(&o.amount, "amount", 1_000_000_000, "tokens a second, and at once")
	fs.StringVar(&o.output, "o", "text", "text or json")
	fs.StringVar(&o.child, "child", "", "")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case o.clients < 1 || o.callers < 1:
		return o, errors.New("-clients and -callers must be at least 1")
	case o.duration <= 0 || o.rate < 0:
		return o, errors.New("-duration must be more than 0, and -rate not less")
	case o.amount < 1 || o.amount > 1_000_000_000:
		return o, fmt.Errorf("-amount %d: want 1 … 1000000000", o.amount)
	case o.output != "text" && o.output != "json":
		return o, fmt.Errorf("-o %s: want text or json", o.output)
	}
	return o, nil
}

// run starts the cluster and the clients, and judges what they did together.
func run(ctx context.Context, o options, w io.Writer) error {
	dir, err := os.MkdirTemp("", "rl-leases-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "policies.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, policies, o.amount, o.amount), 0o644); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	f, err := fleet.Start(ready, fleet.Config{Binary: o.binary, Dir: dir, Policies: file})
	if err != nil {
		return err
	}
	defer f.Close()
	began := time.Now()
	each, err := spawn(ctx, o, f.GRPC())
	if err != nil {
		return err
	}
	r := sum(each, time.Since(began))
	if err := r.write(w, o.output); err != nil {
		return err
	}
	return r.judge(o.amount)
}
