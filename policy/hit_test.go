package policy

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/ringlimit/ringlimit/bucket"
)

func TestQueryStringsShareABucket(t *testing.T) {
	ix := compile(t, []string{"tenant"}, Policy{ID: "p", Scope: []string{"tenant", "route"}})
	seen := map[bucket.Key]bool{}
	for i := range 1000 {
		r := Request{Tenant: "acme", Route: fmt.Sprintf("GET:/v1/items?page=%d&x=%d#%d", i, i*i, i)}
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		seen[one(t, ix, r).Key] = true
	}
	if len(seen) != 1 {
		t.Errorf("%d buckets, want one", len(seen))
	}
}

func TestRequestWithoutScopeIsNotCounted(t *testing.T) {
	ix := compile(t, []string{"tenant"}, Policy{ID: "p", Scope: []string{"tenant", "api_key"}})
	if hits := ix.Match(&Request{Tenant: "acme", Route: "GET:/"}, nil); len(hits) != 0 {
		t.Errorf("counted by %s", ids(hits))
	}
	one(t, ix, Request{Tenant: "acme", Principals: []Principal{{"api_key", "k"}}})
}

// Several principals on one request: each policy counts by its own.
func TestUserAndOrg(t *testing.T) {
	ix := compile(t, []string{"tenant"}, Policy{ID: "user", Scope: []string{"tenant", "user"}}, Policy{ID: "org", Scope: []string{"tenant"}})
	ann := ix.Match(&Request{Tenant: "acme", Principals: []Principal{{"user", "ann"}, {"ip", "::1"}}}, nil)
	bob := ix.Match(&Request{Tenant: "acme", Principals: []Principal{{"ip", "::1"}, {"user", "bob"}}}, nil)
	if ids(ann) != "org user" || ids(bob) != "org user" || ann[0].Key != bob[0].Key || ann[1].Key == bob[1].Key {
		t.Errorf("%v\n%v", ann, bob)
	}
}

func TestRouteClasses(t *testing.T) {
	classes := []RouteClass{
		{"report", []string{"GET:/v1/report/*", "GET:/v1/r"}},
		{"export", []string{"POST:/v1/export", "GET:/v1/report/big"}},
		{"read", []string{"GET:*"}},
	}
	s := &Set{Home: []string{"tenant"}, RouteClasses: classes, Policies: []*Policy{
		{ID: "all", Scope: []string{"tenant"}, Limit: tokens(1, 1, 1e9), Cost: Cost{2, map[string]uint64{"export": 10, "read": 1}}},
		{ID: "by-class", Scope: []string{"tenant", "route_class"}, Limit: tokens(1, 1, 1e9)},
		{ID: "re", Match: On("route_class", "re*"), Scope: []string{"tenant"}, Limit: tokens(1, 1, 1e9)},
		{ID: "x", Match: On("route_class", "export"), Scope: []string{"tenant"}, Limit: tokens(1, 1, 1e9)},
	}}
	ix := compileSet(t, s)
	keys := map[bucket.Key]string{}
	for _, c := range []struct {
		route, class, want string
		cost               uint64
	}{
		{"GET:/v1/report/big", "report", "all by-class re", 6},
		{"GET:/v1/report/", "report", "all by-class re", 6},
		{"GET:/v1/r?x", "report", "all by-class re", 6},
		{"GET:/v1/ra", "read", "all by-class re", 3},
		{"POST:/v1/export", "export", "all by-class x", 30},
		{"POST:/v1/exports", "", "all", 6},
		{"", "", "all", 6},
	} {
		hits := ix.Match(&Request{Tenant: "t", Route: c.route, Cost: 3}, nil)
		if ids(hits) != c.want || hits[0].Cost != c.cost {
			t.Errorf("%s: %s at cost %d, want %s at %d", c.route, ids(hits), hits[0].Cost, c.want, c.cost)
			continue
		}
		if len(hits) > 1 {
			if was, ok := keys[hits[1].Key]; ok && was != c.class {
				t.Errorf("classes %s and %s share a bucket", was, c.class)
			}
			keys[hits[1].Key] = c.class
		}
	}
	if len(keys) != 3 {
		t.Errorf("%d buckets by class", len(keys))
	}
}

