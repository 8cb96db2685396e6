// Command peers measures ringlimit beside what a platform team has: a token bucket in
// Lua on Redis with a replica, without and with WAIT, and gubernator. It starts all of
// them on loopback, one at a time, and drives each with its best Go client.
//
//	go build -o ../../bin/peers . && cd ../.. && bin/peers -rlnode bin/rlnode
//
// docs/benchmarks.md tells how it measures and what cannot be compared.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		if errors.Is(err, errUnfinished) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

// daemonCommand is the first argument of a process that is one of gubernator's daemons.
const daemonCommand = "gubernator"

// command is one of the three programs that this is.
func command(args []string) error {
	if len(args) > 0 && args[0] == driveCommand {
		return driveMain()
	}
	if len(args) > 0 && args[0] == daemonCommand {
		return daemon(context.Background(), args[1:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("redis-server"); err != nil && r.needs(redis) {
		return errNoRedis
	}
	if r.Setup.Dir, err = os.MkdirTemp("", "rl-peers-"); err != nil {
		return err
	}
	err = r.run(ctx)
	if err != nil && !errors.Is(err, errUnfinished) {
		return fmt.Errorf("%w (logs of the servers in %s)", err, r.Setup.Dir)
	}
	return errors.Join(err, os.RemoveAll(r.Setup.Dir))
}

// needs says whether a system will be started.
func (r *Run) needs(system string) bool {
	for _, s := range systemsOf(r.Contenders) {
		if s == system {
			return true
		}
	}
	return false
}

// parse reads the command line.
func parse(args []string, stderr io.Writer) (*Run, error) {
	r := &Run{Say: stderr}
	var points, kinds, who, memory string
	fs := flag.NewFlagSet("peers", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&r.Setup.Binary, "rlnode", "bin/rlnode", "the `binary` to run")
	fs.StringVar(&r.Out, "o", "bin/peers-results", "`directory` of results; what it has already is not measured again")
	fs.StringVar(&points, "points", "", "`names` of points to measure; empty: all")
	fs.StringVar(&kinds, "traffic", "uniform,mixed", "`kinds` of traffic: uniform, zipf, hot, abusive, mixed")
	fs.StringVar(&who, "contenders", "", "`names` of contenders; empty: all")
	fs.StringVar(&memory, "memory", "", "`numbers` of keys to measure memory at, such as 1000000,10000000")
	fs.IntVar(&r.Rounds, "rounds", 5, "measurements of each point; 0: memory alone, or the table again")
	fs.IntVar(&r.Setup.Keys, "keys", 1_000_000, "different keys")
	r.Tuning.flags(fs)
	fs.DurationVar(&r.Warm, "warm", 500*time.Millisecond, "before each measurement")
	fs.DurationVar(&r.Duration, "duration", 1500*time.Millisecond, "of each measurement")
	fs.DurationVar(&r.Limit, "limit", 0, "begin no visit that would end later than this after the start; 0: no limit")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if r.Rounds < 0 || r.Setup.Keys < 1 || r.Duration <= 0 || r.Warm < 0 || !r.Tuning.valid() {
		return nil, fmt.Errorf("-keys and -duration must be positive, all other numbers at least 0, and a multiplex at most %d", rueidis.MaxPipelineMultiplex)
	}
	var err error
	if r.Points, err = pointsOf(points); err != nil {
		return nil, err
	}
	if r.Contenders, err = contendersOf(who); err != nil {
		return nil, err
	}
	for kind := range strings.SplitSeq(kinds, ",") {
		k := Kind(strings.TrimSpace(kind))
		if _, err := newTraffic(k, 1, 0); err != nil || k == Fill {
			return nil, fmt.Errorf("-traffic: no kind %q to measure", kind)
		}
		r.Kinds = append(r.Kinds, k)
	}
	for n := range strings.SplitSeq(memory, ",") {
		if n == "" {
			continue
		}
		keys, err := strconv.Atoi(strings.TrimSpace(n))
		if err != nil || keys < 1 {
			return nil, fmt.Errorf("-memory: %q is not a number of keys", n)
		}
		r.Memory = append(r.Memory, keys)
	}
	return r, nil
}
