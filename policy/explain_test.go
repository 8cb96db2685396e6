package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	s := parsed(t, `policies:
  - {id: all, scope: [tenant], amount: 1, window: 1s}
  - {id: items, family: all, match: {route: "GET:/v1/items"}, scope: [tenant], amount: 1, window: 1s, cost: 3}
  - {id: off, match: {}, scope: [tenant], amount: 1, window: 1s, mode: disabled}
  - {id: gold, match: {plan: gold, region: eu}, scope: [tenant], amount: 1, window: 1s}
  - {id: key, scope: [tenant, api_key], amount: 1, window: 1s}
  - {id: posts, match: {route: "POST:*"}, scope: [tenant], amount: 1, window: 1s}
`)
	s.Overrides = []*Override{{Policy: "items", Key: On("tenant", "acme"), Times: 2, Per: 1, Version: 9}}
	ix := compileSet(t, s)
	r := &Request{Tenant: "acme", Route: "GET:/v1/items?x", Plan: "silver", Cost: 2}
	var got []string
	for _, x := range ix.Explain(r, 6) {
		got = append(got, x.String())
	}
	want := []string{
		"items (p.yaml:3): applies at cost 6 with the override of version 9",
		"all (p.yaml:2): gives way to items, the more specific of family all",
		"off (p.yaml:4): disabled",
		"key (p.yaml:6): the request has no api_key to count by",
		`posts (p.yaml:7): route is "GET:/v1/items", want "POST:*"`,
		`gold (p.yaml:5): plan is "silver", want "gold"`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := ix.Explain(r, 2); len(got) != 2 || got[0].Hit.Cost != 6 {
		t.Errorf("%v", got)
	}
	if got := ix.Explain(&Request{}, 1); got[0].Verdict != NoScope || got[0].Policy.ID != "all" {
		t.Errorf("%v", got[0])
	}
}
