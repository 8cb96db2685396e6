package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
)

// Each load is driven by a process of its own, this program started again, so that a
// client's CPU time is its alone. The job comes by its standard input, the outcome
// goes to its standard output.
const driveCommand = "drive"

// callLimit bounds each call.
const callLimit = 10 * time.Second

// Job is one load.
type Job struct {
	System   string        `json:"system"`
	Addrs    []string      `json:"addrs"`
	PIDs     []int         `json:"pids"` // of the servers, for their CPU time
	Wait     bool          `json:"wait"`
	Tuning   Tuning        `json:"tuning"`
	Kind     Kind          `json:"kind"`
	Keys     int           `json:"keys"`
	Seed     uint64        `json:"seed"`
	Point    Point         `json:"point"`
	Warm     time.Duration `json:"warm"`
	Duration time.Duration `json:"duration"` // 0: until Requests
	Limit    time.Duration `json:"limit"`    // of all of it
	Requests int64         `json:"requests"`
}

// Outcome is what came of it. CPU is in seconds, over the measured time alone.
type Outcome struct {
	load.Report
	ClientCPU float64   `json:"client_cpu_s"`
	ServerCPU []float64 `json:"server_cpu_s"` // of each process
	Foreign   float64   `json:"foreign"`      // share of the machine that others used
}

// drive runs the job in r and writes its outcome.
func drive(ctx context.Context, r io.Reader, w io.Writer) error {
	var j Job
	if err := json.NewDecoder(r).Decode(&j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	// No deadline: clients would send one with each call, which costs.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(j.Limit, cancel).Stop()
	out, err := j.run(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(out)
}

// run warms up and measures.
func (j *Job) run(ctx context.Context) (out Outcome, err error) {
	t, err := newTraffic(j.Kind, j.Keys, j.Seed)
	if err != nil {
		return out, err
	}
	target, closed, err := j.dial(t)
	if err != nil {
		return out, err
	}
	defer closed()
	cfg := load.Config{
		Concurrency: j.Point.Callers, Batch: j.Point.Batch, Rate: j.Point.Rate,
		Keys: 1, Timeout: callLimit, Duration: j.Warm,
	}
	if j.Warm > 0 {
		if _, err := load.Against(ctx, target, cfg); err != nil {
			return out, err
		}
	}
	var began, ended usage
	cfg.Duration, cfg.Requests = j.Duration, j.Requests
	cfg.Window = func() func() {
		began = j.usage()
		return func() { ended = j.usage() }
	}
	if out.Report, err = load.Against(ctx, target, cfg); err != nil {
		return out, err
	}
	out.spent(&began, &ended)
	return out, began.err
}

// dial connects to the system.
func (j *Job) dial(t *Traffic) (load.Target, func(), error) {
	switch j.System {
	case ours3, ours1:
		return dialOurs(j, t)
	case redis:
		return dialRedis(j, t)
	case guber:
		return dialGubernator(j, t)
	}
	return nil, nil, fmt.Errorf("no system %q", j.System)
}

// driven runs a job in a process of its own.
func driven(ctx context.Context, j Job) (Outcome, error) {
	self, err := os.Executable()
	if err != nil {
		return Outcome{}, err
	}
	job, err := json.Marshal(j)
	if err != nil {
		return Outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, j.Limit+2*callLimit) // it ends by itself before
	defer cancel()
	cmd := exec.CommandContext(ctx, self, driveCommand)
	cmd.Stdin = strings.NewReader(string(job))
	var said strings.Builder
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return Outcome{}, fmt.Errorf("client of %s: %w: %s", j.System, err, strings.TrimSpace(said.String()))
	}
	var out Outcome
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("outcome of the client of %s: %w", j.System, err)
	}
	return out, nil
}

// driveMain is the process.
func driveMain() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return drive(ctx, os.Stdin, os.Stdout)
}
