package policy

import (
	"fmt"
	"strings"
	"testing"
)

func TestOneRequestInTwoPlacesIsRefused(t *testing.T) {
	p := func(scope string, match ...string) Policy {
		out := Policy{Scope: strings.Fields(scope), Match: map[string]string{}, Limit: tokens(1, 1, 1e9)}
		for i := 0; i < len(match); i += 2 {
			out.Match[match[i]] = match[i+1]
		}
		return out
	}
	for name, c := range map[string]struct {
		a, b Policy
		ok   bool
	}{
		"both at home":          {p("tenant"), p("user tenant"), true},
		"same scope":            {p("ip"), p("ip"), true},
		"same scope turned":     {p("ip user"), p("user ip"), true},
		"home and not":          {p("tenant"), p("ip"), false},
		"neither":               {p("ip"), p("user"), false},
		"part of each other":    {p("ip"), p("ip user"), false},
		"everything":            {p(""), p("tenant"), false},
		"routes differ":         {p("tenant", "route", "GET:/a"), p("ip", "route", "GET:/b"), true},
		"routes same":           {p("tenant", "route", "GET:/a"), p("ip", "route", "GET:/a"), false},
		"one has no match":      {p("tenant", "route", "GET:/a"), p("ip"), false},
		"other names":           {p("tenant", "route", "GET:/a"), p("ip", "plan", "x"), false},
		"one name differs":      {p("tenant", "route", "GET:/a", "plan", "x"), p("ip", "route", "GET:/a", "plan", "y"), true},
		"prefix holds":          {p("tenant", "route", "GET:/a*"), p("ip", "route", "GET:/ab"), false},
		"prefix excludes":       {p("tenant", "route", "GET:/a*"), p("ip", "route", "GET:/b"), true},
		"prefix of prefix":      {p("tenant", "route", "GET:/a*"), p("ip", "route", "GET:/*"), false},
		"prefixes exclude":      {p("tenant", "route", "GET:/a*"), p("ip", "route", "GET:/b*"), true},
		"exact longer":          {p("tenant", "route", "GET:/ab*"), p("ip", "route", "GET:/a"), true},
		"any value":             {p("tenant", "plan", "*"), p("ip", "plan", "x"), false},
		"method by route":       {p("tenant", "route", "GET:/a"), p("ip", "method", "POST"), true},
		"method same":           {p("tenant", "route", "GET:/a"), p("ip", "method", "GET"), false},
		"methods by prefix":     {p("tenant", "route", "GET:/*"), p("ip", "method", "POST"), true},
		"method not in prefix":  {p("tenant", "route", "G*"), p("ip", "method", "GET"), false},
		"principals of a type":  {p("tenant", "user", "ann"), p("ip", "user", "bob"), true},
		"attribute of the name": {p("tenant", "beta", "1"), p("ip", "beta", "2"), true},
	} {
		for _, turn := range []bool{false, true} {
			a, b := c.a, c.b
			if turn {
				a, b = b, a
			}
			a.ID, b.ID = "first", "second"
			s := &Set{Home: []string{"tenant"}, Policies: []Policy{a, b}}
			err := s.Validate()
			if (err == nil) != c.ok {
				t.Errorf("%s: %v, want ok %v", name, err, c.ok)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "policies[1].scope: ") {
				t.Errorf("%s: %v, want an error about policies[1].scope", name, err)
			}
		}
	}
}

// Many policies in different places that one name tells apart are judged quickly.
func TestManyPlacesAreJudgedQuickly(t *testing.T) {
	s := &Set{Home: []string{"tenant"}}
	for i := range 10_000 {
		p := Policy{ID: fmt.Sprint("p", i), Match: map[string]string{"route": fmt.Sprint("GET:/", i)}, Scope: []string{"tenant"}, Limit: tokens(1, 1, 1e9)}
		if i%2 == 0 {
			p.Scope = []string{"ip"}
		}
		s.Policies = append(s.Policies, p)
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	s.Policies[9_999].Match = nil
	if s.Validate() == nil {
		t.Error("the last policy meets all those by ip: no error")
	}
}
