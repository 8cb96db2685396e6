package cluster

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/policy"
)

// capped runs one node with caps on buckets and a policy for each failure mode,
// picked by the plan of the request.
func capped(t *testing.T, caps func(*Config), test func(t *testing.T, s *sim)) {
	const file = `
policies:
  - {id: local, match: {plan: local}, scope: [tenant, user], amount: 5, window: 1h}
  - {id: closed, match: {plan: closed}, scope: [tenant, user], amount: 5, window: 1h, on_unavailable: {mode: closed}}
  - {id: open, match: {plan: open}, scope: [tenant, user], amount: 5, window: 1h, on_unavailable: {mode: open, for: 20s, then: closed}}
  - {id: try, match: {plan: open}, scope: [tenant, user], amount: 5, window: 2h, mode: shadow, on_unavailable: {mode: closed}}
`
	bubble(t, 1, func(t *testing.T, s *sim) {
		set, err := policy.Parse("test.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		s.set = set
		cfg := s.config("a")
		caps(&cfg)
		n, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.run(n)
		s.healthy(10 * time.Second)
		test(t, s)
	})
}

// planned is a request of one user under the policy of a plan.
func planned(tenant, name, plan string) *pb.DecideRequest {
	r := user(tenant, name)
	r.Subject.Plan = plan
	return r
}

// wantModes checks what new keys of a tenant get: their policy's failure mode.
func wantModes(t *testing.T, s *sim, tenant string) {
	t.Helper()
	for k := range 3 { // also again and again
		name := fmt.Sprint("new", k)
		r := s.any().take(t.Context(), planned(tenant, name, "local"))
		if e := r.GetError(); e.GetCode() != pb.Code_CODE_STORE_FULL || e.GetPolicyId() != "local" || e.GetFailureMode() != "local" {
			t.Errorf("local: %v", r)
		}
		r = s.any().take(t.Context(), planned(tenant, name, "closed"))
		if d := r.GetDecision(); d == nil || d.Allowed || !d.Degraded || d.Reason != "limiter_unavailable" || d.PolicyId != "closed" ||
			d.PolicyVersion != 1 || d.Limit != 5 || d.RetryAfterNs <= 0 {
			t.Errorf("closed: %v", r)
		}
		r = s.any().take(t.Context(), planned(tenant, name, "open"))
		if d := r.GetDecision(); !d.GetAllowed() || !d.Degraded || d.Reason != "" || d.PolicyId != "open" {
			t.Errorf("open: %v", r)
		}
	}
}

// wantKept checks that a key that was there before the cap was reached is
// decided by its bucket.
func wantKept(t *testing.T, s *sim, tenant, name string, left uint64) {
	t.Helper()
	d := s.any().take(t.Context(), planned(tenant, name, "local")).GetDecision()
	if !d.GetAllowed() || d.GetDegraded() || d.GetRemaining() != left {
		t.Errorf("%s of %s: %v, want %d left", name, tenant, d, left)
	}
}

func TestTenantAtItsCapMeetsItsFailureModeAndOthersDoNot(t *testing.T) {
	capped(t, func(c *Config) { c.MaxPerTenant = 50 }, func(t *testing.T, s *sim) {
		for i := range 50 {
			wantKept(t, s, "greedy", fmt.Sprint(i), 4)
		}
		wantModes(t, s, "greedy")
		wantKept(t, s, "greedy", "7", 3)
		wantKept(t, s, "modest", "1", 4)
	})
}

func TestNodeAtItsCapMeetsTheFailureModeOfNewKeys(t *testing.T) {
	capped(t, func(c *Config) { c.MaxBuckets = 40 }, func(t *testing.T, s *sim) {
		for i := range 40 {
			wantKept(t, s, fmt.Sprint("t", i), "u", 4)
		}
		for _, tenant := range []string{"t1", "other"} {
			wantModes(t, s, tenant)
		}
		wantKept(t, s, "t7", "u", 3)
		time.Sleep(time.Hour) // all are full again, and dropped
		wantKept(t, s, "late", "u", 4)
	})
}

func TestOpenTurnsWhenThereIsNoRoomForLong(t *testing.T) {
	capped(t, func(c *Config) { c.MaxBuckets = 1 }, func(t *testing.T, s *sim) {
		wantKept(t, s, "t", "first", 4)
		take := func() *pb.Decision { return s.any().take(t.Context(), planned("t", "new", "open")).GetDecision() }
		for elapsed := time.Duration(0); elapsed < 40*time.Second; elapsed += 5 * time.Second {
			if d := take(); d.GetAllowed() != (elapsed < 20*time.Second) || !d.GetDegraded() {
				t.Errorf("after %v: %v", elapsed, d)
			}
			time.Sleep(5 * time.Second)
		}
		time.Sleep(time.Minute) // nobody was refused meanwhile: another spell
		if d := take(); !d.GetAllowed() {
			t.Errorf("later: %v", d)
		}
	})
}

// TestClientSeesWhatTheCapDecided: an error says whose mode it is, a decision
// that it is degraded.
func TestClientSeesWhatTheCapDecided(t *testing.T) {
	capped(t, func(c *Config) { c.MaxBuckets = 1 }, func(t *testing.T, s *sim) {
		wantKept(t, s, "t", "first", 4)
		c := s.dial()
		defer c.Close()
		ask := func(plan string) (client.Decision, error) {
			return c.Decide(t.Context(), client.Request{Tenant: "t", Plan: plan, Principals: []client.Principal{{Type: "user", ID: "new"}}})
		}
		_, err := ask("local")
		var e *fault.Error
		if !errors.As(err, &e) || !errors.Is(err, fault.StoreFull) || e.Policy != "local" || e.Mode != "local" {
			t.Errorf("local: %v", err)
		}
		if d, err := ask("closed"); err != nil || d.Allowed || !d.Degraded || d.Reason != "limiter_unavailable" {
			t.Errorf("closed: %+v, %v", d, err)
		}
		if d, err := ask("open"); err != nil || !d.Allowed || !d.Degraded {
			t.Errorf("open: %+v, %v", d, err)
		}
	})
}

// TestNoRoomInAnotherGroupGivesBackWhatWasTaken: the home group admitted, the
// group of the user's bucket has no room: the request meets its failure mode and
// nothing stays charged.
func TestNoRoomInAnotherGroupGivesBackWhatWasTaken(t *testing.T) {
	const file = `
policies:
  - {id: fill, match: {plan: fill}, scope: [user], amount: 5, window: 24h}
  - {id: of-tenant, match: {plan: both}, scope: [tenant], amount: 1000, window: 24h, on_unavailable: {mode: open}}
  - {id: of-user, match: {plan: both}, scope: [user], amount: 5, window: 24h, on_unavailable: {mode: closed}}
`
	bubble(t, 3, func(t *testing.T, s *sim) {
		set, err := policy.Parse("test.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		s.set = set
		for _, name := range s.names {
			cfg := s.config(name)
			cfg.MaxBuckets = 300
			n, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			s.run(n)
		}
		s.healthy(30 * time.Second)
		old := planned("t", "old", "both")
		if d := s.any().take(t.Context(), old).GetDecision(); !d.GetAllowed() {
			t.Fatal(d)
		}
		for i := range 600 {
			s.any().take(t.Context(), planned("t", fmt.Sprint("f", i), "fill"))
		}
		for i := range 20 {
			r := s.any().take(t.Context(), planned("t", fmt.Sprint("new", i), "both"))
			if d := r.GetDecision(); d == nil || d.Allowed || !d.Degraded || d.PolicyId != "of-user" {
				t.Errorf("user %d: %v", i, r)
			}
		}
		look := planned("t", "old", "both")
		look.Cost = new(int64)
		s.eventually(10*time.Second, func() error {
			for _, l := range s.any().take(t.Context(), look).GetDecision().GetLimits() {
				if l.GetRemaining() != l.GetLimit()-1 {
					return fmt.Errorf("%s: %d of %d left", l.GetPolicyId(), l.GetRemaining(), l.GetLimit())
				}
			}
			return nil
		})
		if d := s.any().take(t.Context(), old).GetDecision(); !d.GetAllowed() || d.GetDegraded() {
			t.Errorf("an old key: %v", d)
		}
	})
}
