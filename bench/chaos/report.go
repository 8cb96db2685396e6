package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// verdict is how a scenario ended.
type verdict string

const (
	verdictOK           verdict = "ok"
	verdictViolation    verdict = "violation"    // a promise was broken
	verdictInconclusive verdict = "inconclusive" // too little ran to test the promise
	verdictError        verdict = "error"        // the scenario itself could not go on
)

// report is the outcome of one scenario. It is filled by one goroutine.
type report struct {
	Scenario   string   `json:"scenario"`
	Verdict    verdict  `json:"verdict"`
	Seconds    float64  `json:"seconds"`
	Rounds     int      `json:"rounds"` // that tested the promise
	Figures    []figure `json:"figures"`
	Blows      []row    `json:"blows,omitempty"` // of a series of faults
	Violations []string `json:"violations,omitempty"`
	Doubts     []string `json:"doubts,omitempty"` // why a round tested nothing
	Err        string   `json:"error,omitempty"`
}

// figure is one measured value, in words for people.
type figure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// violate adds broken promises, each with where it happened.
func (r *report) violate(where string, broken ...string) {
	for _, b := range broken {
		r.Violations = append(r.Violations, where+": "+b)
	}
}

// doubt says why something tested nothing.
func (r *report) doubt(format string, args ...any) {
	r.Doubts = append(r.Doubts, fmt.Sprintf(format, args...))
}

// show sets a figure; a later round replaces an earlier one's.
func (r *report) show(name, format string, args ...any) {
	value := fmt.Sprintf(format, args...)
	for i := range r.Figures {
		if r.Figures[i].Name == name {
			r.Figures[i].Value = value
			return
		}
	}
	r.Figures = append(r.Figures, figure{name, value})
}

// finish derives the verdict. Doubts alone do not spoil a scenario if most of
// its rounds did test the promise.
func (r *report) finish(err error, took time.Duration) {
	r.Seconds = took.Seconds()
	switch {
	case len(r.Violations) > 0:
		r.Verdict = verdictViolation
	case err != nil:
		r.Verdict = verdictError
	case r.Rounds == 0 || len(r.Doubts) > r.Rounds:
		r.Verdict = verdictInconclusive
	default:
		r.Verdict = verdictOK
	}
	if err != nil {
		r.Err = err.Error()
	}
}

// line is the report in one line.
func (r *report) line() string {
	return fmt.Sprintf("%-16s %-12s %d rounds in %.1f s", r.Scenario, r.Verdict, r.Rounds, r.Seconds)
}

func allOK(reports []*report) bool {
	for _, r := range reports {
		if r.Verdict != verdictOK {
			return false
		}
	}
	return true
}

// write prints all reports as a table or as JSON.
func write(w io.Writer, format string, reports []*report) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(reports)
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "SCENARIO\tVERDICT\tROUNDS\tSECONDS\tFIGURES")
	for _, r := range reports {
		var figures []string
		for _, f := range r.Figures {
			figures = append(figures, f.Name+" "+f.Value)
		}
		fmt.Fprintf(tab, "%s\t%s\t%d\t%.1f\t%s\n", r.Scenario, r.Verdict, r.Rounds, r.Seconds, strings.Join(figures, ", "))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, r := range reports {
		if err := writeRows(w, r.Blows); err != nil {
			return err
		}
		writeDetails(w, r)
	}
	return nil
}

// writeDetails prints what a table has no room for; at most ten lines of a kind.
func writeDetails(w io.Writer, r *report) {
	list := func(kind string, lines []string) {
		for i, l := range lines {
			if i == 10 {
				fmt.Fprintf(w, "%s: %s: … %d more\n", r.Scenario, kind, len(lines)-i)
				return
			}
			fmt.Fprintf(w, "%s: %s: %s\n", r.Scenario, kind, l)
		}
	}
	list("violation", r.Violations)
	list("inconclusive", r.Doubts)
	if r.Err != "" {
		list("error", []string{r.Err})
	}
}
