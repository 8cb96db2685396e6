package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringlimit/ringlimit/bucket"
)

func amount(n uint64) *uint64 { return &n }

func TestOverridesChangeALimit(t *testing.T) {
	base := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 10, Burst: 10, Window: 1e9}
	wide := base
	wide.Burst = 40
	const most = bucket.MaxAmount
	for name, c := range map[string]struct {
		o             Override
		of            bucket.Limit
		amount, burst uint64
	}{
		"raised":              {Override{Amount: amount(100)}, base, 100, 100},
		"lowered":             {Override{Amount: amount(3)}, base, 3, 3},
		"nothing allowed":     {Override{Amount: amount(0)}, base, 0, 0},
		"burst stays":         {Override{Amount: amount(100)}, wide, 100, 40},
		"burst alone":         {Override{Burst: amount(5)}, wide, 10, 5},
		"both":                {Override{Amount: amount(7), Burst: amount(9)}, base, 7, 9},
		"doubled":             {Override{Times: 2, Per: 1}, wide, 20, 80},
		"a third":             {Override{Times: 1, Per: 3}, wide, 3, 13},
		"never down to 0":     {Override{Times: 1, Per: 1000}, wide, 1, 1},
		"0 stays 0":           {Override{Times: 5, Per: 1}, bucket.Limit{Burst: 0}, 0, 0},
		"no more than most":   {Override{Times: most, Per: 1}, wide, most, most},
		"by a large amount":   {Override{Times: most, Per: most}, wide, 10, 40},
		"most of the largest": {Override{Times: most, Per: most - 1}, bucket.Limit{Amount: most, Burst: most}, most, most},
	} {
		if l := c.o.Limit(c.of); l.Amount != c.amount || l.Burst != c.burst || l.Window != c.of.Window {
			t.Errorf("%s: %+v, want %d burst %d", name, l, c.amount, c.burst)
		}
	}
}

