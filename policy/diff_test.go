package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parsed(t *testing.T, text string) *Set {
	t.Helper()
	s, err := Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDiff(t *testing.T) {
	old := parsed(t, `
no_match: deny
policies:
  - {id: gone, scope: [tenant], amount: 1, window: 1s}
  - {id: same, scope: [tenant], amount: 1, window: 1s}
  - {id: turned, scope: [tenant], amount: 20, window: 1s, burst: 40, mode: shadow}
`)
	old.Policies[2].Version = 811
	next := parsed(t, `
no_match: allow
route_classes: [{name: export, routes: ["GET:/x*"]}]
policies:
  - {id: new, match: {plan: gold}, scope: tenant, algorithm: fixed_window, limit_count: 5, window_seconds: 60, on_unavailable: closed}
  - {id: turned, scope: [tenant], amount: 20, window: 1s, cost: {export: 10}, on_unavailable: {mode: open, after: deadline}}
  - {id: same, match: {}, scope: tenant, rate_per_second: 1, burst: 1, mode: enforce, family: same}
`)
	got := Diff(old, next)
	want := []string{
		"~ (settings)\n    no_match: deny → allow\n    route_classes: [] → [export [GET:/x*]]",
		"- gone",
		"+ new  p.yaml:5\n    match: {plan: gold}\n    scope: [tenant]\n    algorithm: fixed_window\n    amount: 5\n    window: 1m0s\n    on_unavailable: {mode: closed, after: 50ms}",
		"~ turned (version 811)  p.yaml:6\n    burst: 40 → 20\n    cost: (default) → {export: 10, default: 1}\n" +
			"    on_unavailable: (default) → {mode: open, after: deadline, for: 2m0s, then: local}\n    mode: shadow → (default)",
	}
	var text []string
	for _, c := range got {
		text = append(text, c.String())
	}
	if d := cmp.Diff(want, text); d != "" {
		t.Error(d)
	}
	b, err := json.Marshal(got[3])
	if err != nil || !strings.HasPrefix(string(b), `{"kind":"changed","id":"turned","version":811,"source":"p.yaml:6","fields":[{"field":"burst","old":"40","new":"20"}`) {
		t.Errorf("%s %v", b, err)
	}
	if d := Diff(next, next); len(d) != 0 {
		t.Error(d)
	}
	partial := parsed(t, "policies: []\n") // says nothing of what stands beside
	if d := Diff(old, partial); len(d) != 3 || d[0].Kind != Removed {
		t.Error(d)
	}
}
