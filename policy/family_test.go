package policy

import (
	"strings"
	"testing"
)

// TestMostSpecificOfAFamily is the order within a family, from the most specific
// to the least: each gives way to all before it.
func TestMostSpecificOfAFamily(t *testing.T) {
	order := [][]string{
		{"route", "GET:/v1/items", "plan", "gold"},
		{"plan", "gold", "route", "GET*"},
		{"route", "GET:/v1/items", "plan", "g*"},
		{"route", "GET:/v1/items", "plan", "*"},
		{"plan", "gold"},
		{"route", "GET:/v1/i*"},
		{"route", "GET:/v1/*"},
		{"region", "*", "plan", "*"},
		{"region", "*"},
		{},
	}
	r := &Request{Tenant: "t", Route: "GET:/v1/items", Plan: "gold", Region: "eu"}
	for first := range order {
		var policies []Policy
		for i, match := range order[first:] {
			// The ids run against the order: they decide among equals only.
			policies = append(policies, Policy{ID: string(rune('z' - i)), Family: "f", Match: On(match...), Scope: []string{"tenant"}})
		}
		policies = append(policies, Policy{ID: "other", Scope: []string{"tenant"}})
		if got := ids(compile(t, []string{"tenant"}, policies...).Match(r, nil)); got != "other z" {
			t.Errorf("from %v: %q", order[first], got)
		}
	}
}

func TestFamilies(t *testing.T) {
	p := func(id, family string, mode Mode, match ...string) Policy {
		return Policy{ID: id, Family: family, Mode: mode, Match: On(match...), Scope: []string{"tenant"}}
	}
	r := &Request{Tenant: "t", Route: "GET:/a", Plan: "gold"}
	for name, c := range map[string]struct {
		policies []Policy
		want     string
	}{
		"alone":                  {[]Policy{p("a", "f", Enforce)}, "a"},
		"own id":                 {[]Policy{p("a", "", Enforce), p("b", "a", Enforce, "plan", "gold")}, "b"},
		"own id wins":            {[]Policy{p("a", "", Enforce, "plan", "gold"), p("b", "a", Enforce)}, "a"},
		"two families":           {[]Policy{p("a", "f", Enforce), p("b", "f", Enforce, "plan", "gold"), p("c", "g", Enforce)}, "b c"},
		"specific does not fit":  {[]Policy{p("a", "f", Enforce), p("b", "f", Enforce, "plan", "silver")}, "a"},
		"equal, smaller id":      {[]Policy{p("b", "f", Enforce, "plan", "gold"), p("a", "f", Enforce, "route", "GET:/a")}, "a"},
		"disabled shadows none":  {[]Policy{p("a", "f", Enforce), p("b", "f", Disabled, "plan", "gold")}, "a"},
		"shadow lifts none":      {[]Policy{p("a", "f", Enforce), p("b", "f", Shadow, "plan", "gold")}, "a b"},
		"shadow less specific":   {[]Policy{p("a", "f", Shadow), p("b", "f", Enforce, "plan", "gold")}, "b"},
		"two shadows":            {[]Policy{p("a", "f", Shadow), p("b", "f", Shadow, "plan", "gold")}, "b"},
		"shadow between":         {[]Policy{p("a", "f", Enforce), p("b", "f", Shadow, "plan", "*"), p("c", "f", Enforce, "plan", "gold")}, "c"},
		"shadow above two":       {[]Policy{p("a", "f", Enforce), p("b", "f", Enforce, "plan", "*"), p("c", "f", Shadow, "plan", "gold")}, "b c"},
		"lacking scope, no rank": {[]Policy{p("a", "f", Enforce), {ID: "b", Family: "f", Match: On("plan", "gold"), Scope: []string{"user"}}}, "a"},
	} {
		if got := ids(compile(t, []string{"tenant"}, c.policies...).Match(r, nil)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestEqualMatchesInAFamilyAreRefused(t *testing.T) {
	p := func(id, family string, match ...string) *Policy {
		return &Policy{ID: id, Family: family, Match: On(match...), Scope: []string{"tenant"}, Limit: tokens(1, 1, 1e9)}
	}
	for name, c := range map[string]struct {
		a, b *Policy
		ok   bool
	}{
		"same":            {p("a", "f", "plan", "x"), p("b", "f", "plan", "x"), false},
		"both any":        {p("a", "f"), p("b", "f"), false},
		"by own id":       {p("a", "b"), p("b", ""), false},
		"other family":    {p("a", "f"), p("b", "g"), true},
		"other value":     {p("a", "f", "plan", "x"), p("b", "f", "plan", "y"), true},
		"prefix or exact": {p("a", "f", "plan", "x"), p("b", "f", "plan", "x*"), true},
		"other name":      {p("a", "f", "plan", "x"), p("b", "f", "region", "x"), true},
		"no confusion":    {p("a", "f", "plan", "x", "region", "y"), p("b", "f", "plan", "xregiony"), true},
	} {
		s := &Set{Home: []string{"tenant"}, Policies: []*Policy{c.a, c.b}}
		err, err2 := s.Validate(), s.CheckChanged(s.Policies[1:])
		if (err == nil) != c.ok || (err2 == nil) != c.ok {
			t.Errorf("%s: %v, %v", name, err, err2)
		}
		if !c.ok && (!strings.HasPrefix(err.Error(), "policies[1].match: {") || !strings.HasPrefix(err2.Error(), `policy "b".match: {`)) {
			t.Errorf("%s: %v, %v", name, err, err2)
		}
	}
}
