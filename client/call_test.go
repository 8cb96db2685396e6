package client

import "testing"

// TestACallKeepsItsOwnRequest: the clock may read it when the caller has gone on to change
// what it was made of, and a call that is used again has nothing of the one before.
func TestACallKeepsItsOwnRequest(t *testing.T) {
	r := Request{
		Tenant: "acme", Principals: []Principal{{Type: "user", ID: "ann"}},
		Attributes: map[string]string{"shard": "7"}, Costs: map[string]int64{"p": 2},
	}
	s := newSingle()
	s.keep(&r)
	r.Principals[0].ID, r.Attributes["shard"], r.Costs["p"] = "bob", "8", 3
	if q := &s.request; q.Principals[0].ID != "ann" || q.Attributes["shard"] != "7" || q.Costs["p"] != 2 {
		t.Errorf("the call changed with its caller's request: %+v", q)
	}
	s.state.Store(finished)
	s.attempt.Store(1)
	if !s.reset() || len(s.request.Principals) != 0 || s.request.Attributes != nil || s.request.Tenant != "" {
		t.Errorf("a used call still has %+v", s.request)
	}
}
