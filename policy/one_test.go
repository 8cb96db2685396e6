package policy

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// TestOnePolicyComesBack: what AppendFile writes, ParseOne makes the same policy of,
// and so does Parse of a file around it.
func TestOnePolicyComesBack(t *testing.T) {
	limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 20, Window: int64(time.Second), Burst: 40}
	open := OnUnavailable{Mode: Open, After: AfterDeadline, For: time.Minute, Then: Closed}
	for name, p := range map[string]*Policy{
		"least":    {ID: "a", Scope: []string{"tenant"}, Limit: limit},
		"all":      {ID: `a/"b c`, Family: "f", Match: On("route", "GET:/a*", "plan", "<gold>"), Scope: []string{"tenant", "api_key"}, Limit: limit, Cost: Cost{Default: 3}, OnUnavailable: open, OnStateLoss: Salvage, Mode: Disabled, Consistency: Leased},
		"no burst": {ID: "a", Scope: []string{}, Limit: bucket.Limit{Algorithm: bucket.Concurrency, Amount: 0, Window: bucket.MaxWindow}},
		"costs":    {ID: "a", Match: On("route_class", "ex*"), Scope: []string{"tenant"}, Limit: limit, Cost: Cost{Default: 1, Classes: map[string]uint64{"export": 10, "yes": 2}}},
		"closed":   {ID: "a", Scope: []string{"tenant"}, Limit: limit, OnUnavailable: OnUnavailable{Mode: Closed}},
		"odd":      {ID: "null", Match: On("a", "007", "b", "true", "c", "~"), Scope: []string{"no"}, Limit: bucket.Limit{Algorithm: bucket.LeakyBucket, Amount: 1, Window: 1_234_567, Burst: 9}},
	} {
		text := string(p.AppendFile(nil))
		got, err := ParseOne("here", []byte(text))
		if err != nil || !got.Same(p) || got.Source != "here" {
			t.Errorf("%s: %s became %+v, %v", name, text, got, err)
		}
		classes := `"route_classes":[{"name":"export","routes":["*"]},{"name":"yes","routes":["*"]}],`
		set, err := Parse("f", []byte(`{`+classes+`"policies":[`+text+`]}`))
		if err != nil || !set.Policies[0].Same(p) {
			t.Errorf("%s: a file of %s: %v", name, text, err)
		}
		p.Version = 812
		if text := string(p.AppendFile(nil)); !strings.Contains(text, `,"version":812,`) {
			t.Errorf("%s: %s has no version", name, text)
		}
	}
}

// TestExamplesComeBackOneByOne: all policies of the sample file survive both forms.
func TestExamplesComeBackOneByOne(t *testing.T) {
	text, err := os.ReadFile("../examples/policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := Parse("f", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Policies {
		if got, err := ParseOne("", p.AppendFile(nil)); err != nil || !got.Same(p) {
			t.Errorf("%s became %s, %v", p.ID, got.AppendFile(nil), err)
		}
	}
}

func TestOneBadPolicySaysWhere(t *testing.T) {
	for text, field := range map[string]string{
		`{}`: "id", `{"id":"a"}`: "scope", `[]`: "", `- a`: "", `{`: "", "a: b\n---\nc: d": "", "": "",
		`{"id":"a","scope":["tenant"],"amount":1,"window":"1s","version":7}`:                   "version",
		`{"id":"a","scope":["tenant"],"amount":1,"window":"0s"}`:                               "window",
		`{"id":"a","scope":["a","a"],"amount":1,"window":"1s"}`:                                "scope[1]",
		`{"id":"a","scope":["tenant"],"amount":1,"window":"1s","match":{"route":"/a"}}`:        "match.route",
		`{"id":"a","scope":["tenant"],"amount":1,"window":"1s","on_unavailable":{"for":"1m"}}`: "on_unavailable.for",
		`{"id":"ä","scope":["tenant"],"amount":1,"window":"1s"}`:                               "id",
		`{"id":"a","scope":["tenant"],"amount":1,"window":"1s","cost":{"export":0}}`:           "cost.export",
		`{"id":"a","scope":["tenant"],"amount":1,"window":"1s","burst":0}`:                     "burst",
		strings.Repeat("[", 200): "",
	} {
		_, err := ParseOne("here", []byte(text))
		var e *ParseError
		if !errors.As(err, &e) || e.Field != field || e.Line != 0 || e.File != "" || e.Reason == "" {
			t.Errorf("%.60s: %v, want an error about %q", text, err, field)
		}
	}
}

// FuzzParseOne: it never panics, and what it reads comes back.
func FuzzParseOne(f *testing.F) {
	f.Add([]byte(`{"id":"a","scope":["tenant"],"amount":1,"window":"1s","cost":{"export":2},"on_unavailable":"open"}`))
	f.Add([]byte("id: a\nscope: tenant\nrate_per_second: 20\nburst: 40\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseOne("", data)
		if err != nil {
			return
		}
		text := p.AppendFile(nil)
		if q, err := ParseOne("", text); err != nil || !q.Same(p) {
			t.Fatalf("%q became %s: %v", data, text, err)
		}
	})
}
