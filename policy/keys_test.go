package policy

import (
	"testing"

	"github.com/ringlimit/ringlimit/api/route"
	"github.com/ringlimit/ringlimit/bucket"
)

func one(t *testing.T, ix *Index, r Request) Hit {
	t.Helper()
	hits := ix.Match(&r, nil)
	if len(hits) != 1 {
		t.Fatalf("%d hits of %+v", len(hits), r)
	}
	return hits[0]
}

func TestBucketsLiveWhereTheirScopeSays(t *testing.T) {
	clients, ok := route.New(keys.Routing[:], keys.Slots)
	if !ok {
		t.Fatal("no routing hash")
	}
	slot := func(fields ...string) uint16 {
		var b []byte
		for _, f := range fields {
			b = route.Append(b, f)
		}
		return clients.Slot(b)
	}
	home := []string{"tenant", "region"}
	r := Request{Tenant: "acme", Region: "eu", Principals: []Principal{{"user", "ann"}, {"ip", "::1"}}}

	inside := compile(t, home, Policy{ID: "a", Scope: []string{"user", "region", "tenant"}})
	if got, want := one(t, inside, r).Slot, slot("acme", "eu"); got != want {
		t.Errorf("scope with the home: slot %d, want %d, the slot that clients compute", got, want)
	}
	if got := inside.Home(&r); got.Slot != slot("acme", "eu") || !got.OK {
		t.Errorf("home: %+v", got)
	}
	outside := compile(t, home, Policy{ID: "a", Scope: []string{"user", "ip"}})
	if got, want := one(t, outside, r).Slot, slot("ip", "::1", "user", "ann"); got != want {
		t.Errorf("scope without the home: slot %d, want %d", got, want)
	}
	// Whatever else the request has, the bucket stays where it is.
	less := Request{Principals: r.Principals}
	if one(t, outside, less) != one(t, outside, r) {
		t.Error("a bucket moves with the request's other attributes")
	}
	if outside.Home(&less).OK {
		t.Error("a request without the home attributes has a home")
	}
}

func TestKeysTellAllScopesApart(t *testing.T) {
	scope := []string{"x", "y"}
	ix := compile(t, []string{"x"}, Policy{ID: "p", Scope: scope})
	attr := func(x, y string) Request { return Request{Attributes: []Attribute{{"x", x}, {"y", y}}} }
	seen := map[bucket.Key]string{}
	add := func(what string, k bucket.Key) {
		t.Helper()
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s share a bucket", what, other)
		}
		seen[k] = what
	}
	add("a_b,c", one(t, ix, attr("a_b", "c")).Key)
	add("a,b_c", one(t, ix, attr("a", "b_c")).Key)
	add("c,a_b", one(t, ix, attr("c", "a_b")).Key)
	add("ab,c", one(t, ix, attr("ab", "c")).Key)
	add("policy q", one(t, compile(t, []string{"x"}, Policy{ID: "q", Scope: scope}), attr("ab", "c")).Key)
	add("tenant x", one(t, compile(t, []string{"tenant"}, Policy{ID: "p", Scope: []string{"tenant"}}), Request{Tenant: "x"}).Key)
	add("ip x", one(t, compile(t, []string{"ip"}, Policy{ID: "p", Scope: []string{"ip"}}), Request{Principals: []Principal{{"ip", "x"}}}).Key)
	add("own id", ix.OwnKey(1, "id"))
	add("own id elsewhere", ix.OwnKey(2, "id"))

	other := keys
	other.Secret[0]++
	s := &Set{Home: []string{"x"}, Policies: []*Policy{{ID: "p", Scope: scope, Limit: tokens(1, 1, 1e9)}}}
	secret, err := Compile(s, other)
	if err != nil {
		t.Fatal(err)
	}
	add("another secret", one(t, secret, attr("a", "b_c")).Key)

	// The order in which a policy lists its scope is no part of the identity.
	turned := compile(t, []string{"x"}, Policy{ID: "p", Scope: []string{"y", "x"}})
	r := attr("a", "b_c")
	if one(t, turned, r).Key != one(t, ix, r).Key {
		t.Error("turning the scope round makes another bucket")
	}
}

func TestContentIsOfTheWholeRequest(t *testing.T) {
	ix := compile(t, []string{"tenant"})
	base := func() *Request {
		return &Request{
			Tenant: "t", Route: "GET:/a", Plan: "p", Region: "r", Cost: 1,
			Principals: []Principal{{"user", "u"}, {"ip", "i"}},
			Attributes: []Attribute{{"b", "2"}, {"a", "1"}},
		}
	}
	seen := map[uint64]bool{ix.Content(base()): true}
	for name, change := range map[string]func(*Request){
		"tenant":    func(r *Request) { r.Tenant = "x" },
		"route":     func(r *Request) { r.Route = "GET:/b" },
		"plan":      func(r *Request) { r.Plan, r.Region = r.Region, r.Plan },
		"cost":      func(r *Request) { r.Cost = 2 },
		"principal": func(r *Request) { r.Principals[0].ID = "v" },
		"fewer":     func(r *Request) { r.Principals = r.Principals[:1] },
		"attribute": func(r *Request) { r.Attributes[1].Value = "3" },
		"other kind": func(r *Request) {
			r.Principals, r.Attributes = r.Principals[:1], append(r.Attributes, Attribute{"ip", "i"})
		},
	} {
		r := base()
		change(r)
		if c := ix.Content(r); seen[c] {
			t.Errorf("%s: the content is that of another request", name)
		} else {
			seen[c] = true
		}
	}
	same := base()
	same.Principals[0], same.Principals[1] = same.Principals[1], same.Principals[0]
	same.Attributes = []Attribute{{"a", "1"}, {"none", ""}, {"b", "2"}}
	same.Route += "?trace=1"
	if !seen[ix.Content(same)] {
		t.Error("order, empty attributes or the query change the content")
	}
}

func TestCompileRefuses(t *testing.T) {
	if _, err := Compile(&Set{Home: []string{"tenant"}}, Keys{Slots: 1<<16 + 1}); err == nil {
		t.Error("65,537 slots: no error")
	}
	if _, err := Compile(&Set{}, keys); err == nil {
		t.Error("no home: no error")
	}
}
