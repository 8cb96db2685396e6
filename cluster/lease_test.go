package cluster

import (
	"fmt"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/policy"
)

// leased runs a cluster whose policies are leased where the plan says so.
func leased(t *testing.T, nodes int, test func(t *testing.T, s *sim)) {
	const file = `
policies:
  - {id: hot, match: {plan: hot}, scope: [tenant], amount: 100, window: 1h, consistency: leased}
  - {id: pages, match: {plan: pages}, scope: [tenant], amount: 60, window: 500ms, algorithm: fixed_window, cost: 3, consistency: leased}
  - {id: wide, match: {plan: both}, scope: [tenant], amount: 100, window: 1h, consistency: leased}
  - {id: narrow, match: {plan: both}, scope: [tenant, user], amount: 20, window: 1h, consistency: leased}
  - {id: mixed, match: {plan: mixed}, scope: [tenant], amount: 20, window: 1h, consistency: leased}
  - {id: mixed-too, match: {plan: mixed}, scope: [tenant], amount: 20, window: 1h}
  - {id: trial, match: {plan: trial}, scope: [tenant], amount: 20, window: 1h, mode: shadow, consistency: leased}
  - {id: far, match: {plan: far}, scope: [user], amount: 20, window: 1h, consistency: leased}
  - {id: home, match: {plan: far}, scope: [tenant], amount: 1000, window: 1h, consistency: leased}
`
	bubble(t, nodes, func(t *testing.T, s *sim) {
		set, err := policy.Parse("test.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		s.set = set
		s.boot()
		test(t, s)
	})
}

// leaseAsk asks for units of a plan, as a lease of a session.
func leaseAsk(plan string, session, sequence, units uint64) *pb.DecideRequest {
	r := planned("t", "u", plan)
	r.Sent = &pb.Sent{Session: session, Sequence: sequence, Attempt: 1}
	r.Lease = &pb.LeaseAsk{Units: units}
	return r
}

func giveLeaseBack(plan string, session, sequence uint64, units int64) *pb.RefundRequest {
	return &pb.RefundRequest{Subject: planned("t", "u", plan).Subject, Lease: &pb.Sent{Session: session, Sequence: sequence}, Cost: units}
}

func TestLeaseIsGrantedOnceAndReturnedOnce(t *testing.T) {
	leased(t, 3, func(t *testing.T, s *sim) {
		for k, name := range s.names { // the leader, and two who forward
			ask := leaseAsk("hot", 5, uint64(k+1), 10)
			d := s.nodes[name].take(t.Context(), ask).GetDecision()
			if l := d.GetLease(); !d.GetAllowed() || !d.Leased || l.GetUnits() != 10 || l.UnitCost != 1 || l.TtlNs != int64(maxLeaseTime) || d.Remaining > 90 || d.Remaining < 88 {
				t.Fatalf("at %s: %v", name, d)
			}
			again := s.nodes[name].take(t.Context(), ask).GetDecision()
			if again.GetLease().GetUnits() != 10 || again.Remaining != d.Remaining {
				t.Errorf("its copy at %s: %v", name, again)
			}
			for n, want := range []bool{true, false} {
				r, err := s.nodes[name].Refund(t.Context(), giveLeaseBack("hot", 5, uint64(k+1), 10))
				if err != nil || r.GetRefunded() != want {
					t.Errorf("return %d at %s: %v, %v", n, name, r, err)
				}
			}
		}
		ask := leaseAsk("hot", 5, 1, 11)
		if r := s.any().take(t.Context(), ask); r.GetError().GetCode() != pb.Code_CODE_ID_REUSED {
			t.Errorf("the same id for more units: %v", r)
		}
	})
}

// TestLeaseOutlivesItsLeader: the next one gives the same grant to a copy, and takes
// its return.
func TestLeaseOutlivesItsLeader(t *testing.T) {
	leased(t, 3, func(t *testing.T, s *sim) {
		ask := leaseAsk("hot", 5, 1, 40)
		first := s.any().take(t.Context(), ask).GetDecision()
		s.kill(s.leader("t"))
		ask.Sent.Attempt = 2
		var again *pb.Decision
		s.eventually(10*time.Second, func() error {
			r := s.any().take(t.Context(), ask)
			if again = r.GetDecision(); again == nil {
				return fmt.Errorf("%v", r)
			}
			return nil
		})
		if again.GetLease().GetUnits() != 40 || again.Remaining != first.GetRemaining() || again.Remaining != 60 {
			t.Fatalf("%v, then %v", first, again)
		}
		if r, err := s.any().Refund(t.Context(), giveLeaseBack("hot", 5, 1, 30)); err != nil || !r.GetRefunded() || r.Limits[0].Remaining != 89 { // one went into the gain, rounded up
			t.Fatalf("%v, %v", r, err)
		}
	})
}

func TestLeaseIsShared(t *testing.T) {
	leased(t, 1, func(t *testing.T, s *sim) {
		want := func(session, sequence, units uint64) {
			t.Helper()
			if l := s.any().take(t.Context(), leaseAsk("hot", session, sequence, 1000)).GetDecision().GetLease(); l.GetUnits() != units {
				t.Errorf("session %d: %v, want %d units", session, l, units)
			}
		}
		for session := range uint64(3) {
			s.any().take(t.Context(), leaseAsk("hot", session+1, 1, 1))
		}
		want(4, 1, 24) // a quarter of 97
		want(1, 2, 18)
		time.Sleep(lesseeTime + time.Second) // they have gone
		want(2, 2, 55)                       // all that is left
	})
}

func TestLeaseEndsWithItsWindow(t *testing.T) {
	leased(t, 1, func(t *testing.T, s *sim) {
		d := s.any().take(t.Context(), leaseAsk("pages", 1, 1, 5)).GetDecision()
		if l := d.GetLease(); l.GetUnits() != 5 || l.UnitCost != 3 || d.Remaining != 45 || l.TtlNs != d.ResetAfterNs || l.TtlNs > int64(500*time.Millisecond) {
			t.Fatalf("%v", d)
		}
	})
}

func TestLeaseOfSeveralLimits(t *testing.T) {
	leased(t, 1, func(t *testing.T, s *sim) {
		d := s.any().take(t.Context(), leaseAsk("both", 1, 1, 50)).GetDecision()
		if d.GetLease().GetUnits() != 20 || len(d.Limits) != 2 || d.PolicyId != "narrow" || d.Limits[1].Remaining != 80 || d.Limits[1].UnitCost != 1 {
			t.Fatalf("%v", d)
		}
		if d = s.any().take(t.Context(), leaseAsk("both", 1, 2, 50)).GetDecision(); d.GetAllowed() || d.Lease != nil || d.RetryAfterNs <= 0 {
			t.Fatalf("%v", d)
		}
	})
}

// TestNoLeaseOfWhatIsNotLeased: nothing is charged, and the answer says why.
func TestNoLeaseOfWhatIsNotLeased(t *testing.T) {
	leased(t, 1, func(t *testing.T, s *sim) {
		for plan, why := range map[string]string{
			"mixed": "policy mixed-too is strict",
			"trial": "no policy that may deny applies",
			"none":  "no policy that may deny applies",
		} {
			r := s.any().take(t.Context(), leaseAsk(plan, 1, 1, 5))
			if e := r.GetError(); e.GetCode() != pb.Code_CODE_NOT_LEASED || e.GetMessage() != why {
				t.Errorf("%s: %v", plan, r)
			}
		}
		d := s.any().take(t.Context(), planned("t", "u", "mixed")).GetDecision()
		if d.GetRemaining() != 19 || d.Leased {
			t.Errorf("%v", d)
		}
		if d = s.any().take(t.Context(), planned("t", "u", "both")).GetDecision(); !d.GetLeased() {
			t.Errorf("no hint at a lease: %v", d)
		}
	})
}

// TestNoLeaseOverSeveralGroups: the limit of a user may live elsewhere than its tenant's.
func TestNoLeaseOverSeveralGroups(t *testing.T) {
	leased(t, 3, func(t *testing.T, s *sim) {
		refused, granted := 0, 0
		for k := range 20 {
			r := leaseAsk("far", 1, uint64(k+1), 2)
			r.Subject.Principals[0].Id = fmt.Sprint("u", k)
			switch res := s.any().take(t.Context(), r); {
			case res.GetError().GetCode() == pb.Code_CODE_NOT_LEASED:
				refused++
				r.Sent, r.Lease = nil, nil
				if d := s.any().take(t.Context(), r).GetDecision(); !d.GetAllowed() || d.Leased {
					t.Errorf("decided: %v", d)
				}
			case res.GetDecision().GetLease().GetUnits() == 2:
				granted++
			default:
				t.Fatalf("%v", res)
			}
		}
		if granted == 0 || refused == 0 {
			t.Errorf("%d granted, %d refused", granted, refused)
		}
	})
}

func TestNoLeaseBesideOlderBuilds(t *testing.T) {
	s := &control.State{Nodes: []control.Node{{Name: "a", FormatMax: leaseFormat}, {Name: "b", FormatMax: leaseFormat - 1, Removed: true}}}
	if name := cannotLease(s); name != "" {
		t.Errorf("%s cannot", name)
	}
	s.Nodes[1].Removed = false
	if name := cannotLease(s); name != "b" {
		t.Errorf("%q cannot", name)
	}
}

func TestLesseesAreForgottenAndBounded(t *testing.T) {
	var l lessees
	now := time.Now()
	takes := func(k uint64) []bucket.Take {
		return []bucket.Take{{Key: bucket.Key{Hi: 1}}, {Key: bucket.Key{Hi: 2, Lo: k}}}
	}
	for n := range uint64(100) {
		if got := l.note(takes(n), n, now); got != n+1 {
			t.Fatalf("%d, want %d", got, n+1)
		}
	}
	if got := l.note(takes(0)[1:], 7, now); got != 2 {
		t.Errorf("%d of the second bucket alone", got)
	}
	now = now.Add(lesseeTime)
	if got := l.note(takes(3), 3, now); got != 1 || l.pairs != 2 || len(l.of) != 2 {
		t.Errorf("%d after a while, %d pairs of %d buckets", got, l.pairs, len(l.of))
	}
	for n := range uint64(maxLessees + 10) {
		l.note(takes(n)[1:], n, now)
	}
	if l.pairs != maxLessees {
		t.Errorf("%d pairs are kept", l.pairs)
	}
}

// TestCopyOfALeaseHasWhatIsLeftOfItsTime: whoever asks under his own id may do so again
// much later.
func TestCopyOfALeaseHasWhatIsLeftOfItsTime(t *testing.T) {
	leased(t, 3, func(t *testing.T, s *sim) {
		ask := planned("t", "u", "hot")
		ask.RequestId, ask.Lease = "mine", &pb.LeaseAsk{Units: 10}
		x := s.nodes["a"]
		if l := x.take(t.Context(), ask).GetDecision().GetLease(); l.GetTtlNs() != int64(maxLeaseTime) {
			t.Fatalf("%v", l)
		}
		time.Sleep(maxLeaseTime * 4 / 10)
		if l := x.take(t.Context(), ask).GetDecision().GetLease(); l.GetUnits() != 10 || l.TtlNs > int64(maxLeaseTime)*6/10 || l.TtlNs < int64(maxLeaseTime)/2 {
			t.Errorf("a copy after 0.4 of the time: %v", l)
		}
		time.Sleep(maxLeaseTime)
		if r := x.take(t.Context(), ask); r.GetError().GetCode() != pb.Code_CODE_TOO_OLD {
			t.Errorf("a copy after its time: %v", r)
		}
	})
}
