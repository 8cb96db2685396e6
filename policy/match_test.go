package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// keys are some keys.
var keys = Keys{Secret: [16]byte{1, 2, 3}, Routing: [16]byte{4, 5, 6}, Slots: 1024}

func compile(t testing.TB, home []string, policies ...Policy) *Index {
	t.Helper()
	for i := range policies {
		policies[i].Limit = tokens(10, 10, 1e9)
	}
	ix, err := Compile(&Set{Home: home, Policies: policies}, keys)
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

func ids(hits []Hit) string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Policy.ID)
	}
	return strings.Join(out, " ")
}

func TestMatch(t *testing.T) {
	scope := []string{"tenant"}
	on := func(id string, match ...string) Policy {
		p := Policy{ID: id, Scope: scope, Match: map[string]string{}}
		for i := 0; i < len(match); i += 2 {
			p.Match[match[i]] = match[i+1]
		}
		return p
	}
	ix := compile(
		t, []string{"tenant"},
		on("any"), on("acme", "tenant", "acme"), on("exact", "route", "GET:/v1/items"), on("prefix", "route", "GET:/v1/*"),
		on("shorter", "route", "GET:/v*"), on("posts", "method", "POST"), on("getters", "method", "G*"), on("key", "api_key", "*"),
		on("plan", "plan", "gold", "region", "eu*"), on("beta", "beta", "yes"), on("z-user", "user", "ann", "tenant", "acme"),
		Policy{ID: "per-user", Scope: []string{"tenant", "user"}},
	)
	for name, c := range map[string]struct {
		r    Request
		want string
	}{
		"nobody":              {Request{}, ""},
		"tenant":              {Request{Tenant: "x"}, "any"},
		"exact tenant":        {Request{Tenant: "acme"}, "acme any"},
		"tenant is no prefix": {Request{Tenant: "acme2"}, "any"},
		"route":               {Request{Tenant: "x", Route: "GET:/v1/items"}, "any exact getters prefix shorter"},
		"query is cut":        {Request{Tenant: "x", Route: "GET:/v1/items?a=b#c"}, "any exact getters prefix shorter"},
		"fragment is cut":     {Request{Tenant: "x", Route: "GET:/v1/items#c?a"}, "any exact getters prefix shorter"},
		"longer route":        {Request{Tenant: "x", Route: "GET:/v1/items/7"}, "any getters prefix shorter"},
		"prefix itself":       {Request{Tenant: "x", Route: "GET:/v1/"}, "any getters prefix shorter"},
		"not the prefix":      {Request{Tenant: "x", Route: "GET:/u"}, "any getters"},
		"method":              {Request{Tenant: "x", Route: "POST:/v1/items"}, "any posts"},
		"any key":             {Request{Tenant: "x", Principals: []Principal{{"api_key", "k"}}}, "any key"},
		"key as attribute":    {Request{Tenant: "x", Attributes: []Attribute{{"api_key", "k"}}}, "any key"},
		"one of two":          {Request{Tenant: "x", Plan: "gold"}, "any"},
		"both":                {Request{Tenant: "x", Plan: "gold", Region: "eu-west"}, "any plan"},
		"attribute":           {Request{Tenant: "x", Attributes: []Attribute{{"a", "b"}, {"beta", "yes"}}}, "any beta"},
		"empty attribute":     {Request{Tenant: "x", Attributes: []Attribute{{"beta", ""}}}, "any"},
		"whole scope":         {Request{Tenant: "x", Principals: []Principal{{"user", "ann"}}}, "any per-user"},
		"no scope":            {Request{Principals: []Principal{{"user", "ann"}, {"api_key", "k"}}}, ""},
		"two conditions":      {Request{Tenant: "acme", Principals: []Principal{{"user", "ann"}}}, "acme any per-user z-user"},
		"principal first":     {Request{Tenant: "acme", Principals: []Principal{{"user", "bob"}}, Attributes: []Attribute{{"user", "ann"}}}, "acme any per-user"},
	} {
		if err := c.r.Validate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		hits := ix.Match(&c.r, nil)
		if got := ids(hits); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		for _, h := range hits {
			if p, ok := ix.ByNumber(h.Number); !ok || p != h.Policy {
				t.Errorf("%s: %s is not found by its number", name, h.Policy.ID)
			}
		}
	}
	if _, ok := ix.ByNumber(1); ok {
		t.Error("a number of no policy is found")
	}
}

func TestMatchAppends(t *testing.T) {
	ix := compile(t, []string{"tenant"}, Policy{ID: "a", Scope: []string{"tenant"}})
	first := Hit{Slot: 7}
	if got := ix.Match(&Request{Tenant: "x"}, []Hit{first}); len(got) != 2 || got[0] != first {
		t.Errorf("%v", got)
	}
}

