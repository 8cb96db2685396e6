package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
	"github.com/ringlimit/ringlimit/policy"
)

func TestPolicyIsValid(t *testing.T) {
	if _, err := policy.Parse("policies.yaml", []byte(policies)); err != nil {
		t.Error(err)
	}
}

func TestParseIO(t *testing.T) {
	if n, err := parseIO("rchar: 5\nsyscr: 7\nsyscw: 42\n"); err != nil || n != 42 {
		t.Errorf("%d, %v; want 42", n, err)
	}
	if _, err := parseIO("rchar: 5\n"); err == nil {
		t.Error("nothing was parsed")
	}
}

// TestFiguresAboveTheAimsAreToldApart: of one node or one pair already.
func TestFiguresAboveTheAimsAreToldApart(t *testing.T) {
	f := &fleet.Fleet{Nodes: []*fleet.Node{{Name: "a"}, {Name: "b"}}}
	now := time.Now()
	counted := func(seconds int, cpu time.Duration, writes uint64) counts {
		return counts{
			at: now.Add(time.Duration(seconds) * time.Second), cpu: []time.Duration{0, cpu}, syscalls: []uint64{0, 100},
			pairs: []traffic{{"a", "b", writes, 10}, {"b", "a", 0, 0}},
		}
	}
	cases := []struct {
		name   string
		cpu    time.Duration
		writes uint64
		met    bool
	}{
		{"within", 500 * time.Millisecond, 300, true},
		{"too much CPU", 510 * time.Millisecond, 0, false},
		{"too many writes", 0, 301, false},
	}
	for _, c := range cases {
		r := compare(f, counted(0, 0, 0), counted(10, c.cpu, c.writes))
		if r.Met != c.met {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

func TestResultsAreWritten(t *testing.T) {
	r := result{Nodes: 3, PerNode: []node{{"a", 0.02, 10}}, Pairs: []pair{{"a", "b", 20, 1}, {"b", "a", 24, 1}}}
	var text, out bytes.Buffer
	if err := write(&text, "text", []result{r}); err != nil || !strings.Contains(text.String(), "22.0") || !strings.Contains(text.String(), "MISSED") {
		t.Errorf("%v:\n%s", err, &text)
	}
	var back []result
	if err := write(&out, "json", []result{r}); err != nil || json.Unmarshal(out.Bytes(), &back) != nil || len(back[0].Pairs) != 2 {
		t.Errorf("%v: %s", err, &out)
	}
}

func TestParseRefusesWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-nodes", "3,x"}, {"-nodes", "1"}, {"-o", "xml"}, {"-buckets", "0"}, {"-nonsense"}} {
		if _, err := parse(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q were taken", args)
		}
	}
	if o, err := parse(nil, &bytes.Buffer{}); err != nil || len(o.nodes) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
}
