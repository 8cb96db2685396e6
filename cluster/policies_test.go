package cluster

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/policy"
)

// withPolicies boots three nodes under a policy file.
func withPolicies(t *testing.T, file string, f func(t *testing.T, s *sim)) {
	t.Helper()
	bubble(t, 3, func(t *testing.T, s *sim) {
		set, err := policy.Parse("test.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		s.set = set
		s.boot()
		f(t, s)
	})
}

func user(tenant, id string) *pb.DecideRequest {
	return &pb.DecideRequest{Subject: &pb.Subject{Tenant: tenant, Principals: []*pb.Principal{{Type: "user", Id: id}}}}
}

// put puts a policy file through one node.
func (s *sim) put(node, file string) *pb.PutResponse {
	s.t.Helper()
	r, err := s.nodes[node].Policies().PutFile(s.t.Context(), &pb.PutFileRequest{File: []byte(file), Name: "test.yaml"})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

const everyAlgorithm = `
policies:
  - {id: a, match: {plan: a}, scope: [tenant], algorithm: token_bucket, amount: 10, window: 1h}
  - {id: b, match: {plan: b}, scope: [tenant], algorithm: leaky_bucket, amount: 10, window: 1h}
  - {id: c, match: {plan: c}, scope: [tenant], algorithm: fixed_window, amount: 10, window: 24h}
  - {id: d, match: {plan: d}, scope: [tenant], algorithm: sliding_window, amount: 10, window: 24h}
  - {id: e, match: {plan: e}, scope: [tenant], algorithm: sliding_log, amount: 10, window: 1h}
  - {id: f, match: {plan: f}, scope: [tenant], algorithm: concurrency, amount: 10, window: 1h}
`

func TestThousandCallersOnALimitOfTen(t *testing.T) {
	withPolicies(t, everyAlgorithm, func(t *testing.T, s *sim) {
		c := s.dial()
		defer c.Close()
		for _, plan := range []string{"a", "b", "c", "d", "e", "f"} {
			burst(c, 1000, client.Request{Tenant: "t" + plan, Plan: plan}).want(t, 10, 990)
		}
		s.equalReplicas()
	})
}

// The scopes spread over the groups: the user's and the organisation's limits of
// one request are decided in several.
const userAndOrg = `
home: [tenant]
policies:
  - {id: org, scope: [tenant], algorithm: fixed_window, amount: 10, window: 24h}
  - {id: user, scope: [user], algorithm: fixed_window, amount: 5, window: 24h}
`

func TestUserAndOrganisationOverSeveralGroups(t *testing.T) {
	withPolicies(t, userAndOrg, func(t *testing.T, s *sim) {
		for org := range 10 { // some of them have their users elsewhere
			tenant := fmt.Sprint("org", org)
			for _, who := range []string{"A", "B"} {
				admitted := 0
				for i := range 8 {
					r := s.nodes[s.names[i%3]].take(t.Context(), user(tenant, tenant+who))
					if r.GetError() != nil {
						t.Fatal(r.GetError())
					}
					if r.GetDecision().GetAllowed() {
						admitted++
					}
				}
				if admitted != 5 {
					t.Errorf("%s %s: %d of 8 admitted, want 5", tenant, who, admitted)
				}
			}
			// What the users' limits denied was given back to the organisation's:
			// it is spent by exactly ten.
			for _, who := range []string{"C", "D"} {
				d := s.any().take(t.Context(), user(tenant, tenant+who)).GetDecision()
				if d.GetAllowed() || d.GetPolicyId() != "org" {
					t.Errorf("%s: an eleventh was allowed, or denied by %q", tenant, d.GetPolicyId())
				}
			}
		}
	})
}

func TestDeniedRequestTakesFromNoneOfItsLimits(t *testing.T) {
	withPolicies(t, userAndOrg, func(t *testing.T, s *sim) {
		var wg sync.WaitGroup
		var admitted atomic.Int64
		for i := range 60 { // 20 users of one organisation, three times each
			wg.Go(func() {
				r := s.nodes[s.names[i%3]].take(t.Context(), user("org", fmt.Sprint("u", i%20)))
				if r.GetDecision().GetAllowed() {
					admitted.Add(1)
				}
			})
		}
		wg.Wait()
		if n := admitted.Load(); n != 10 {
			t.Errorf("%d admitted, want the organisation's 10", n)
		}
		time.Sleep(6 * time.Second) // what is undone is undone by now
		spent := 0
		for i := range 20 {
			r := s.any().take(t.Context(), &pb.DecideRequest{Subject: user("", fmt.Sprint("u", i)).Subject, Cost: new(int64)})
			spent += 5 - int(r.GetDecision().GetRemaining())
		}
		if spent != 10 {
			t.Errorf("%d spent of the users' limits, want 10", spent)
		}
	})
}

func TestPolicyChangesReachEveryNodeAndCutOver(t *testing.T) {
	const file = "policies:\n  - {id: p, scope: [tenant], algorithm: token_bucket, amount: %d, window: 60s, burst: 100}\n"
	withPolicies(t, fmt.Sprintf(file, 1), func(t *testing.T, s *sim) {
		for range 100 {
			s.any().take(t.Context(), request("t", ""))
		}
		time.Sleep(time.Minute)
		r := s.put("b", fmt.Sprintf(file, 100))
		if !r.Changed || r.Version != 2 {
			t.Errorf("put: %v", r)
		}
		time.Sleep(50 * time.Millisecond) // c hears of it
		if again := s.put("c", fmt.Sprintf(file, 100)); again.Changed || again.Version != 2 {
			t.Errorf("the same again: %v", again)
		}
		time.Sleep(600 * time.Millisecond) // at the new rate: one token
		for name, x := range s.nodes {
			d := x.take(t.Context(), &pb.DecideRequest{Subject: request("t", "").Subject, Cost: new(int64)}).GetDecision()
			if d.GetPolicyVersion() != 2 || d.GetRemaining() < 1 || d.GetRemaining() > 3 {
				t.Errorf("%s: %d left under version %d, want 2 or so: one at the old rate, one at the new", name, d.GetRemaining(), d.GetPolicyVersion())
			}
		}
	})
}

func TestEveryDecisionNamesOneVersionWhilePoliciesChange(t *testing.T) {
	const file = "policies:\n  - {id: p, scope: [tenant], algorithm: token_bucket, amount: %d, window: 1s, burst: %d}\n"
	withPolicies(t, fmt.Sprintf(file, 1000, 1000), func(t *testing.T, s *sim) {
		c := s.dial()
		defer c.Close()
		done := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				var last uint64
				for {
					select {
					case <-done:
						return
					case <-time.After(3 * time.Millisecond):
					}
					d, err := c.Decide(t.Context(), client.Request{Tenant: fmt.Sprint("t", i)})
					// Version v has amount and burst 1000 + v.
					if err != nil || d.Limit != 999+d.PolicyVersion || d.PolicyVersion < last {
						t.Errorf("%v: limit %v under version %d after %d", err, d.Answer, d.PolicyVersion, last)
						return
					}
					last = d.PolicyVersion
				}
			})
		}
		for v := range 100 {
			s.put(s.names[v%3], fmt.Sprintf(file, 1001+v, 1001+v))
		}
		time.Sleep(time.Second)
		close(done)
		wg.Wait()
		for name, x := range s.nodes {
			if got := x.control.State().PolicyVersion; got != 101 {
				t.Errorf("%s is at version %d, want 101", name, got)
			}
		}
	})
}

