package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestVerdicts(t *testing.T) {
	cases := []struct {
		name string
		r    report
		err  error
		want verdict
	}{
		{"all rounds tested", report{Rounds: 3}, nil, verdictOK},
		{"one doubtful round of many", report{Rounds: 3, Doubts: []string{"x"}}, nil, verdictOK},
		{"mostly doubtful", report{Rounds: 1, Doubts: []string{"x", "y"}}, nil, verdictInconclusive},
		{"nothing ran", report{}, nil, verdictInconclusive},
		{"a promise was broken", report{Rounds: 3, Violations: []string{"x"}}, nil, verdictViolation},
		{"broken, then stopped", report{Violations: []string{"x"}}, errors.New("e"), verdictViolation},
		{"could not go on", report{Rounds: 3}, errors.New("e"), verdictError},
	}
	for _, c := range cases {
		if c.r.finish(c.err, time.Second); c.r.Verdict != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.r.Verdict, c.want)
		}
	}
}

func TestOnlyOKExitsWithZero(t *testing.T) {
	for v, want := range map[verdict]bool{
		verdictOK: true, verdictViolation: false, verdictInconclusive: false, verdictError: false,
	} {
		if got := allOK([]*report{{Verdict: verdictOK}, {Verdict: v}}); got != want {
			t.Errorf("%s: %v", v, got)
		}
	}
}

func TestReportsAreWritten(t *testing.T) {
	r := &report{Scenario: "exact", Rounds: 2}
	r.show("takes", "%d", 1)
	r.show("takes", "%d", 500)
	for range 12 {
		r.violate("round 1", "lost a token")
	}
	r.finish(nil, time.Second)

	var text bytes.Buffer
	if err := write(&text, "text", []*report{r}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"takes 500", "round 1: lost a token", "2 more"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, &text)
		}
	}
	var out bytes.Buffer
	if err := write(&out, "json", []*report{r}); err != nil {
		t.Fatal(err)
	}
	var back []report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back) != 1 || len(back[0].Violations) != 12 {
		t.Errorf("%v: %+v", err, back)
	}
}

func TestWrongUsageExitsWithTwo(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"-rlnode", "no-such-binary", "exact"},
		{"-o", "xml", "-rlnode", "report.go", "exact"},
		{"-rlnode", "report.go", "no-such-scenario"},
		{"-rounds", "-1", "-rlnode", "report.go", "exact"},
		{"-nonsense"},
	} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, &stderr, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%q: exit code %d, said %q", args, code, &stderr)
		}
	}
}

func TestPick(t *testing.T) {
	all, err := pick([]string{"all"}, false)
	if err != nil || len(all) != len(scenarios) {
		t.Errorf("all: %d scenarios, %v", len(all), err)
	}
	short, err := pick([]string{"all"}, true)
	if err != nil || len(short) == 0 || len(short) >= len(all) {
		t.Errorf("all that is short: %d scenarios of %d, %v", len(short), len(all), err)
	}
	two, err := pick([]string{"roll", "term"}, true)
	if err != nil || len(two) != 2 || two[0].name != "roll" {
		t.Errorf("two: %v, %v", two, err)
	}
}