// TestIndexAgreesWithEveryPolicyTried holds the index to the definition.
func TestIndexAgreesWithEveryPolicyTried(t *testing.T) {
	names := []string{"tenant", "route", "method", "plan", "user", "beta"}
	text := func(name string) *rapid.Generator[string] {
		switch name {
		case "route":
			return rapid.SampledFrom([]string{"GET:/a", "GET:/ab", "GET:/b", "PUT:/a"})
		case "method":
			return rapid.SampledFrom([]string{"GET", "PUT"})
		default:
			return rapid.SampledFrom([]string{"a", "ab", "abc", "b"})
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := &Set{Home: []string{"tenant"}}
		for i := range rapid.IntRange(0, 12).Draw(t, "policies") {
			p := Policy{ID: fmt.Sprint("p", i), Match: map[string]string{}, Scope: []string{"tenant"}, Limit: tokens(1, 1, 1e9)}
			for _, name := range names {
				switch value := text(name).Draw(t, name); rapid.IntRange(0, 5).Draw(t, "how") {
				case 0:
					p.Match[name] = value
				case 1:
					p.Match[name] = value[:rapid.IntRange(0, len(value)).Draw(t, "cut")] + "*"
				}
			}
			if rapid.Bool().Draw(t, "per user") {
				p.Scope = append(p.Scope, "user")
			}
			s.Policies = append(s.Policies, p)
		}
		ix, err := Compile(s, keys)
		if err != nil {
			if strings.Contains(err.Error(), "since the route is") {
				t.Skip("a policy that never matches")
			}
			t.Fatal(err)
		}
		r := &Request{Tenant: text("tenant").Draw(t, "t"), Route: text("route").Draw(t, "r")}
		if rapid.Bool().Draw(t, "user") {
			r.Principals = []Principal{{"user", text("user").Draw(t, "u")}}
		}
		for _, name := range []string{"user", "beta"} {
			if rapid.Bool().Draw(t, name) {
				r.Attributes = append(r.Attributes, Attribute{name, text(name).Draw(t, "v")})
			}
		}
		var want []string
		for _, p := range s.Policies {
			if tried(p, r) {
				want = append(want, p.ID)
			}
		}
		slices.Sort(want)
		if got := ids(ix.Match(r, nil)); got != strings.Join(want, " ") {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// tried is the definition of a policy that applies.
func tried(p Policy, r *Request) bool {
	value := map[string]string{}
	for _, a := range r.Attributes {
		value[a.Name] = a.Value
	}
	for _, p := range r.Principals {
		value[p.Type] = p.ID
	}
	method, _, _ := strings.Cut(r.Route, ":")
	value["tenant"], value["route"], value["method"], value["plan"] = r.Tenant, r.Route, method, r.Plan
	for name, want := range p.Match {
		if text, prefix := strings.CutSuffix(want, "*"); value[name] == "" || value[name] != text && !(prefix && strings.HasPrefix(value[name], text)) {
			return false
		}
	}
	return !slices.ContainsFunc(p.Scope, func(name string) bool { return value[name] == "" })
}

func thousand(t testing.TB, n int, match string) *Index {
	policies := make([]Policy, n)
	for i := range policies {
		policies[i] = Policy{ID: fmt.Sprint("p", i), Match: map[string]string{"plan": "standard", match: fmt.Sprint("t", i)}, Scope: []string{"tenant"}}
	}
	return compile(t, []string{"tenant"}, policies...)
}

func TestMatchCostsNoAllocation(t *testing.T) {
	ix := thousand(t, 1000, "tenant")
	r := &Request{Tenant: "t77", Plan: "standard", Route: "GET:/v1/items?q", Principals: []Principal{{"api_key", "k1"}}}
	dst := make([]Hit, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		if dst = ix.Match(r, dst[:0]); len(dst) != 1 {
			t.Fatal(len(dst))
		}
		ix.Home(r)
		ix.Content(r)
		ix.OwnKey(7, "idempotency-key")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMatchOneOfThousandTenants(b *testing.B) {
	ix := thousand(b, 1000, "tenant")
	r := &Request{Tenant: "t77", Plan: "standard", Route: "GET:/v1/items", Principals: []Principal{{"api_key", "k1"}}}
	dst := make([]Hit, 0, 8)
	for b.Loop() {
		dst = ix.Match(r, dst[:0])
	}
}

func BenchmarkMatchThreeForEveryTenant(b *testing.B) {
	scope := []string{"tenant"}
	ix := compile(b, []string{"tenant"}, Policy{ID: "a", Scope: scope}, Policy{ID: "b", Scope: []string{"tenant", "api_key"}},
		Policy{ID: "c", Scope: scope, Match: map[string]string{"route": "GET:/v1/*"}})
	r := &Request{Tenant: "t77", Plan: "standard", Route: "GET:/v1/items", Principals: []Principal{{"api_key", "k1"}}}
	dst := make([]Hit, 0, 8)
	for b.Loop() {
		if dst = ix.Match(r, dst[:0]); len(dst) != 3 {
			b.Fatal(len(dst))
		}
	}
}

func BenchmarkCompileTenThousand(b *testing.B) {
	for b.Loop() {
		thousand(b, 10_000, "tenant")
	}
}