func TestBadOverridesNameTheirField(t *testing.T) {
	s := &Set{Home: []string{"tenant"}, Policies: []*Policy{
		{ID: "p", Scope: []string{"tenant", "api_key"}, Limit: tokens(10, 10, 1e9)},
		{ID: "w", Scope: []string{"tenant"}, Limit: bucket.Limit{Algorithm: bucket.FixedWindow, Amount: 10, Burst: 10, Window: 1e9}},
	}}
	acme := On("tenant", "acme")
	for want, o := range map[string]Override{
		"":                   {Policy: "p", Key: acme, Amount: amount(5)},
		`policy: "q"`:        {Policy: "q", Key: acme, Amount: amount(5)},
		"key: empty":         {Policy: "p", Amount: amount(5)},
		"key.user: ":         {Policy: "p", Key: On("user", "ann"), Amount: amount(5)},
		"key.tenant: ":       {Policy: "p", Key: Match{{"tenant", "a"}, {"tenant", "b"}}, Amount: amount(5)},
		"key.api_key: 0":     {Policy: "p", Key: On("api_key", ""), Amount: amount(5)},
		"amount: want":       {Policy: "p", Key: acme},
		"amount: want ":      {Policy: "p", Key: acme, Amount: amount(5), Times: 1, Per: 2},
		"times: 0/2":         {Policy: "p", Key: acme, Per: 2},
		"times: 2/0":         {Policy: "p", Key: acme, Times: 2},
		"times: 1000000001":  {Policy: "p", Key: acme, Times: 1_000_000_001, Per: 1},
		"amount: 1000000001": {Policy: "p", Key: acme, Amount: amount(1_000_000_001)},
		"burst: 0, want 1":   {Policy: "p", Key: acme, Burst: amount(0)},
		"burst: 7, want no":  {Policy: "w", Key: acme, Burst: amount(7)},
	} {
		if err := s.CheckOverride(&o); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func overridden(t *testing.T) *Set {
	s := &Set{Home: []string{"tenant"}, Policies: []*Policy{
		{ID: "p", Version: 5, Scope: []string{"tenant", "api_key"}, Limit: tokens(10, 10, 1e9)},
		{ID: "q", Version: 5, Scope: []string{"tenant"}, Limit: tokens(10, 10, 1e9)},
	}, Overrides: []*Override{
		{Policy: "p", Key: On("api_key", "k1"), Amount: amount(1), Version: 7},
		{Policy: "p", Key: On("api_key", "k1", "tenant", "acme"), Amount: amount(2), Version: 6},
		{Policy: "p", Key: On("tenant", "acme"), Amount: amount(3), Version: 8},
	}}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNearestOverrideApplies(t *testing.T) {
	ix := compileSet(t, overridden(t))
	for _, c := range []struct {
		tenant, key     string
		amount, version uint64
	}{
		{"acme", "k1", 2, 6}, {"acme", "k2", 3, 8}, {"zeta", "k1", 1, 7}, {"zeta", "k2", 10, 5},
	} {
		r := &Request{Tenant: c.tenant, Cost: 1, Principals: []Principal{{"api_key", c.key}}}
		h := ix.Match(r, nil)[0]
		if h.Rule.Limit.Amount != c.amount || h.Rule.Version != c.version {
			t.Errorf("%s %s: %+v", c.tenant, c.key, h.Rule)
		}
		if (h.Override == nil) != (h.Rule.Policy == h.Number) {
			t.Errorf("%s %s: number %d, rule %d", c.tenant, c.key, h.Number, h.Rule.Policy)
		}
		if q := ix.Match(r, nil)[1]; q.Override != nil || q.Rule.Version != 5 {
			t.Errorf("another policy is overridden: %+v", q.Rule)
		}
	}
}

// An override leaves the bucket where it is: what was spent stays spent.
func TestOverrideKeepsTheBucket(t *testing.T) {
	s := overridden(t)
	r := Request{Tenant: "acme", Principals: []Principal{{"api_key", "k1"}}}
	with := compileSet(t, s).Match(&r, nil)
	s.Overrides = nil
	without := compileSet(t, s).Match(&r, nil)
	if with[0].Key != without[0].Key || with[0].Slot != without[0].Slot {
		t.Error("another bucket")
	}
}

func TestOverriddenMatchCostsNoAllocation(t *testing.T) {
	ix := compileSet(t, overridden(t))
	r := &Request{Tenant: "acme", Principals: []Principal{{"api_key", "k2"}}}
	dst := make([]Hit, 0, 8)
	if n := testing.AllocsPerRun(100, func() { dst = ix.Match(r, dst[:0]) }); n != 0 || dst[0].Override == nil {
		t.Errorf("%v allocations", n)
	}
}

func TestRulesToCutOverTo(t *testing.T) {
	old := overridden(t)
	next := old.With(&Policy{ID: "p", Version: 9, Scope: []string{"tenant", "api_key"}, Limit: tokens(20, 20, 1e9)})
	next = next.With(&Policy{ID: "r", Version: 9, Scope: []string{"tenant"}, Limit: tokens(1, 1, 1e9)}).Without("q")
	ended, acme := old.Overrides[0], old.Overrides[2]
	next.Overrides = old.Overrides[1:]
	got := Rules(old, next, 9)
	ix := compileSet(t, next)
	number := func(id string) uint64 {
		for _, e := range ix.base.policies {
			if e.policy.ID == id {
				return e.number
			}
		}
		return 0
	}
	want := []bucket.Rule{
		{Policy: number("p"), Version: 9, Limit: tokens(20, 20, 1e9)},
		{Policy: number("r"), Version: 9, Limit: tokens(1, 1, 1e9)},
		{Policy: ended.Number(), Version: 9, Limit: tokens(20, 20, 1e9)},
		{Policy: old.Overrides[1].Number(), Version: 9, Limit: tokens(2, 2, 1e9)},
		{Policy: acme.Number(), Version: 9, Limit: tokens(3, 3, 1e9)},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := Rules(next, next, 9); len(got) != 0 {
		t.Errorf("nothing changed: %v", got)
	}
	if got := Rules(nil, old, 8); len(got) != 5 {
		t.Errorf("all is new: %v", got)
	}
}
