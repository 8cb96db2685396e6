package client

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestScopeIsWhatThePolicyCountsBy: names and values, also those that are made of others.
func TestScopeIsWhatThePolicyCountsBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "a")
		f.tell(`
route_classes: [{name: export, routes: ["POST:/v1/export*"]}]
policies:
  - {id: all, scope: [], amount: 5, window: 1h}
  - {id: many, scope: [route_class, tenant, user, method, shard], amount: 5, window: 1h}
`)
		c, never := f.client(), f.client(NeverDegrade())
		time.Sleep(11 * time.Second)
		r := Request{Tenant: "acme", Route: "POST:/v1/export?x", Principals: []Principal{{"user", "ann"}}, Attributes: map[string]string{"shard": "7"}}
		want := []ScopeValue{{"method", "POST"}, {"route_class", "export"}, {"shard", "7"}, {"tenant", "acme"}, {"user", "ann"}}
		got, ok := c.Scope(r, "many")
		slices.SortFunc(got, func(a, b ScopeValue) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%v, %v", got, ok)
		}
		if got, ok := c.Scope(r, "all"); !ok || len(got) != 0 {
			t.Errorf("%v, %v", got, ok)
		}
		if _, ok := c.Scope(r, "absent"); ok {
			t.Error("it knows what there is not")
		}
		if _, ok := never.Scope(r, "many"); ok {
			t.Error("it knows without policies")
		}
		c.Close()
		never.Close()
		f.stop()
	})
}