func TestIfMatchGuardsAgainstLostUpdates(t *testing.T) {
	const file = "policies:\n  - {id: p, scope: api_key, rate_per_second: %d, burst: 40}\n"
	withPolicies(t, fmt.Sprintf(file, 10), func(t *testing.T, s *sim) {
		put := func(rate int, match uint64) error {
			_, err := s.nodes["a"].Policies().PutFile(t.Context(), &pb.PutFileRequest{File: fmt.Appendf(nil, file, rate), IfMatch: &match})
			return err
		}
		if err := put(20, 1); err != nil {
			t.Fatal(err)
		}
		if err := put(20, 1); !errors.Is(err, fault.PreconditionFailed) {
			t.Errorf("a put by an old version: %v", err)
		}
		_, err := s.nodes["b"].Policies().PutFile(t.Context(), &pb.PutFileRequest{File: []byte("policies:\n  - {id: p, scope: tenant, amount: ten, window: 1s}\n"), Name: "f.yaml"})
		if !errors.Is(err, fault.InvalidArgument) {
			t.Errorf("a bad file: %v", err)
		}
		s.eventually(time.Second, func() error { // c hears of the change a moment after a
			h, err := s.nodes["c"].Policies().History(t.Context(), &pb.PolicyHistoryRequest{Id: "p"})
			if err == nil && len(h.Versions) != 2 {
				err = fmt.Errorf("history: %v", h)
			}
			return err
		})
	})
}

func TestPermitsAreHeldReleasedAndExpire(t *testing.T) {
	withPolicies(t, "policies:\n  - {id: p, scope: [tenant], algorithm: concurrency, amount: 2, window: 60s}\n", func(t *testing.T, s *sim) {
		take := func() *pb.Decision { return s.any().take(t.Context(), request("t", "")).GetDecision() }
		first, second := take(), take()
		if !first.GetAllowed() || !second.GetAllowed() || take().GetAllowed() {
			t.Fatal("want two of three")
		}
		if first.GetPermitId() == "" || second.GetFencingToken() <= first.GetFencingToken() {
			t.Errorf("permits %v and %v", first, second)
		}
		release := func(d *pb.Decision) bool {
			r, err := s.nodes["b"].Release(t.Context(), &pb.PermitRequest{PermitId: d.GetPermitId()})
			if err != nil {
				t.Fatal(err)
			}
			return r.GetHeld()
		}
		if !release(first) || release(first) {
			t.Error("a permit is released once")
		}
		third := take()
		if !third.GetAllowed() {
			t.Error("a released permit stays taken")
		}
		start := time.Now()
		for range 5 { // five leaders die within the permit's time
			time.Sleep(5 * time.Second)
			victim := s.leader("t")
			s.kill(victim)
			s.leader("t")
			s.start(victim)
			s.healthy(20 * time.Second)
		}
		time.Sleep(59*time.Second - time.Since(start))
		if take().GetAllowed() {
			t.Error("a permit ended before its time")
		}
		time.Sleep(2 * time.Second)
		if !take().GetAllowed() {
			t.Error("a permit outlived its time by the deaths of leaders")
		}
		if release(third) {
			t.Error("a permit that had expired was released")
		}
	})
}