func TestCosts(t *testing.T) {
	const most = bucket.MaxAmount
	for name, c := range map[string]struct {
		policy Cost
		cost   uint64
		costs  []PolicyCost
		want   uint64
	}{
		"one":                 {Cost{}, 1, nil, 1},
		"look":                {Cost{Default: 5}, 0, nil, 0},
		"multiplied":          {Cost{Default: 5}, 3, nil, 15},
		"replaced":            {Cost{Default: 5}, 3, []PolicyCost{{"q", 9}, {"p", 2}}, 10},
		"replaced by a look":  {Cost{Default: 5}, 3, []PolicyCost{{"p", 0}}, 0},
		"of another policy":   {Cost{Default: 5}, 3, []PolicyCost{{"q", 9}}, 15},
		"too much":            {Cost{Default: most}, most, nil, most},
		"just enough":         {Cost{Default: 1}, most, nil, most},
		"beyond 32 bits":      {Cost{Default: 5}, 999_999_999, nil, most},
		"class it is not for": {Cost{Default: 2, Classes: map[string]uint64{"c": 7}}, 1, nil, 2},
	} {
		s := &Set{Home: []string{"tenant"}, RouteClasses: []RouteClass{{"c", []string{"GET:/c"}}}, Policies: []*Policy{
			{ID: "p", Scope: []string{"tenant"}, Limit: tokens(1, 1, 1e9), Cost: c.policy},
		}}
		r := Request{Tenant: "t", Cost: c.cost, Costs: c.costs}
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := one(t, compileSet(t, s), r).Cost; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// The lower half of Hi is a tag of the home, by which a table counts the buckets of a tenant.
func TestKeysCarryATagOfTheirHome(t *testing.T) {
	ix := compile(t, []string{"tenant"}, Policy{ID: "a", Scope: []string{"tenant", "user"}}, Policy{ID: "b", Scope: []string{"tenant"}},
		Policy{ID: "c", Scope: []string{"user"}}, Policy{ID: "d", Scope: []string{"user"}})
	tags := func(tenant, user string) (out []uint32) {
		for _, h := range ix.Match(&Request{Tenant: tenant, Principals: []Principal{{"user", user}}}, nil) {
			out = append(out, uint32(h.Key.Hi))
		}
		return out
	}
	first, other, elsewhere := tags("acme", "ann"), tags("acme", "bob"), tags("zeta", "ann")
	switch {
	case first[0] != first[1] || first[0] != other[0] || first[0] == elsewhere[0]:
		t.Errorf("tags of homes: %x %x %x", first, other, elsewhere)
	case first[2] != first[3] || first[2] == other[2] || first[2] != elsewhere[2]:
		t.Errorf("tags of scopes outside the home: %x %x %x", first, other, elsewhere)
	case first[0] == first[2]:
		t.Error("the tag of a home is that of a scope")
	}
}

// The table splits a slot by the leading bits of Hi: what a tenant shares must not
// stand there, else all of a large one is in one segment, and a step that copies or
// grows it takes as long as that is.
func TestKeysOfOneHomeDifferInTheirLeadingBits(t *testing.T) {
	ix := compile(t, []string{"tenant"}, Policy{ID: "a", Scope: []string{"tenant", "user"}})
	const keys, parts = 4096, 64
	var count [parts]int
	for i := range keys {
		for _, h := range ix.Match(&Request{Tenant: "acme", Principals: []Principal{{"user", strconv.Itoa(i)}}}, nil) {
			count[h.Key.Hi>>58]++
		}
	}
	for part, n := range count {
		if n < keys/parts/3 || n > keys/parts*3 {
			t.Errorf("%d of %d keys begin with bits %06b, want about %d", n, keys, part, keys/parts)
		}
	}
}

// With a home of two names one huge tenant spreads over the slots.
func TestHomeOfTwoNamesSpreadsATenant(t *testing.T) {
	for _, home := range [][]string{{"tenant"}, {"tenant", "api_key"}} {
		ix := compile(t, home, Policy{ID: "a", Scope: []string{"tenant", "api_key"}}, Policy{ID: "b", Scope: []string{"api_key", "tenant"}})
		slots := map[uint16]int{}
		for i := range 10_000 {
			hits := ix.Match(&Request{Tenant: "acme", Principals: []Principal{{"api_key", fmt.Sprint("k", i)}}}, nil)
			if hits[0].Slot != hits[1].Slot {
				t.Fatal("the limits of one request are in two slots")
			}
			slots[hits[0].Slot]++
		}
		if want := len(home) > 1; (len(slots) > 1000) != want || !want && len(slots) != 1 {
			t.Errorf("home %v: %d slots", home, len(slots))
		}
	}
}
