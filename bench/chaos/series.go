package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// counted is a blow of a series, and the time that is its: until the next one.
type counted struct {
	injury
	blow
	from, to time.Duration // since the arena began
}

// row is what all faults of a kind, or of one way of it, did. Times in ms.
type row struct {
	Kind     string  `json:"kind"`
	N        int     `json:"n"`
	Stalled  int     `json:"stalled"` // of these, in which the machine itself stood still
	P50      float64 `json:"served_p50_ms"`
	P99      float64 `json:"served_p99_ms"`
	Max      float64 `json:"served_max_ms"`
	Whole    float64 `json:"whole_max_ms"` // from the healing until 3/3
	Gap      float64 `json:"worst_gap_ms"` // the longest that one request waited
	Requests int     `json:"requests"`
	Excused  int     `json:"requests_in_stalls"` // under way then, or soon after: counted nowhere else
	Share    float64 `json:"share_within_1s"`    // answered so
	Errors   int     `json:"errors"`
	Changes  int     `json:"leader_changes"` // over all groups
	Unmoved  int     `json:"leader_unmoved"` // faults that left the struck group its leader: not among the times until served
}

// tabulate makes a row of each kind, of each way of one, and of all; before has the
// terms of all groups at the beginning. Requests count to the fault after which they
// were called.
func tabulate(before map[uint32]uint64, all []counted, recs []record, stalled []stall) (rows []row) {
	changes := changesOfLeader(before, recs)
	recs = slices.SortedFunc(slices.Values(recs), func(a, b record) int { return cmp.Compare(a.call, b.call) })
	add := func(name string, of func(c *counted) bool) {
		var mine []counted
		for i := range all {
			if of(&all[i]) {
				mine = append(mine, all[i])
			}
		}
		if len(mine) > 0 {
			rows = append(rows, rowOf(name, mine, recs, changes, stalled))
		}
	}
	seen := map[string]bool{}
	for _, c := range all {
		if !seen[c.kind] {
			seen[c.kind] = true
			add(c.kind, func(o *counted) bool { return o.kind == c.kind })
		}
	}
	for _, c := range all {
		if name := c.name(); !seen[name] {
			seen[name] = true
			add(name, func(o *counted) bool { return o.kind == c.kind && o.way == c.way })
		}
	}
	add("all", func(*counted) bool { return true })
	return rows
}

// rowOf is the row of some faults; recs are in order of their calls.
func rowOf(name string, blows []counted, recs []record, changes []change, stalled []stall) row {
	r := row{Kind: name, N: len(blows)}
	var outages []time.Duration
	var whole, gap time.Duration
	inTime := 0
	for i := range blows {
		c := &blows[i]
		whole = max(whole, c.recovery)
		if c.stalled(stalled) {
			r.Stalled++
		}
		moved := false
		for _, x := range changes {
			if x.at >= c.from && x.at < c.to {
				r.Changes++
				moved = moved || x.group == c.group && x.at >= c.struck
			}
		}
		if moved {
			outages = append(outages, c.outage)
		} else {
			r.Unmoved++
		}
		for _, q := range recs[calledBefore(recs, c.from):calledBefore(recs, c.to)] {
			if excused(q, stalled) {
				r.Excused++
				continue
			}
			r.Requests++
			gap = max(gap, q.ret-q.call)
			switch {
			case q.err != nil:
				r.Errors++
			case q.ret-q.call <= answerIn:
				inTime++
			}
		}
	}
	r.Share = float64(inTime) / float64(max(1, r.Requests))
	r.P50, r.P99, r.Max = ms(quantile(outages, 0.5)), ms(quantile(outages, 0.99)), ms(quantile(outages, 1))
	r.Whole, r.Gap = ms(whole), ms(gap)
	return r
}

// calledBefore counts those, of records in order of their calls.
func calledBefore(recs []record, t time.Duration) int {
	n, _ := slices.BinarySearchFunc(recs, t, func(r record, t time.Duration) int { return cmp.Compare(r.call, t) })
	return n
}

// stalled says whether the machine stood still while the fault was counted.
func (c *counted) stalled(seen []stall) bool {
	for _, s := range seen {
		if s.from < c.to && c.from < s.to {
			return true
		}
	}
	return false
}

// aims are how soon half of the faults of a kind must leave every slot served.
var aims = map[string]time.Duration{"kill": 100 * time.Millisecond, "pause": 500 * time.Millisecond, "cut": 500 * time.Millisecond}

// broken is what a row says that was not promised. Faults that left the leader where it
// was have tried nothing: there may be few of them.
func (r *row) broken() (broken []string) {
	if aim, ok := aims[r.Kind]; ok && r.P50 > ms(aim) {
		broken = append(broken, fmt.Sprintf("all slots were served after %.0f ms in half of %d faults, want at most %v", r.P50, r.N, aim))
	}
	if r.Share < leastShare {
		broken = append(broken, fmt.Sprintf("%.3f %% of %d requests were answered within %v, want %.1f %%", 100*r.Share, r.Requests, answerIn, 100*leastShare))
	}
	if 10*r.Unmoved > r.N {
		broken = append(broken, fmt.Sprintf("%d of %d faults left the group its leader", r.Unmoved, r.N))
	}
	return broken
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// writeRows prints the rows of a series as a table; of none nothing.
func writeRows(w io.Writer, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "FAULT\tN\tSTALLED\tSERVED P50 ms\tP99\tMAX\t3/3 MAX\tWORST GAP ms\tREQUESTS\tIN STALLS\tWITHIN 1 s\tERRORS\tLEADER CHANGES\tNONE")
	for _, r := range rows {
		fmt.Fprintf(tab, "%s\t%d\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%d\t%.4f %%\t%d\t%d\t%d\n", r.Kind, r.N, r.Stalled, r.P50, r.P99, r.Max, r.Whole, r.Gap,
			r.Requests, r.Excused, 100*r.Share, r.Errors, r.Changes, r.Unmoved)
	}
	return tab.Flush()
}