func TestRefundGivesBackOnce(t *testing.T) {
	withPolicies(t, userAndOrg, func(t *testing.T, s *sim) {
		for i := range 6 {
			r := user("org", fmt.Sprint("u", i))
			r.RequestId = fmt.Sprint("id", i)
			if d := s.any().take(t.Context(), r).GetDecision(); !d.GetAllowed() {
				t.Fatal(d)
			}
			for k := range 2 {
				back, err := s.nodes["c"].Refund(t.Context(), &pb.RefundRequest{Subject: r.Subject, RequestId: r.RequestId})
				if err != nil || back.GetRefunded() != (k == 0) {
					t.Errorf("refund %d of %s: %v, %v", k, r.RequestId, back, err)
				}
			}
		}
		d := s.any().take(t.Context(), &pb.DecideRequest{Subject: user("org", "u0").Subject, Cost: new(int64)}).GetDecision()
		for _, l := range d.GetLimits() {
			if l.GetRemaining() != l.GetLimit() {
				t.Errorf("%s: %d of %d left, want all", l.GetPolicyId(), l.GetRemaining(), l.GetLimit())
			}
		}
	})
}

func TestExhaustedShadowPolicyChangesNoDecision(t *testing.T) {
	const file = `
policies:
  - {id: real, scope: [tenant], algorithm: fixed_window, amount: 100, window: 24h}
  - {id: try, scope: [tenant], algorithm: fixed_window, amount: 1, window: 24h, mode: shadow}
`
	withPolicies(t, file, func(t *testing.T, s *sim) {
		var d *pb.Decision
		for range 3 {
			d = s.any().take(t.Context(), request("t", "")).GetDecision()
		}
		if !d.GetAllowed() || d.GetPolicyId() != "real" || d.GetRemaining() != 97 || len(d.GetLimits()) != 2 || d.GetLimits()[1].GetAllowed() {
			t.Errorf("got %v", d)
		}
	})
}

func TestHomeOfTwoAttributesSpreadsOneTenant(t *testing.T) {
	const file = "home: [%s]\npolicies:\n  - {id: p, scope: [tenant, api_key], amount: 5, window: 1h}\n"
	perGroup := func(t *testing.T, s *sim) map[uint32]int {
		v := s.any().view.Load()
		count := make(map[uint32]int)
		for i := range 10_000 {
			home := v.index.Home(&policy.Request{Tenant: "big", Principals: []policy.Principal{{Type: "api_key", ID: fmt.Sprint("k", i)}}})
			if !home.OK {
				t.Fatal("no home")
			}
			count[v.state.SlotGroup[home.Slot]]++
		}
		return count
	}
	withPolicies(t, fmt.Sprintf(file, "tenant, api_key"), func(t *testing.T, s *sim) {
		count := perGroup(t, s)
		for g, n := range count {
			if float64(n) > 1.25*10_000/3 {
				t.Errorf("group %d decides %d of 10,000 keys", g, n)
			}
		}
		if len(count) != 3 {
			t.Errorf("keys in %d groups, want 3", len(count))
		}
	})
	withPolicies(t, fmt.Sprintf(file, "tenant"), func(t *testing.T, s *sim) {
		if count := perGroup(t, s); len(count) != 1 {
			t.Errorf("one tenant in %d groups, want 1", len(count))
		}
	})
}

func TestThreeLimitsOfWhichOneDeniesLoseNothing(t *testing.T) {
	const file = `
policies:
  - {id: wide, scope: [tenant], algorithm: sliding_log, amount: 5000, window: 1h}
  - {id: middle, scope: [tenant, user], algorithm: leaky_bucket, amount: 100, window: 24h, burst: 100}
  - {id: narrow, scope: [user], algorithm: fixed_window, amount: 10, window: 24h}
`
	withPolicies(t, file, func(t *testing.T, s *sim) {
		c := s.dial()
		defer c.Close()
		who := []client.Principal{{Type: "user", ID: "u"}}
		burst(c, 1000, client.Request{Tenant: "t", Principals: who}).want(t, 10, 990)
		time.Sleep(6 * time.Second)
		d, err := c.Decide(t.Context(), client.Request{Tenant: "t", Principals: who, Look: true})
		if err != nil {
			t.Fatal(err)
		}
		left := make(map[string]uint64)
		for _, l := range d.All() {
			left[l.PolicyID] = l.Remaining
		}
		// A look that the home denies asks no other group.
		if left["wide"] != 4990 || left["middle"] != 90 {
			t.Errorf("left: %v, want 4990 and 90", left)
		}
	})
}
