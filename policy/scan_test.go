package policy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plainly reads a set by package json alone.
func plainly(t testing.TB, data []byte) (*Set, error) {
	t.Helper()
	var in setJSON
	if err := strict(data, &in); err != nil {
		return nil, err
	}
	out := &Set{Policies: []*Policy{}}
	for i := range in.Policies {
		p, err := in.Policies[i].policy()
		if err != nil {
			return nil, err
		}
		out.Policies = append(out.Policies, p)
	}
	return out, nil
}

func scanned() *Set {
	full := &Policy{
		ID: "full", Version: 7, Family: "f", Match: On("route", "GET:/*", "plan", "free"), Scope: []string{"tenant", "api_key"},
		Limit: tokens(20, 40, 1e9), Cost: Cost{Default: 3},
		OnUnavailable: OnUnavailable{Mode: Open, After: time.Second, For: time.Minute, Then: Closed},
		OnStateLoss:   2, Mode: 1, Consistency: 1, Source: "p.yaml:12",
	}
	return &Set{Home: []string{"tenant"}, Policies: []*Policy{
		{ID: "bare", Scope: []string{}, Limit: tokens(1, 1, 1e9)},
		full,
		{ID: "slow", Scope: []string{"tenant"}, Limit: tokens(1, 1, 1e9), OnUnavailable: OnUnavailable{After: -1}},
	}}
}

func TestScannerReadsWhatJSONReads(t *testing.T) {
	classes, quoted := scanned(), scanned()
	classes.Policies[1].Cost.Classes = map[string]uint64{"export": 10}
	quoted.Policies[0].Match = On("user", `a "quoted",<name>`)
	for name, c := range map[string]struct {
		set   *Set
		scans bool
	}{
		"plain": {scanned(), true}, "none": {&Set{Home: []string{"tenant"}}, true},
		"classes": {classes, false}, "quoted": {quoted, false},
	} {
		data := c.set.Encode()
		policies, rest, ok := scanPolicies(data)
		if ok != c.scans {
			t.Errorf("%s: scanned %v", name, ok)
		}
		if ok && !json.Valid(rest) {
			t.Errorf("%s: the rest is %s", name, rest)
		}
		want, err := plainly(t, data)
		if err != nil {
			t.Fatal(err)
		}
		got := new(Set)
		if err := got.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want.Policies, append([]*Policy{}, got.Policies...)); d != "" || ok && len(policies) != len(want.Policies) {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestSetsWithPoliciesTwiceAreRefused(t *testing.T) {
	data := string(scanned().Encode())
	twice := strings.TrimSuffix(data, "}") + `,"policies":[{"id":"x"}]}`
	if err := new(Set).UnmarshalJSON([]byte(twice)); err == nil {
		t.Error("it is read")
	}
}

// FuzzScan: what the scanner reads, package json reads alike.
func FuzzScan(f *testing.F) {
	f.Add(string(scanned().Encode()))
	f.Add(`{"home":["tenant"],"no_match":"allow","policies":[{"id":"a","version":01,"match":{"a":"b","a":"c"},"scope":[],"algorithm":"token_bucket","amount":-0,"window_ns":1,"burst":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		policies, _, ok := scanPolicies([]byte(text))
		if !ok || strings.Count(strings.ToLower(text), `"policies"`) > 1 {
			return
		}
		want, err := plainly(t, []byte(text))
		if err != nil {
			return // what stands beside the policies is judged by json
		}
		if d := cmp.Diff(want.Policies, append([]*Policy{}, policies...)); d != "" {
			t.Error(d)
		}
	})
}
