package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/client"
)

//go:embed policies.yaml
var policies []byte

// callLimit bounds each call where nothing else is said.
const callLimit = 5 * time.Second

// bench is one measurement under way.
type bench struct {
	options
	progress io.Writer
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "scale: "+format+"\n", args...)
}

// cluster is nodes that run, and a client of them.
type cluster struct {
	*fleet.Fleet
	bench  *bench
	dir    string
	client *client.Client
}

// start starts a cluster; groups 0: one for each node. cores, if not empty, is the
// list of processors that the nodes share.
func (b *bench) start(ctx context.Context, nodes, groups int, cores string) (*cluster, error) {
	c := &cluster{bench: b}
	var err error
	if c.dir, err = os.MkdirTemp("", "rl-scale-"); err != nil {
		return nil, err
	}
	if err := c.start(ctx, nodes, groups, cores); err != nil {
		c.close()
		return nil, fmt.Errorf("start %d nodes: %w", nodes, err)
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context, nodes, groups int, cores string) error {
	file := filepath.Join(c.dir, "policies.yaml")
	if err := os.WriteFile(file, policies, 0o644); err != nil {
		return err
	}
	cfg := fleet.Config{Binary: c.bench.binary, Dir: c.dir, Nodes: nodes, Policies: file, Flags: []string{"--enable-pprof", "--log-level", "warn"}}
	if groups > 0 {
		cfg.Flags = append(cfg.Flags, "--groups", strconv.Itoa(groups))
	}
	cfg.Wrap = func(int) (around []string) {
		if cores != "" {
			around = append(around, "taskset", "-c", cores)
		}
		if c.bench.procs > 0 {
			around = append(around, "env", "GOMAXPROCS="+strconv.Itoa(c.bench.procs))
		}
		return around
	}
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var err error
	if c.Fleet, err = fleet.Start(ready, cfg); err != nil {
		return err
	}
	c.client, err = c.dial(callLimit)
	return err
}

// dial makes a client more, whose calls take so long at most; the caller closes it.
func (c *cluster) dial(limit time.Duration) (*client.Client, error) {
	return client.New(c.GRPC(), client.NeverDegrade(), client.WithDefaultTimeout(limit), client.WithLogger(slog.New(slog.DiscardHandler)))
}

// close ends everything and removes data and logs.
func (c *cluster) close() {
	if c.client != nil {
		_ = c.client.Close()
	}
	if c.Fleet != nil {
		c.Fleet.Close()
	}
	_ = os.RemoveAll(c.dir)
}

// outcome is a load and what it cost.
type outcome struct {
	load.Report
	client  float64 // CPU seconds in its time of this process …
	nodes   float64 // … of all nodes …
	foreign float64 // … and of others, as a share of the machine
}

// total is the CPU time of all processes.
func (o *outcome) total() float64 { return o.client + o.nodes }

// perMillion turns CPU seconds of o into seconds for a million decisions.
func (o *outcome) perMillion(seconds float64) float64 {
	return seconds / float64(o.Requests) * 1e6
}

// usage is CPU time used so far.
type usage struct {
	at                     time.Time
	client, nodes, machine time.Duration
}

func (c *cluster) usage() (u usage, err error) {
	u.at = time.Now()
	for _, n := range c.List() {
		used, err := n.CPU()
		if err != nil {
			return u, err
		}
		u.nodes += used
	}
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return u, err
	}
	u.client = time.Duration(self.Utime.Nano() + self.Stime.Nano())
	u.machine, err = fleet.MachineCPU()
	return u, err
}

// spent is what was used between two readings.
func (o *outcome) spent(from, to *usage, cores int) {
	o.client, o.nodes = (to.client - from.client).Seconds(), (to.nodes - from.nodes).Seconds()
	all := (to.machine - from.machine).Seconds()
	o.foreign = max(0, all-o.client-o.nodes) / to.at.Sub(from.at).Seconds() / float64(cores)
}

// load puts a load on target, and reads what it cost. With profile, each node's CPU
// profile over the load's Duration is kept, if profiles are wanted.
func (c *cluster) load(ctx context.Context, target load.Target, cfg load.Config, profile string) (o outcome, err error) {
	var from, to usage
	var failed error
	stop := func() error { return nil }
	cfg.Keys, cfg.Window = 1, func() func() {
		stop = c.profile(ctx, profile, cfg.Duration)
		from, failed = c.usage()
		return func() { to, err = c.usage() }
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = callLimit
	}
	rep, bad := load.Against(ctx, target, cfg)
	err = errors.Join(bad, ctx.Err(), failed, err, stop())
	if err != nil {
		return o, err
	}
	o.Report = rep
	o.spent(&from, &to, fleet.ThisMachine().Cores)
	return o, nil
}

// good is load that must not fail: not more than one request in a thousand.
func (c *cluster) good(ctx context.Context, target load.Target, cfg load.Config, profile string) (outcome, error) {
	o, err := c.load(ctx, target, cfg, profile)
	if err == nil && (o.Requests == 0 || o.Errors*1000 > o.Requests) {
		err = fmt.Errorf("%d of %d requests failed, first: %s", o.Errors, o.Requests, o.Error)
	}
	return o, err
}

// warmed is good after the same load for the time of -warm.
func (c *cluster) warmed(ctx context.Context, target load.Target, cfg load.Config, profile string) (outcome, error) {
	if c.bench.warm > 0 {
		warm := cfg
		warm.Duration, warm.Requests = c.bench.warm, 0
		if _, err := c.good(ctx, target, warm, ""); err != nil {
			return outcome{}, fmt.Errorf("warming up: %w", err)
		}
	}
	return c.good(ctx, target, cfg, profile)
}

// profile begins to take the CPU profiles of all nodes and of this process, for whole
// seconds within d; stop waits for them. Without a directory or a name it does nothing.
func (c *cluster) profile(ctx context.Context, name string, d time.Duration) (stop func() error) {
	seconds := min(int(d.Seconds()), 30)
	if c.bench.profiles == "" || name == "" || seconds < 1 {
		return func() error { return nil }
	}
	file := func(whose string) (*os.File, error) {
		return os.Create(filepath.Join(c.bench.profiles, name+"-"+whose+".cpu"))
	}
	done := make(chan error, len(c.Nodes)+1)
	for _, n := range c.Nodes {
		go func() {
			f, err := file(n.Name)
			if err == nil {
				err = errors.Join(n.Profile(ctx, fmt.Sprintf("profile?seconds=%d", seconds), f), f.Close())
			}
			done <- err
		}()
	}
	go func() {
		f, err := file("load")
		if err == nil {
			err = errors.Join(profileSelf(ctx, f, time.Duration(seconds)*time.Second), f.Close())
		}
		done <- err
	}()
	processes := len(c.Nodes) + 1
	return func() (err error) {
		for range processes {
			err = errors.Join(err, <-done)
		}
		return err
	}
}

// profileSelf takes a CPU profile of this process.
func profileSelf(ctx context.Context, w io.Writer, d time.Duration) error {
	if err := pprof.StartCPUProfile(w); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return pause(ctx, d)
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
