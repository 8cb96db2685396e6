package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// result is what all clients did together. Latencies are those of the slowest client; they
// and the rate are of the time behind the warming, all else counts from the first call.
type result struct {
	Clients  int     `json:"clients"`
	Seconds  float64 `json:"seconds"` // from before the first began until the last had ended
	Requests int64   `json:"requests"`
	Admitted int64   `json:"admitted"`
	Errors   int64   `json:"errors"`
	Error    string  `json:"error,omitempty"` // the first one
	Rate     float64 `json:"rate"`            // the rates of the clients, added
	P50      int64   `json:"p50_us"`
	P99      int64   `json:"p99_us"`
	Max      int64   `json:"max_us"`
	Leased   uint64  `json:"leased"`   // decided from a lease
	Leases   uint64  `json:"leases"`   // asked for
	Messages uint64  `json:"messages"` // sent to nodes, for leases and for other decisions
	Granted  uint64  `json:"units_granted"`
	Returned uint64  `json:"units_returned"`
	Expired  uint64  `json:"units_expired"`
}

// sum adds up what clients did within a time.
func sum(each []outcome, took time.Duration) result {
	r := result{Clients: len(each), Seconds: took.Seconds()}
	for i := range each {
		l, w, s := &each[i].Load, &each[i].Warm, &each[i].Stats
		r.Requests, r.Admitted, r.Errors = r.Requests+l.Requests+w.Requests, r.Admitted+l.Admitted+w.Admitted, r.Errors+l.Errors+w.Errors
		r.Rate += l.Rate
		r.P50, r.P99, r.Max = max(r.P50, l.P50), max(r.P99, l.P99), max(r.Max, l.Max)
		r.Leased, r.Leases, r.Messages = r.Leased+s.Leased, r.Leases+s.Leases, r.Messages+s.Messages
		r.Granted, r.Returned, r.Expired = r.Granted+s.UnitsGranted, r.Returned+s.UnitsReturned, r.Expired+s.UnitsExpired
		r.Error = cmp.Or(r.Error, w.Error, l.Error)
	}
	return r
}

// judge holds r to the bound of leased limits, of amount a second and at once, and to
// what leases are for.
func (r *result) judge(amount uint64) error {
	bound := float64(amount) + float64(amount)*(r.Seconds+leaseTime.Seconds())
	switch {
	case float64(r.Admitted) > bound:
		return fmt.Errorf("%d admitted in %.3f s, at most %.0f may be", r.Admitted, r.Seconds, bound)
	case r.Errors > 0:
		return fmt.Errorf("%d errors, such as: %s", r.Errors, r.Error)
	case r.Admitted == 0 || r.Leased == 0:
		return fmt.Errorf("%d admitted, %d decided from leases: nothing was measured", r.Admitted, r.Leased)
	}
	return nil
}

func (r *result) write(w io.Writer, format string) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "clients\tdecisions/s\tadmitted\tp50 ms\tp99 ms\tmax ms\terrors\tfrom leases\tleases\tmessages\tunits granted\treturned\texpired\t")
	fmt.Fprintf(tab, "%d\t%.0f\t%d\t%.3f\t%.3f\t%.1f\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", r.Clients, r.Rate, r.Admitted,
		float64(r.P50)/1e3, float64(r.P99)/1e3, float64(r.Max)/1e3, r.Errors, r.Leased, r.Leases, r.Messages, r.Granted, r.Returned, r.Expired)
	return tab.Flush()
}
