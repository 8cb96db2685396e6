package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/bucket"
)

// keys are some keys.
var keys = Keys{Secret: [16]byte{1, 2, 3}, Routing: [16]byte{4, 5, 6}, Slots: 1024}

func compile(t testing.TB, home []string, policies ...Policy) *Index {
	t.Helper()
	s := &Set{Home: home}
	for _, p := range policies {
		if p.Limit == (bucket.Limit{}) {
			p.Limit = tokens(10, 10, 1e9)
		}
		s.Policies = append(s.Policies, &p)
	}
	return compileSet(t, s)
}

func compileSet(t testing.TB, s *Set) *Index {
	t.Helper()
	ix, err := Compile(s, keys)
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
		return Policy{ID: id, Scope: scope, Match: On(match...)}
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

func thousand(t testing.TB, n int, match string) *Index {
	policies := make([]Policy, n)
	for i := range policies {
		policies[i] = Policy{ID: fmt.Sprint("p", i), Match: On("plan", "standard", match, fmt.Sprint("t", i)), Scope: []string{"tenant"}}
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
		Policy{ID: "c", Scope: scope, Match: On("route", "GET:/v1/*")})
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
