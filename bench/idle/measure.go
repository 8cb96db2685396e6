package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// result is one quiet time of one cluster.
type result struct {
	Nodes   int     `json:"nodes"`
	Buckets int     `json:"buckets"`
	Seconds float64 `json:"seconds"`
	PerNode []node  `json:"per_node"`
	Pairs   []pair  `json:"pairs"`
	Met     bool    `json:"met"` // every figure is within the aims
}

// node is what one process used.
type node struct {
	Name     string  `json:"name"`
	CPU      float64 `json:"cpu"`      // share of a core
	Syscalls float64 `json:"syscalls"` // writes a second of any kind, the runtime's own wake-ups included
}

// pair is what went from one node to another, a second. Writes are counted by a
// relay between the two, as reads of it: two writes of a node that come within the
// relay's wake-up count as one.
type pair struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Writes  float64 `json:"writes"`
	Packets float64 `json:"packets"` // of gossip
}

// counts is what has been counted until a moment.
type counts struct {
	at       time.Time
	cpu      []time.Duration
	syscalls []uint64
	pairs    []traffic
}

type traffic struct {
	from, to        string
	writes, packets uint64
}

// measure waits for rest, and counts for a time in which nothing is asked.
func measure(ctx context.Context, f *fleet.Fleet, o options) (result, error) {
	if err := wait(ctx, o.settle); err != nil {
		return result{}, err
	}
	before, err := count(f)
	if err != nil {
		return result{}, err
	}
	if err := wait(ctx, o.duration); err != nil {
		return result{}, err
	}
	after, err := count(f)
	if err != nil {
		return result{}, err
	}
	return compare(f, before, after), nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// count reads all counters.
func count(f *fleet.Fleet) (counts, error) {
	c := counts{at: time.Now()}
	for _, n := range f.Nodes {
		cpu, err := n.CPU()
		if err != nil {
			return c, err
		}
		io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", n.PID()))
		if err != nil {
			return c, fmt.Errorf("writes of node %s: %w", n.Name, err)
		}
		calls, err := parseIO(string(io))
		if err != nil {
			return c, fmt.Errorf("writes of node %s: %w", n.Name, err)
		}
		c.cpu, c.syscalls = append(c.cpu, cpu), append(c.syscalls, calls)
		for _, m := range f.Nodes {
			if m == n {
				continue
			}
			writes, packets, err := f.Writes(n.Name, m.Name)
			if err != nil {
				return c, err
			}
			c.pairs = append(c.pairs, traffic{n.Name, m.Name, writes, packets})
		}
	}
	return c, nil
}

// parseIO reads the number of write calls from /proc/<pid>/io.
func parseIO(text string) (uint64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "syscw: "); ok {
			return strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("no syscw in /proc/<pid>/io: %q", text)
}

// compare turns two counts into rates, and holds them to the aims.
func compare(f *fleet.Fleet, before, after counts) result {
	took := after.at.Sub(before.at).Seconds()
	r := result{Nodes: len(f.Nodes), Seconds: took, Met: true}
	for i, n := range f.Nodes {
		x := node{
			Name: n.Name, CPU: (after.cpu[i] - before.cpu[i]).Seconds() / took,
			Syscalls: float64(after.syscalls[i]-before.syscalls[i]) / took,
		}
		r.PerNode = append(r.PerNode, x)
		r.Met = r.Met && x.CPU <= aimCPU
	}
	for i, p := range after.pairs {
		x := pair{
			From: p.from, To: p.to, Writes: float64(p.writes-before.pairs[i].writes) / took,
			Packets: float64(p.packets-before.pairs[i].packets) / took,
		}
		r.Pairs = append(r.Pairs, x)
		r.Met = r.Met && x.Writes <= aimWrites
	}
	return r
}

// spread is the mean and the largest of some figures.
func spread[T any](list []T, of func(T) float64) (mean, most float64) {
	for _, x := range list {
		mean += of(x) / float64(len(list))
		most = max(most, of(x))
	}
	return mean, most
}

// write prints results as a table or as JSON.
func write(w io.Writer, format string, results []result) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(results)
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "nodes\tbuckets\tCPU % mean\tmax\twrites/s a pair\tmax\tgossip/s a pair\tmax\twrite calls/s a node\tmax\taims\t")
	for _, r := range results {
		cpu, cpuMax := spread(r.PerNode, func(n node) float64 { return 100 * n.CPU })
		calls, callsMax := spread(r.PerNode, func(n node) float64 { return n.Syscalls })
		writes, writesMax := spread(r.Pairs, func(p pair) float64 { return p.Writes })
		packets, packetsMax := spread(r.Pairs, func(p pair) float64 { return p.Packets })
		verdict := "met"
		if !r.Met {
			verdict = "MISSED"
		}
		fmt.Fprintf(tab, "%d\t%d\t%.2f\t%.2f\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\t%s\t\n", r.Nodes, r.Buckets, cpu, cpuMax,
			writes, writesMax, packets, packetsMax, calls, callsMax, verdict)
	}
	return tab.Flush()
}
