package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// rig is a machine with policies under test.
type rig struct {
	t     testing.TB
	m     *Machine
	index uint64
}

// newRig founds a cluster with a policy file.
func newRig(t testing.TB, file string) *rig {
	r := &rig{t: t, m: New()}
	c := founding()
	c.Policies = parsed(t, file)
	r.do(c)
	return r
}

func parsed(t testing.TB, file string) *policy.Set {
	t.Helper()
	s, err := policy.Parse("p.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// apply applies a command and holds what every command must hold.
func (r *rig) apply(c Command) Result {
	r.t.Helper()
	r.index++
	before := r.m.State()
	was := string(before.Snapshot())
	res, err := r.m.Apply(r.index, Encode(c))
	if err != nil {
		r.t.Fatal(err)
	}
	checkStep(r.t, before, r.m.State(), res, was)
	return res
}

// quick is do without the checks, for long histories.
func (r *rig) quick(c Command) {
	r.t.Helper()
	r.index++
	if res, err := r.m.Apply(r.index, Encode(c)); err != nil || res.Err != nil {
		r.t.Fatal(res.Err, err)
	}
}

// do is apply for what must be accepted.
func (r *rig) do(c Command) *Entry {
	r.t.Helper()
	res := r.apply(c)
	if res.Err != nil {
		r.t.Fatalf("%s: %v", c.kind(), res.Err)
	}
	return res.Entry
}

// refused is apply for what must be refused, with a kind and a text.
func (r *rig) refused(kind *fault.Kind, text string, c Command) {
	r.t.Helper()
	if res := r.apply(c); !errors.Is(res.Err, kind) || !strings.Contains(res.Err.Error(), text) {
		r.t.Errorf("%s: %v, want %v: %s", c.kind(), res.Err, kind, text)
	}
}

func (r *rig) version(id string) uint64 {
	p, ok := r.m.State().Policies.Find(id)
	if !ok {
		return 0
	}
	return p.Version
}

// versions are all policies as id@version.
func (r *rig) versions() string {
	var out []string
	for _, p := range r.m.State().Policies.Policies {
		out = append(out, fmt.Sprintf("%s@%d", p.ID, p.Version))
	}
	return strings.Join(out, " ")
}

func is(v uint64) *uint64 { return &v }

func count(id string, amount uint64) *policy.Policy {
	return &policy.Policy{ID: id, Scope: []string{"tenant"}, Limit: bucket.Limit{Algorithm: bucket.TokenBucket, Amount: amount, Burst: amount, Window: 1e9}}
}

const three = `policies:
  - {id: a, scope: [tenant], amount: 1, window: 1s}
  - {id: b, scope: [tenant], amount: 1, window: 1s}
  - {id: c, scope: [tenant, api_key], amount: 1, window: 1s}
`

// TestPutWithTheVersionItHas: the policy at version 811 of the issue.
func TestPutWithTheVersionItHas(t *testing.T) {
	file := "policies: [{id: p, scope: api_key, rate_per_second: 20, burst: 40}]\n"
	for name, put := range map[string]func(v uint64) Command{
		"as a policy": func(v uint64) Command {
			return PutPolicy{Policy: parsed(t, file).Policies[0], IfMatch: &v, By: Author{Who: "ann", When: "2026-11-30T12:00:00Z"}}
		},
		"as a file": func(v uint64) Command { return PutPolicies{Set: parsed(t, file), IfMatch: &v, By: Author{Who: "ann"}} },
	} {
		for _, content := range []string{"equal", "other"} {
			r := newRig(t, strings.Replace(file, "20", "1", 1))
			for v := range uint64(809) {
				r.quick(PutPolicy{Policy: count("p", v%2+5)})
			}
			last := parsed(t, file).Policies[0]
			if content == "other" {
				last.Limit.Amount++
			}
			r.do(PutPolicy{Policy: last})
			if r.version("p") != 811 {
				t.Fatal(r.version("p"))
			}
			e := r.do(put(811))
			if d := cmp.Diff([]VersionChange{{"p", 811, 812}}, e.Changes); d != "" || r.version("p") != 812 || e.Version != 812 || e.Who != "ann" {
				t.Errorf("%s, %s content: %s %+v", name, content, d, e)
			}
			r.refused(fault.PreconditionFailed, `policy "p" has version 812, If-Match names 811`, put(811))
			if r.version("p") != 812 || r.m.State().PolicyVersion != 812 {
				t.Errorf("%s: a refused put made version %d", name, r.version("p"))
			}
			if p, _ := r.m.State().Policies.Find("p"); p.Limit.Amount != 20 || p.Limit.Burst != 40 || p.Limit.Window != 1e9 {
				t.Errorf("%+v", p.Limit)
			}
		}
	}
}

func TestEqualContentMakesNoVersion(t *testing.T) {
	r := newRig(t, three)
	before := r.m.State()
	for _, c := range []Command{
		PutPolicies{Set: parsed(t, three)},
		PutPolicies{Set: parsed(t, "# moved down\n\n"+three), Prune: true},
		PutPolicy{Policy: count("a", 1)},
		Rollback{ID: "a", To: 1},
		ExpireOverrides{Now: 1 << 60},
	} {
		if e := r.do(c); e != nil || r.m.State() != before {
			t.Errorf("%s: %+v", c.kind(), e)
		}
	}
}

func TestAFileIsPutWholeOrNotAtAll(t *testing.T) {
	r := newRig(t, "no_match: deny\n"+three)
	e := r.do(PutPolicies{Set: parsed(t, `policies:
  - {id: b, scope: [tenant], amount: 2, window: 1s}
  - {id: c, scope: [tenant, api_key], amount: 1, window: 1s}
  - {id: d, scope: [tenant], amount: 1, window: 1s}
`)})
	if d := cmp.Diff([]VersionChange{{"b", 1, 2}, {"d", 0, 2}}, e.Changes); d != "" || r.versions() != "a@1 b@2 c@1 d@2" {
		t.Errorf("%s %s", d, r.versions())
	}
	if s := r.m.State(); s.Policies.NoMatch != policy.Deny || s.SettingsVersion != 0 {
		t.Error("a file that says nothing of no_match changes it")
	}
	// One bad policy, and nothing of the file comes in.
	bad := parsed(t, three)
	bad.Policies[0].Limit.Amount = 9
	bad.Policies[2].Limit.Window = 5
	r.refused(fault.InvalidArgument, `p.yaml:4: policy "c".window: 5ns, want 1ms`, PutPolicies{Set: bad})
	twice := parsed(t, three)
	twice.Policies[1] = twice.Policies[0]
	r.refused(fault.InvalidArgument, `"a" twice or out of order`, PutPolicies{Set: twice})
	r.refused(fault.InvalidArgument, "home: [region], want [tenant]", PutPolicies{Set: parsed(t, "home: [region]\n"+three)})
	r.refused(fault.InvalidArgument, "overrides", PutPolicies{Set: &policy.Set{Home: []string{"tenant"}, Omitted: []string{"home"}, Overrides: []*policy.Override{{}}}})
	r.refused(fault.InvalidArgument, "by.when", PutPolicies{Set: parsed(t, three), By: Author{When: "noon"}})
	r.refused(fault.InvalidArgument, "set", PutPolicies{})
	if r.versions() != "a@1 b@2 c@1 d@2" {
		t.Error(r.versions())
	}
	e = r.do(PutPolicies{Set: parsed(t, "no_match: allow\npolicies: [{id: a, scope: [tenant], amount: 1, window: 1s}]\n"), Prune: true})
	if r.versions() != "a@1" || e.Total != 3 || e.Detail != "settings" || r.m.State().SettingsVersion != 3 || r.m.State().Policies.NoMatch != policy.Allow {
		t.Errorf("%s %+v", r.versions(), e)
	}
}

// A family clash with a policy that the file does not have is found too.
func TestAFileIsJudgedWithWhatItMeets(t *testing.T) {
	r := newRig(t, three)
	clash := count("z", 1)
	clash.Family = "a"
	r.refused(fault.InvalidArgument, `policy "z".match: {}, the same as that of a`, PutPolicy{Policy: clash})
	set := parsed(t, "policies: [{id: z, family: b, scope: [tenant], amount: 1, window: 1s}]\n")
	r.refused(fault.InvalidArgument, `p.yaml:1: policy "z".match: {}, the same as that of b`, PutPolicies{Set: set})
	r.do(PutPolicies{Set: set, Prune: true}) // b goes in the same step
	classes := parsed(t, `route_classes: [{name: x, routes: ["GET:/x"]}]
policies: [{id: x, match: {route_class: x}, scope: [tenant], amount: 1, window: 1s}]
`)
	r.do(PutPolicies{Set: classes})
	other := parsed(t, "route_classes: [{name: y, routes: [\"GET:/x\"]}]\npolicies: []\n")
	r.refused(fault.InvalidArgument, `policy "x".match.route_class: "x", want a route class: y`, PutPolicies{Set: other})
}

func TestIfMatchOfAFile(t *testing.T) {
	r := newRig(t, three)
	r.do(PutPolicy{Policy: count("a", 2)}) // version 2
	r.do(PutPolicy{Policy: count("b", 3)}) // version 3
	file := func(a, b uint64) *policy.Set {
		return &policy.Set{Home: []string{"tenant"}, Omitted: []string{"home", "no_match", "route_classes"}, Policies: []*policy.Policy{count("a", a), count("b", b)}}
	}
	r.refused(fault.PreconditionFailed, `policy "b" has version 3, If-Match names 2`, PutPolicies{Set: file(2, 9), IfMatch: is(2)})
	r.do(PutPolicies{Set: file(5, 3), IfMatch: is(2)}) // b is above, but not changed: version 4
	r.do(PutPolicies{Set: file(5, 6), IfMatch: is(4)}) // version 5
	if r.versions() != "a@4 b@5 c@1" {
		t.Error(r.versions())
	}
	// What was deleted since does not come back, and neither goes what was put since.
	r.do(DeletePolicy{ID: "a"}) // version 6
	r.refused(fault.PreconditionFailed, `policy "a" has version 6, If-Match names 5`, PutPolicies{Set: file(5, 6), IfMatch: is(5)})
	r.do(PutPolicy{Policy: count("n", 1)}) // version 7
	r.refused(fault.PreconditionFailed, `policy "n" has version 7, If-Match names 6`, PutPolicies{Set: file(5, 6), Prune: true, IfMatch: is(6)})
	deny := file(5, 6)
	deny.NoMatch, deny.Omitted = policy.Deny, []string{"home", "route_classes"}
	r.do(PutPolicies{Set: deny, IfMatch: is(7)}) // version 8
	allow := file(5, 6)
	allow.Omitted = deny.Omitted
	r.refused(fault.PreconditionFailed, "what stands beside the policies has version 8", PutPolicies{Set: allow, IfMatch: is(7)})
}

func TestIfMatchOfOnePolicy(t *testing.T) {
	r := newRig(t, three)
	r.refused(fault.PreconditionFailed, `policy "a" has version 1, If-Match names 2`, PutPolicy{Policy: count("a", 2), IfMatch: is(2)})
	r.refused(fault.PreconditionFailed, `policy "a" has version 1, If-Match names 0`, PutPolicy{Policy: count("a", 1), IfMatch: is(0)})
	r.refused(fault.PreconditionFailed, `policy "n" does not exist, If-Match names version 1`, PutPolicy{Policy: count("n", 1), IfMatch: is(1)})
	r.do(PutPolicy{Policy: count("n", 1), IfMatch: is(0)})
	r.refused(fault.PreconditionFailed, `policy "a" has version 1`, DeletePolicy{ID: "a", IfMatch: is(2)})
	r.refused(fault.PreconditionFailed, `policy "n" has version 2`, Rollback{ID: "n", To: 1, IfMatch: is(1)})
	r.refused(fault.NotFound, `there is no policy "m"`, DeletePolicy{ID: "m"})
	r.do(DeletePolicy{ID: "a", IfMatch: is(1)})
	if !errors.Is(ErrStale, fault.PreconditionFailed) {
		t.Error("ErrStale is of another kind")
	}
}

func TestVersionsAreNeverReused(t *testing.T) {
	r := newRig(t, three)
	r.do(PutPolicy{Policy: count("a", 2)})            // 2
	r.do(DeletePolicy{ID: "a", By: Author{Who: "x"}}) // 3
	r.do(PutPolicy{Policy: count("a", 2)})            // 4
	r.do(Rollback{ID: "a", To: 1})                    // 5
	r.do(DeletePolicy{ID: "a"})                       // 6
	r.do(Rollback{ID: "a", To: 2})                    // 7
	r.refused(fault.NotFound, `no version 3 of policy "a" is kept`, Rollback{ID: "a", To: 3})
	var got []string
	for _, v := range r.m.State().History("a") {
		what := "deleted"
		if v.Policy != nil {
			what = fmt.Sprint(v.Policy.Limit.Amount)
		}
		got = append(got, fmt.Sprintf("%d %s by %s", v.Version, what, v.Made.Action))
	}
	want := []string{"7 2 by rollback", "6 deleted by delete", "5 1 by rollback", "4 2 by put", "3 deleted by delete", "2 2 by put", "1 1 by found"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if h := r.m.State().History("never"); len(h) != 0 {
		t.Error(h)
	}
}

func TestHistoryAndAuditAreBounded(t *testing.T) {
	r := newRig(t, three)
	for i := range uint64(maxAudit + 10) {
		r.quick(PutPolicy{Policy: count([]string{"a", "b", "b"}[i%3], i%7+i%3+10)})
	}
	s := r.m.State()
	if len(s.Audit) != maxAudit || s.Audit[maxAudit-1].Version != s.PolicyVersion {
		t.Errorf("%d audit entries", len(s.Audit))
	}
	if a, b := s.History("a"), s.History("b"); len(a) != maxPastOf+1 || len(b) != maxPastOf+1 || len(s.Past) != 2*maxPastOf {
		t.Errorf("%d and %d versions of %d", len(a), len(b), len(s.Past))
	}
	if !slices.IsSortedFunc(s.Past, func(a, b Past) int { return int(a.Ended) - int(b.Ended) }) {
		t.Error("past versions are out of order")
	}
}
