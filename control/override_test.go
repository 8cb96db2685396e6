package control

import (
	"testing"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/policy"
)

func scaled(id string, until int64, key ...string) SetOverride {
	return SetOverride{Override: &policy.Override{Policy: id, Key: policy.On(key...), Times: 2, Per: 1, Until: until}}
}

func TestOverrides(t *testing.T) {
	r := newRig(t, three)
	if _, ok := r.m.State().NextDeadline(); ok {
		t.Error("a deadline without an override")
	}
	r.do(scaled("c", 200, "tenant", "acme"))                 // version 2
	r.do(scaled("c", 300, "api_key", "k", "tenant", "acme")) // 3
	r.do(scaled("a", 100, "tenant", "acme"))                 // 4
	e := r.do(scaled("a", 150, "tenant", "acme"))            // 5 takes the place of 4
	if e.Version != 5 || e.Detail != "a {tenant: acme}" || e.Action != ActionOverride {
		t.Errorf("%+v", e)
	}
	s := r.m.State()
	if r.versions() != "a@1 b@1 c@1" || len(s.Policies.Overrides) != 3 || s.Policies.Overrides[0].Version != 5 {
		t.Errorf("%s, %d overrides", r.versions(), len(s.Policies.Overrides))
	}
	if d, ok := s.NextDeadline(); d != 150 || !ok {
		t.Error(d)
	}
	rules := policy.Rules(s.Policies, s.Policies, s.PolicyVersion)
	if len(rules) != 0 {
		t.Error(rules)
	}
	r.refused(fault.InvalidArgument, "override: key.user", scaled("a", 1, "user", "ann"))
	r.refused(fault.InvalidArgument, `override: policy: "q"`, scaled("q", 1, "tenant", "acme"))
	r.refused(fault.InvalidArgument, "missing", SetOverride{})
	r.refused(fault.NotFound, `policy "b" has no override for {tenant: acme}`, ClearOverride{Policy: "b", Key: policy.On("tenant", "acme")})

	r.do(ExpireOverrides{Now: 149})
	if len(r.m.State().Policies.Overrides) != 3 {
		t.Error("ended before its deadline")
	}
	e = r.do(ExpireOverrides{Now: 200})
	if len(r.m.State().Policies.Overrides) != 1 || e.Total != 2 || e.Detail != "a {tenant: acme}; c {tenant: acme}" {
		t.Errorf("%+v", e)
	}
	r.do(ClearOverride{Policy: "c", Key: policy.On("api_key", "k", "tenant", "acme")})
	if s := r.m.State(); len(s.Policies.Overrides) != 0 || s.PolicyVersion != 7 {
		t.Errorf("%d left, version %d", len(s.Policies.Overrides), s.PolicyVersion)
	}
	// The next version of a policy is above those of all overrides.
	r.do(PutPolicy{Policy: count("a", 9), IfMatch: is(1)})
	if r.version("a") != 8 {
		t.Error(r.versions())
	}
}

// An override ends with its policy, and when the policy does not count by the
// names of its key any more.
func TestOverridesEndWithWhatTheyOverride(t *testing.T) {
	r := newRig(t, three)
	r.do(scaled("a", 100, "tenant", "acme"))
	r.do(scaled("c", 100, "tenant", "acme"))
	r.do(scaled("c", 100, "api_key", "k"))
	e := r.do(DeletePolicy{ID: "a"})
	if len(r.m.State().Policies.Overrides) != 2 || e.Detail != "overrides ended: 1" {
		t.Errorf("%+v", e)
	}
	r.do(PutPolicy{Policy: count("c", 1)}) // its scope has no api_key
	if o := r.m.State().Policies.Overrides; len(o) != 1 || o[0].Key[0].Name != "tenant" {
		t.Errorf("%+v", o)
	}
	r.do(PutPolicies{Set: parsed(t, "policies: []\n"), Prune: true})
	if o := r.m.State().Policies.Overrides; len(o) != 0 {
		t.Errorf("%+v", o)
	}
}
