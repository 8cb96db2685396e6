// Package check holds a cluster to its promises. What callers saw goes in, broken
// promises come out, each as one sentence with the operations that show it.
//
// All of it is pure: no clock, goroutine of its own, file or socket, so that a
// history can be judged again, cut down and kept as a test. Porcupine alone, which
// searches, is bounded by a time.
//
//	verdicts := check.All(setup, ops)
//	for _, f := range check.Findings(verdicts) { fmt.Println(f) }
//
// A history is one list of Op (op.go): one for each bucket that an answer spoke of.
// From answers of the client library or of plain gRPC, answer.go makes them. Setup
// (setup.go) says which bucket has which limit, and when what was broken on purpose.
//
// Each checker is a file: what it needs of the history, what it cannot see, and
// what it costs stand above its function. Those that need to know where in the log
// an answer was made take it from Op.Witness, and are silent about answers without.
package check

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is one broken promise.
type Finding struct {
	Checker  string
	Bucket   string // empty: of no single bucket
	Sentence string
	Ops      []Op // that show it, in the order in which they matter; at most a few
}

func (f Finding) String() string {
	if f.Bucket == "" {
		return f.Checker + ": " + f.Sentence
	}
	return f.Checker + ": bucket " + f.Bucket + ": " + f.Sentence
}

// Verdict is what one checker came to.
type Verdict struct {
	Checker  string
	Checked  int       // answers (or samples) that it could judge; 0 proves nothing
	Findings []Finding // broken promises
	Doubts   []string  // why something could not be judged
}

// maxFindings bounds the findings of one checker: the first of a kind say it all.
const maxFindings = 20

func (v *Verdict) find(bucket string, ops []Op, format string, args ...any) {
	if len(v.Findings) < maxFindings {
		v.Findings = append(v.Findings, Finding{v.Checker, bucket, fmt.Sprintf(format, args...), slices.Clone(ops)})
	}
}

func (v *Verdict) doubt(format string, args ...any) {
	if len(v.Doubts) < maxFindings {
		v.Doubts = append(v.Doubts, fmt.Sprintf(format, args...))
	}
}

// add joins the verdict of one bucket into that of all.
func (v *Verdict) add(o Verdict) {
	v.Checked += o.Checked
	v.Findings = append(v.Findings, o.Findings[:min(len(o.Findings), maxFindings-len(v.Findings))]...)
	v.Doubts = append(v.Doubts, o.Doubts[:min(len(o.Doubts), maxFindings-len(v.Doubts))]...)
}

// Checker judges a history. It changes neither argument.
type Checker struct {
	Name  string
	Judge func(*Setup, []Op) Verdict
}

// ofLeased are the checkers that can judge buckets of Setup.Leased too.
var ofLeased = []string{"codes", "window"}

// strict are the operations on buckets that are not leased.
func (s *Setup) strict(ops []Op) []Op {
	if len(s.Leased) == 0 {
		return ops
	}
	return slices.DeleteFunc(slices.Clone(ops), func(o Op) bool { _, leased := s.Leased[o.Bucket]; return leased })
}

// Checkers are those that judge what callers saw, the cheap ones first.
func Checkers() []Checker {
	return []Checker{
		{"exact", Exact},
		{"final", Final},
		{"codes", Codes},
		{"once", Once},
		{"whole", Whole},
		{"hints", Hints},
		{"window", Window},
		{"starved", Starved},
		{"early", Early},
		{"permits", Permits},
		{"versions", Versions},
		{"terms", Terms},
		{"order", Order},
		{"time", Time},
		{"kept", Kept},
		{"majority", Majority},
		{"epochs", Epochs},
		{"replay", Replay},
		{"linear", Linear},
	}
}

// All runs every checker. Replicas, Resources and Void judge other things and are
// called by themselves.
func All(s *Setup, ops []Op) []Verdict {
	s = s.knowing(ops)
	var verdicts []Verdict
	strict := s.strict(ops)
	for _, c := range Checkers() {
		judged := strict
		if slices.Contains(ofLeased, c.Name) {
			judged = ops
		}
		verdicts = append(verdicts, c.Judge(s, judged))
	}
	return verdicts
}

// Findings collects what verdicts found.
func Findings(verdicts []Verdict) []Finding {
	var all []Finding
	for _, v := range verdicts {
		all = append(all, v.Findings...)
	}
	return all
}

// Explain is a finding with its operations, one a line, for people.
func (f Finding) Explain() string {
	var b strings.Builder
	b.WriteString(f.String())
	for _, o := range f.Ops {
		b.WriteString("\n\t" + o.String())
	}
	return b.String()
}
