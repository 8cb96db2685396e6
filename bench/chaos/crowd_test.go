package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

// TestWhatASpenderHasWrittenCounts: whole lines, whenever they come; one that a kill cut
// off does not, and one that is no line of its own is an error.
func TestWhatASpenderHasWrittenCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s := &spender{Node: &fleet.Node{Name: "s"}}
	if s.log, err = os.Open(path); err != nil {
		t.Fatal(err)
	}
	defer s.log.Close()
	for _, step := range []struct {
		text  string
		told  int
		held  int64
		wrong bool
	}{
		{text: ""},
		{text: `{"Held":0,"Asked":0}` + "\n"},
		{text: `{"Call":5,"Return":9,"Admitted":true,"Held":40,"Ask`},
		{text: `ed":2}` + "\n" + `{"Call":9,"Return":11,"Code":"busy","Held":36`, told: 1, held: 40},
		{text: "\npanic: boom\n", told: 1, held: 40, wrong: true},
	} {
		if _, err := out.WriteString(step.text); err != nil {
			t.Fatal(err)
		}
		if err := s.read(); (err != nil) != step.wrong || len(s.told) != step.told || s.last.Held != step.held {
			t.Errorf("%q: %v, %+v", step.text, err, s.told)
		}
	}
}

// TestAnswersOfSpendersAreOperations, which the checkers of leased buckets judge.
func TestAnswersOfSpendersAreOperations(t *testing.T) {
	k := key{"acme", "leased"}
	for outcome, l := range map[check.Outcome]told{
		check.Admitted: {Call: 1, Return: 2, Admitted: true, Leased: true},
		check.Denied:   {Call: 1, Return: 2},
		check.Refused:  {Call: 1, Return: 2, Code: "busy"},
		check.Unknown:  {Call: 1, Return: 2, Code: "outcome_unknown"},
	} {
		if o := l.op(k, 3); o.Outcome != outcome || o.Cost != spentAtOnce || o.Client != 3 || (o.Return == check.Forever) != (outcome == check.Unknown) {
			t.Errorf("%v: %+v", outcome, o)
		}
	}
	s := check.Setup{Limits: limits(), MinAnswers: 1, Strict: true}
	for code, found := range map[string]int{"busy": 0, "degraded": 1, "internal": 1} {
		l := told{Return: time.Second, Code: code}
		if got := check.Findings([]check.Verdict{check.Codes(&s, []check.Op{l.op(k, 0)})}); len(got) != found {
			t.Errorf("%s: %v", code, got)
		}
	}
}
