// Package report says how a trial went, for people (HTML, in one file that needs no
// network) and for programs (JSON): what was broken when, what callers noticed of
// it, who led, and what each checker came to.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Report is one trial. All durations are ns since its act began.
type Report struct {
	Mode  string    `json:"mode"`
	Seed  uint64    `json:"seed"`
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	Notes []string  `json:"notes,omitempty"` // what could not be tried here and why, and what was tried instead
	Acts  []Act     `json:"acts"`
	State State     `json:"state"`
}

// State is how an act or a whole trial ended.
type State string

// The states, the worst first.
const (
	Violated State = "violated" // a promise was broken
	Void     State = "void"     // too little happened to prove anything
	Held     State = "held"
)

// Act is what happened on one cluster.
type Act struct {
	Name     string         `json:"name"`
	Nodes    int            `json:"nodes"` // at its beginning
	Lasted   time.Duration  `json:"lasted_ns"`
	State    State          `json:"state"`
	Faults   []Fault        `json:"faults"`
	Counts   map[string]int `json:"counts"` // of what was done
	Stalls   []Span         `json:"stalls,omitempty"`
	Broken   []string       `json:"broken,omitempty"` // promises that no history shows
	Void     []string       `json:"void,omitempty"`   // why it proves nothing
	Verdicts []Verdict      `json:"verdicts"`
	Figures  Figures        `json:"figures"`
	Bins     []Bin          `json:"bins"`
	Leaders  []LeaderChange `json:"leader_changes"`

	Requests []Request `json:"-"` // Finish makes the figures of them
}

// Fault is one thing that was broken. At To all was put back that it had changed itself; at
// Healed nothing was left of it.
type Fault struct {
	Name   string        `json:"name"`
	What   string        `json:"what"`
	From   time.Duration `json:"from_ns"`
	To     time.Duration `json:"to_ns"`
	Healed time.Duration `json:"healed_ns"`
}

// Span is a time.
type Span struct {
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`
}

// Verdict is what one checker came to.
type Verdict struct {
	Checker  string   `json:"checker"`
	Checked  int      `json:"checked"` // answers that it could judge
	Findings []string `json:"findings,omitempty"`
	Doubts   []string `json:"doubts,omitempty"`
}

// Request is what a caller asked once. Probes are requests of callers who wait.
type Request struct {
	Call, Return time.Duration
	Answered     bool
	Group        uint32 // that answered
	Term         uint64 // of its leader
	Probe        bool
	Plan         string
	Caller       int // who asked; a probe is of one bucket all its life
}

// LeaderChange is the first answer by the leader of a new term.
type LeaderChange struct {
	At    time.Duration `json:"at_ns"`
	Group uint32        `json:"group"`
	Term  uint64        `json:"term"`
}

// Finish makes the figures and the state.
func (a *Act) Finish() {
	a.Bins = bins(a.Requests, a.Lasted)
	a.Leaders = leaderChanges(a.Requests)
	a.Figures = figures(a.Requests)
	switch {
	case len(a.Broken) > 0 || a.findings() > 0:
		a.State = Violated
	case len(a.Void) > 0:
		a.State = Void
	default:
		a.State = Held
	}
}

func (a *Act) findings() (n int) {
	for _, v := range a.Verdicts {
		n += len(v.Findings)
	}
	return n
}

// Line is the act in one line.
func (a *Act) Line() string {
	return fmt.Sprintf("%s: %s: %d faults, %d requests, %.2f %% of %d probes answered within 1 s, longest wait %v, %d leader changes, in %.0f s",
		a.Name, a.State, len(a.Faults), a.Figures.Requests, 100*a.Figures.WithinSecond, a.Figures.Probes,
		a.Figures.LongestWait.Round(time.Millisecond), len(a.Leaders), a.Lasted.Seconds())
}

// Finish gives the report the worst state of its acts; a trial without any is void.
func (r *Report) Finish(now time.Time) {
	r.Ended, r.State = now, Held
	if len(r.Acts) == 0 {
		r.State = Void
	}
	for i := range r.Acts {
		switch s := r.Acts[i].State; {
		case s == Violated:
			r.State = Violated
		case s == Void && r.State == Held:
			r.State = Void
		}
	}
}

// Write puts report.json and report.html into a directory.
func (r *Report) Write(dir string) error {
	return errors.Join(
		toFile(filepath.Join(dir, "report.json"), r.JSON),
		toFile(filepath.Join(dir, "report.html"), r.HTML),
	)
}

func toFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// JSON writes the report for programs.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}
