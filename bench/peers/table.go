package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// publish writes the table and the plots beside the results.
func (r *Results) publish(dir string) error {
	var b strings.Builder
	r.table(&b)
	if err := os.WriteFile(filepath.Join(dir, "table.md"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	for name, plot := range r.plots() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(plot), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// titles of the kinds of traffic, in the order of tables.
var titles = []struct {
	kind  Kind
	title string
}{
	{Uniform, "Uniform keys, admitted"},
	{Zipf, "Zipf keys (s = 1.1), admitted"},
	{Hot, "One hot key, admitted"},
	{Abusive, "Abusive traffic, 95 % denied"},
	{Mixed, "Open loop, 90 % admitted; latency from the intended time"},
}

// table writes everything in Markdown.
func (r *Results) table(w io.Writer) {
	m := r.Machine
	fmt.Fprintf(w, "%s, %d cores, %s; Linux %s; %s; %s; %s; %s.\n", m.CPU, m.Cores, m.Memory, m.Kernel, m.Go, m.Redis, m.Ours, m.Date)
	fmt.Fprintf(w, "%s keys, %s measured after %s of warm-up; client and servers share the machine", thousands(float64(r.Settings.Keys)), r.Settings.Duration, r.Settings.Warm)
	for _, c := range contenders {
		if procs := r.Settings.Tuning.procs(c.System); procs > 0 {
			fmt.Fprintf(w, "; GOMAXPROCS %d for each server of %s", procs, c.Title)
		}
	}
	fmt.Fprint(w, ".\nMedians of the rounds; least and most of decisions/s in brackets; × is our decisions/s through theirs.\n")
	for _, t := range titles {
		r.tableOf(w, t.kind, t.title)
	}
	r.memoryTable(w)
	fmt.Fprintf(w, "\n%s", notes)
}

// tableOf writes one kind of traffic; nothing if there is none of it.
func (r *Results) tableOf(w io.Writer, kind Kind, title string) {
	begun := false
	for i := range points {
		p := &points[i]
		mine := map[string]Cell{}
		for _, name := range []string{ours3, ours1} {
			if c := cell(r.of(name, kind, p.Name)); c.counts() {
				mine[name] = c
			}
		}
		for _, c := range contenders {
			samples := r.of(c.Name, kind, p.Name)
			if len(samples) == 0 {
				continue
			}
			if !begun {
				fmt.Fprintf(w, "\n### %s\n\n%s\n", title, header)
				begun = true
			}
			theirs := cell(samples)
			fmt.Fprintln(w, theirs.row(p.title(), c.Title, mine))
		}
	}
}

const header = `| load | who | decisions/s | × 3 groups | × 1 group | p50 ms | p99 ms | max ms | CPU s/M client | servers | all | admitted | rounds |
|---|---|---|---|---|---|---|---|---|---|---|---|---|`

// row is one line; mine are our own cells at the same point.
func (c *Cell) row(load, who string, mine map[string]Cell) string {
	if !c.counts() {
		return fmt.Sprintf("| %s | %s | void: %s |||||||||| %d of %d void |", load, who, short(c.Why), c.Void, c.Rounds+c.Void)
	}
	rounds := strconv.Itoa(c.Rounds)
	if c.Void > 0 {
		rounds += fmt.Sprintf(", and %d void: %s", c.Void, short(c.Why))
	}
	if c.Errors > 0 {
		rounds += fmt.Sprintf(", %d errors", c.Errors)
	}
	against := func(name string) string {
		ours, ok := mine[name]
		if !ok {
			return ""
		}
		return fmt.Sprintf("%.2f", ratio(ours.Rate, c.Rate))
	}
	return fmt.Sprintf("| %s | %s | %s (%s–%s) | %s | %s | %s | %s | %s | %s | %s | %s | %.1f %% | %s |", load, who,
		thousands(c.Rate), thousands(c.Low), thousands(c.High), against(ours3), against(ours1),
		digits(c.P50), digits(c.P99), digits(c.Max), digits(c.ClientCPU), digits(c.ServerCPU), digits(c.ClientCPU+c.ServerCPU),
		100*c.Admitted, rounds)
}

// memoryTable writes what keys take.
func (r *Results) memoryTable(w io.Writer) {
	if len(r.Memory) == 0 {
		return
	}
	fmt.Fprint(w, "\n### Memory, bytes a key\n\nEach replica of ours and of Redis, all three daemons of gubernator, less what they took without keys.\n"+
		"Held is the live heap of ours, with its log and results, and used_memory of Redis.\n\n"+
		"| keys | who | resident after filling | 75 s later | held after filling | 75 s later |\n|---|---|---|---|---|---|\n")
	for i := range r.Memory {
		m := &r.Memory[i]
		holds := func(look int) string {
			if v := m.perKey(held, look); v > 0 {
				return fmt.Sprintf("%.1f", v)
			}
			return "not told"
		}
		fmt.Fprintf(w, "| %s | %s | %.0f | %.0f | %s | %s |\n", thousands(float64(m.Keys)), titleOf(m.System),
			m.perKey(resident, 1), m.perKey(resident, 2), holds(1), holds(2))
	}
}

// titleOf is what people call a contender.
func titleOf(name string) string {
	for _, c := range contenders {
		if c.Name == name {
			return c.Title
		}
	}
	return name
}

// notes stand under every table.
const notes = `What these figures do not compare:
- ringlimit answers an admission when two of three nodes hold it, and a kill of any one node loses none. Redis without
  WAIT answers when one process holds it: what its replica has not got yet is lost with it, and budgets come back. WAIT 1
  waits until the replica has received it, but undoes nothing when it has not, and no failover of Redis promises to keep it.
- gubernator keeps each bucket in one daemon alone: when that ends, its buckets are full again. What it calls a token
  bucket is filled anew all at once, a window after its first take.
- After a crash ringlimit elects another leader by itself. Redis needs Sentinel or a cluster for that; none runs here, and
  neither its cost nor its gaps are in these figures.
- All keep everything in memory; Redis' files are off. Redis runs two processes, ringlimit and gubernator three each.
- One machine, loopback: no network's delay, and clients and servers share all processors.
- A denial is no commit in ringlimit and no write in the script: neither is replicated.
`

// thousands writes a whole number in groups of three digits.
func thousands(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// digits writes three of them, or what stands before the point.
func digits(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// short keeps an error in one cell of a table.
func short(s string) string {
	s = strings.NewReplacer("\n", " ", "|", "/").Replace(s)
	if r := []rune(s); len(r) > 120 {
		return string(r[:120]) + "…"
	}
	return s
}
