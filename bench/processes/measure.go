package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// result is what `rlnode bench -o json` prints.
type result struct {
	Requests uint64  `json:"requests"`
	Admitted uint64  `json:"admitted"`
	Denied   uint64  `json:"denied"`
	Errors   uint64  `json:"errors"`
	Rate     float64 `json:"rate"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	P999     float64 `json:"p999_us"`
	Max      float64 `json:"max_us"`
}

// row is one line of the table. CPU is in seconds per million decisions.
type row struct {
	Callers   int     `json:"callers"`
	Result    result  `json:"result"`
	ClientCPU float64 `json:"client_cpu_s_per_million"`
	NodesCPU  float64 `json:"nodes_cpu_s_per_million"`
}

// measure runs one load and reads what it cost.
func measure(ctx context.Context, f *fleet.Fleet, o options, callers int) (row, error) {
	before, err := nodesCPU(f)
	if err != nil {
		return row{}, err
	}
	cmd := exec.CommandContext(ctx, o.binary, "bench",
		"--addr", strings.Join(f.GRPC(), ","), "--duration", o.duration.String(),
		"--concurrency", strconv.Itoa(callers), "--batch", strconv.Itoa(o.batch),
		"--keys", strconv.Itoa(o.keys), "-o", "json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return row{}, fmt.Errorf("rlnode bench with %d callers: %w", callers, err)
	}
	after, err := nodesCPU(f)
	if err != nil {
		return row{}, err
	}
	r := row{Callers: callers}
	if err := json.Unmarshal(out, &r.Result); err != nil {
		return row{}, fmt.Errorf("answer of rlnode bench: %w", err)
	}
	if r.Result.Requests == 0 {
		return row{}, fmt.Errorf("rlnode bench with %d callers decided nothing", callers)
	}
	millions := float64(r.Result.Requests) / 1e6
	r.NodesCPU = (after - before).Seconds() / millions
	r.ClientCPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() / millions
	return r, nil
}

// median repeats a measurement and returns the run with the median rate.
func median(reps int, run func() (row, error)) (row, error) {
	rows := make([]row, 0, reps)
	for range reps {
		r, err := run()
		if err != nil {
			return row{}, err
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int {
		switch {
		case a.Result.Rate < b.Result.Rate:
			return -1
		case a.Result.Rate > b.Result.Rate:
			return 1
		}
		return 0
	})
	return rows[len(rows)/2], nil
}

// nodesCPU is the CPU time that all nodes have used since they began.
func nodesCPU(f *fleet.Fleet) (time.Duration, error) {
	var sum time.Duration
	for _, n := range f.Nodes {
		used, err := n.CPU()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// write prints rows as a table or as JSON.
func write(w io.Writer, format string, rows []row) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "callers\tdecisions/s\tp50 ms\tp99 ms\tp999 ms\tmax ms\terrors\tCPU s/M client\tnodes\t")
	for _, r := range rows {
		b := r.Result
		fmt.Fprintf(tab, "%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.1f\t%d\t%.2f\t%.2f\t\n", r.Callers, b.Rate,
			b.P50/1e3, b.P99/1e3, b.P999/1e3, b.Max/1e3, b.Errors, r.ClientCPU, r.NodesCPU)
	}
	return tab.Flush()
}
