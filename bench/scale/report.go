package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os/exec"
	"strings"
	"text/tabwriter"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// Report is all that one run of the command found out.
type Report struct {
	Machine   fleet.Machine `json:"machine"`
	Speed     Speed         `json:"speed"`     // of the machine, before
	Ringlimit string        `json:"ringlimit"` // its version
	Results   []*Result     `json:"results"`
}

// Result is what one measurement found out.
type Result struct {
	Name   string   `json:"name"`
	What   string   `json:"what"`
	Rows   []Row    `json:"rows"`
	Checks []Check  `json:"checks"`
	Notes  []string `json:"notes,omitempty"`
	Error  string   `json:"error,omitempty"` // why it is not complete
}

// Row is a line of figures.
type Row struct {
	Label   string
	Figures []Figure
}

// Figure is a number by the name that says its unit.
type Figure struct {
	Name  string
	Value float64
}

// Check holds a figure to what the project aims at.
type Check struct {
	What    string  `json:"what"`
	Value   float64 `json:"value"`
	Aim     float64 `json:"aim"`
	AtLeast bool    `json:"at_least"` // the aim is a least value, not a most
	Met     bool    `json:"met"`
}

func newReport(binary string) *Report {
	version, _ := exec.Command(binary, "--version").Output()
	return &Report{Machine: fleet.ThisMachine(), Speed: speedNow(), Ringlimit: strings.TrimSpace(string(version))}
}

// row adds a line.
func (r *Result) row(label string, figures ...Figure) {
	r.Rows = append(r.Rows, Row{label, figures})
}

// note adds a sentence.
func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// atMost and atLeast hold a value to an aim. What is not a number misses it.
func (r *Result) atMost(what string, value, aim float64) {
	r.Checks = append(r.Checks, Check{what, value, aim, false, value <= aim})
}

func (r *Result) atLeast(what string, value, aim float64) {
	r.Checks = append(r.Checks, Check{what, value, aim, true, value >= aim})
}

// met says whether every measurement was completed and every aim reached.
func (r *Report) met() bool {
	for _, x := range r.Results {
		if x.Error != "" {
			return false
		}
		for _, c := range x.Checks {
			if !c.Met {
				return false
			}
		}
	}
	return true
}

// MarshalJSON makes figures the fields of an object. What is no finite number is null.
func (r Row) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"label": r.Label}
	for _, f := range r.Figures {
		fields[f.Name] = nil
		if !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0) {
			fields[f.Name] = f.Value
		}
	}
	return json.Marshal(fields)
}

// MarshalJSON is that of the fields, but a value that is no finite number is null.
func (c Check) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"what": c.What, "value": nil, "aim": c.Aim, "at_least": c.AtLeast, "met": c.Met}
	if !math.IsNaN(c.Value) && !math.IsInf(c.Value, 0) {
		fields["value"] = c.Value
	}
	return json.Marshal(fields)
}

// write prints the report as text or as JSON.
func (r *Report) write(w io.Writer, format string) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	m := r.Machine
	fmt.Fprintf(w, "%s, %d cores, %s, Linux %s, %s, %s; %s\n", m.CPU, m.Cores, m.Memory, m.Kernel, m.Go, r.Ringlimit, m.Date)
	fmt.Fprintf(w, "before: %.1f ns for six dependent operations, %.0f ns for a load from a random place in 64 MB\n", r.Speed.Arithmetic, r.Speed.Memory)
	for _, x := range r.Results {
		if err := x.write(w); err != nil {
			return err
		}
	}
	return nil
}

// write prints rows of the same figures as one table.
func (r *Result) write(w io.Writer) error {
	fmt.Fprintf(w, "\n%s: %s\n", r.Name, r.What)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := ""
	for _, row := range r.Rows {
		line := "\t"
		for _, f := range row.Figures {
			line += f.Name + "\t"
		}
		if line != head {
			head = line
			fmt.Fprintln(tab, line)
		}
		fmt.Fprint(tab, row.Label, "\t")
		for _, f := range row.Figures {
			fmt.Fprint(tab, short(f.Value), "\t")
		}
		fmt.Fprintln(tab)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, " ", n)
	}
	for _, c := range r.Checks {
		fmt.Fprintln(w, " ", c)
	}
	if r.Error != "" {
		fmt.Fprintln(w, "  NOT COMPLETE:", r.Error)
	}
	return nil
}

func (c Check) String() string {
	verdict, relation := "MISSED", "at most"
	if c.Met {
		verdict = "met"
	}
	if c.AtLeast {
		relation = "at least"
	}
	return fmt.Sprintf("%-6s  %s: %s, aim %s %s", verdict, c.What, short(c.Value), relation, short(c.Aim))
}

// short prints a number with as many digits as say something.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
