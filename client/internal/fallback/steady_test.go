package fallback

import (
	"testing"

	"github.com/ringlimit/ringlimit/policy"
)

// TestSteadyDenials: those that nothing but time ends, by the version that is known.
func TestSteadyDenials(t *testing.T) {
	set, err := policy.Parse("test.yaml", []byte(`policies:
  - {id: a, scope: [tenant], amount: 5, window: 1h}
  - {id: b, scope: [tenant], amount: 5, window: 1h, mode: shadow}
  - {id: c, scope: [tenant], amount: 5, window: 1h, algorithm: concurrency}
  - {id: d, scope: [tenant], amount: 5, window: 1h, consistency: leased}
  - {id: e, match: {route: "GET:/e"}, scope: [tenant], amount: 5, window: 1h}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Policies {
		p.Version = 7
	}
	r, err := Compile(set, [16]byte{})
	if err != nil {
		t.Fatal(err)
	}
	q := &policy.Request{Tenant: "acme", Cost: 1}
	for id, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false, "e": false, "f": false} {
		if got := r.Steady(q, id, 7); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
	if r.Steady(q, "a", 8) {
		t.Error("by a version that is not known")
	}
}
