package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
)

// aimNeighbour is the project's aim: the p99 of tenants beside a flood as a multiple of
// that beside a program that uses as much CPU time.
const aimNeighbour = 1.5

const (
	neighbours = 1000   // other tenants
	paced      = 2000   // decisions a second of all of them
	floodRate  = 40_000 // of the one that floods; its policy admits a twentieth
)

// measureNeighbour measures other tenants alone, beside the flood, and beside a program
// that burns what the flood cost: its client's CPU time, and what nodes used more of it
// than without, if it was more: they also save some, as more shares a commit.
func measureNeighbour(ctx context.Context, b *bench, r *Result) error {
	c, err := b.start(ctx, 3, b.groups, "")
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.fill(ctx, 0, neighbours, false); err != nil {
		return err
	}
	alone, err := c.paced(ctx, "")
	if err != nil {
		return err
	}
	row := func(label string, x *outcome, extra float64) {
		r.row(
			label, Figure{"decisions/s", x.Rate}, Figure{"p50 ms", float64(x.P50) / 1e3}, Figure{"p99 ms", float64(x.P99) / 1e3},
			Figure{"p99.9 ms", float64(x.P999) / 1e3}, Figure{"other load, cores", extra}, Figure{"foreign %", 100 * x.foreign},
		)
	}
	row("other tenants alone", &alone, 0)
	flooded, sent, own, err := c.beside(ctx)
	if err != nil {
		return err
	}
	extra := own/flooded.Seconds + max(0, flooded.nodes/flooded.Seconds-alone.nodes/alone.Seconds)
	row("beside the flood", &flooded, extra)
	r.note("the flood: %.0f/s, %.1f %% denied, %d errors; its client used %.2f cores of that",
		float64(sent.Requests)/sent.Seconds, 100*float64(sent.Denied)/float64(sent.Requests), sent.Errors, own/flooded.Seconds)
	burnt, got, err := c.besideBurner(ctx, extra)
	if err != nil {
		return err
	}
	row("beside a burner", &burnt, got)
	again, err := c.paced(ctx, "")
	if err != nil {
		return err
	}
	row("alone again", &again, 0)
	r.atMost("p99 beside the flood / beside a program of the same CPU time", float64(flooded.P99)/float64(burnt.P99), aimNeighbour)
	return nil
}

// paced is the load of the other tenants, at an even rate.
func (c *cluster) paced(ctx context.Context, profile string) (outcome, error) {
	return c.good(ctx, c.target(uniform(neighbours, 0, 0)), load.Config{
		Duration: c.bench.length(8 * time.Second), Concurrency: 1024, Batch: 1, Rate: paced,
	}, profile)
}

// beside is that load while one tenant floods, from a process of its own. own is the
// CPU time of that process, in seconds, in the time of the load.
func (c *cluster) beside(ctx context.Context) (x outcome, sent load.Report, own float64, err error) {
	took := c.bench.length(8*time.Second) + 2*time.Second
	cmd := exec.CommandContext(ctx, c.bench.binary, "bench", "--addr", strings.Join(c.GRPC(), ","), "--tenant-prefix", "flood-", "--keys", "1",
		"--rate", fmt.Sprint(floodRate), "--concurrency", "2048", "--duration", took.String(), "-o", "json")
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		return x, sent, 0, err
	}
	failed := pause(ctx, time.Second) // until it runs at its rate
	if failed == nil {
		x, failed = c.paced(ctx, "neighbour")
	}
	ended := cmd.Wait()
	if bad := json.Unmarshal([]byte(out.String()), &sent); bad != nil || sent.Requests == 0 {
		return x, sent, 0, errors.Join(failed, ended, bad, fmt.Errorf("the flood: %s", said.String()))
	}
	own = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * x.Seconds / sent.Seconds
	return x, sent, own, failed
}

// besideBurner is that load while a program uses so many cores; got is what it got.
func (c *cluster) besideBurner(ctx context.Context, cores float64) (x outcome, got float64, err error) {
	end, err := burner(ctx, cores)
	if err != nil {
		return x, 0, err
	}
	began := time.Now()
	failed := pause(ctx, time.Second)
	if failed == nil {
		x, failed = c.paced(ctx, "")
	}
	seconds, ended := end()
	return x, seconds / time.Since(began).Seconds(), errors.Join(failed, ended)
}
