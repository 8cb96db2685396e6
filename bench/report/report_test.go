package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// trial is one with an act of a second: a fault, two leaders, and one probe that
// waited for 300 ms; its bucket moves at the end.
func trial() *Report {
	r := &Report{Mode: "safety", Seed: 7, Acts: []Act{{
		Name: "an <act>", Nodes: 3, Lasted: time.Second,
		Faults: []Fault{{Name: "kill", What: "killed a & b", From: 200 * time.Millisecond, To: 400 * time.Millisecond, Healed: 500 * time.Millisecond}},
		Stalls: []Span{{From: 600 * time.Millisecond, To: 700 * time.Millisecond}},
		Counts: map[string]int{"kills": 1},
	}}}
	a := &r.Acts[0]
	for i := range 20 {
		at := time.Duration(i) * 50 * time.Millisecond
		q := Request{Call: at, Return: at + 2*time.Millisecond, Answered: i != 5, Group: 0, Term: 1, Probe: true, Plan: "probe"}
		if i == 6 {
			q.Return = at + 300*time.Millisecond
		}
		if i >= 7 {
			q.Term = 2
		}
		if i >= 15 { // its bucket has moved
			q.Group = 3
		}
		a.Requests = append(a.Requests, q)
	}
	a.Verdicts = []Verdict{{Checker: "exact", Checked: 9}}
	a.Finish()
	r.Finish(r.Began.Add(time.Second))
	return r
}

func TestFiguresTellWhatCallersMet(t *testing.T) {
	a := trial().Acts[0]
	f := a.Figures
	if f.Probes != 20 || f.Answered != 19 || f.LongestWait != 300*time.Millisecond || f.P50 != 2*time.Millisecond || f.WithinSecond != 0.95 {
		t.Errorf("%+v", f)
	}
	if f.WorstGap[0] != 150*time.Millisecond || len(f.WorstGap) != 1 {
		t.Errorf("worst gap %v", f.WorstGap)
	}
	if len(a.Leaders) != 1 || a.Leaders[0].Term != 2 {
		t.Errorf("leader changes %v", a.Leaders)
	}
	if b := a.Bins[2]; b.Failed != 1 || b.Answered != 1 {
		t.Errorf("the bin of the request that failed: %+v", b)
	}
}

// TestStateIsTheWorst: of findings, doubts about the whole and nothing of them.
func TestStateIsTheWorst(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*Act)
		want State
	}{
		{"nothing", func(*Act) {}, Held},
		{"void", func(a *Act) { a.Void = []string{"too few"} }, Void},
		{"a finding", func(a *Act) { a.Void = []string{"too few"}; a.Verdicts[0].Findings = []string{"two of one"} }, Violated},
		{"a breach", func(a *Act) { a.Broken = []string{"not whole"} }, Violated},
	} {
		r := trial()
		c.do(&r.Acts[0])
		r.Acts[0].Finish()
		if r.Finish(r.Ended); r.State != c.want {
			t.Errorf("%s: %s, want %s", c.name, r.State, c.want)
		}
	}
	r := &Report{}
	if r.Finish(time.Time{}); r.State != Void {
		t.Errorf("a trial without acts is %s", r.State)
	}
}

// TestPageIsWholeAndEscaped: one file, nothing loaded from elsewhere, no markup from
// what was found.
func TestPageIsWholeAndEscaped(t *testing.T) {
	r := trial()
	r.Acts[0].Verdicts[0].Findings = []string{"exact: <script>\n\t[1s 2s] a take"}
	r.Acts[0].Finish()
	var html, js bytes.Buffer
	if err := r.HTML(&html); err != nil {
		t.Fatal(err)
	}
	page := html.String()
	for _, want := range []string{"<svg", "killed a &amp; b", "&lt;script&gt;", "an &lt;act&gt;", "1 kills", "violated"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	for _, not := range []string{"<script", "http://", "https://", "src=", "ZgotmplZ"} {
		if strings.Contains(page, not) {
			t.Errorf("%q in the page", not)
		}
	}
	if err := r.JSON(&js); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(js.Bytes(), &back); err != nil || back.Acts[0].Figures.Probes != 20 || len(back.Acts[0].Bins) != 11 {
		t.Errorf("%v: %+v", err, back)
	}
}
