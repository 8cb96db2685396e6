package cluster

import (
	"errors"
	"fmt"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/policy"
)

// loseTwo kills two of three nodes at once, starts them again, and waits until the
// groups have new epochs and serve.
func (s *sim) loseTwo() {
	s.t.Helper()
	before := s.any().control.State().Groups
	s.kill("b")
	s.kill("c")
	s.start("b")
	s.start("c")
	s.eventually(2*time.Minute, func() error {
		for _, old := range before {
			g, ok := s.any().control.State().Group(old.ID)
			if !ok || g.Epoch == old.Epoch || !g.Formed || len(g.Births) > 0 {
				return fmt.Errorf("group %d: epoch %d, formed %v, %d births to come", old.ID, g.Epoch, g.Formed, len(g.Births))
			}
		}
		return nil
	})
	s.healthy(time.Minute)
}

func TestNewEpochBeginsAsItsPoliciesSay(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		for _, name := range s.names {
			s.dirs[name] = t.TempDir()
		}
		s.set.Policies = append(s.set.Policies, &policy.Policy{
			ID: "again", Match: policy.On("plan", "again"), Scope: []string{"tenant"}, OnStateLoss: policy.Full,
			Limit: bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 10, Burst: 10, Window: int64(8760 * time.Hour)},
		})
		s.boot()
		c := s.dial()
		defer c.Close()
		burst(c, 4, client.Request{Tenant: "t", Plan: "year"}).want(t, 4, 0)
		burst(c, 4, client.Request{Tenant: "t", Plan: "again"}).want(t, 4, 0)
		burst(c, 4, client.Request{Tenant: "t", Plan: "burst"}).want(t, 4, 0)
		s.loseTwo()
		begun := time.Now()
		burst(c, 20, client.Request{Tenant: "t", Plan: "year"}).want(t, 0, 20)   // empty: what was taken is not known
		burst(c, 20, client.Request{Tenant: "u", Plan: "year"}).want(t, 0, 20)   // nor who took
		burst(c, 20, client.Request{Tenant: "t", Plan: "again"}).want(t, 10, 10) // full
		time.Sleep(2 * time.Second)
		y := burst(c, 200, client.Request{Tenant: "t", Plan: "burst"}) // 10 a second, refilled since the epoch began
		if n, most := y.admitted.Load(), int64(time.Since(begun).Seconds()*10)+101; n < 20 || n > most {
			t.Errorf("%d admitted, want 20 … %d", n, most)
		}
		if d := s.any().take(t.Context(), request("t", "year")).GetDecision(); d.GetEpoch() != 2 {
			t.Errorf("epoch %d, want 2", d.GetEpoch())
		}
	})
}

func TestCopyOfAnEarlierEpochIsTooOld(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		for _, name := range s.names {
			s.dirs[name] = t.TempDir()
		}
		s.set.Policies[0].OnStateLoss = policy.Full // "burst"
		s.boot()
		first := time.Now()
		copyOf := func(attempt uint32) *pb.Result {
			r := request("t", "burst")
			r.Sent = &pb.Sent{Session: 7, Sequence: 1, Attempt: attempt, AgeNs: uint64(time.Since(first)), Epoch: 1}
			return s.any().take(t.Context(), r)
		}
		if res := copyOf(1); !res.GetDecision().GetAllowed() {
			t.Fatalf("%v", res)
		}
		s.loseTwo()
		if res := copyOf(2); res.GetError().GetCode() != pb.Code_CODE_TOO_OLD {
			t.Errorf("%v", res)
		}
		// Also where the slot has moved to a group that was not lost since.
		slot := s.slot("t")
		s.begin(s.elsewhere(slot), slot)
		s.ended(slot, 10*time.Second)
		if res := copyOf(3); res.GetError().GetCode() != pb.Code_CODE_TOO_OLD {
			t.Errorf("%v", res)
		}
		r := request("t", "burst")
		r.Sent = &pb.Sent{Session: 7, Sequence: 2, Attempt: 1, Epoch: 9}
		if res := s.any().take(t.Context(), r); !res.GetDecision().GetAllowed() {
			t.Errorf("a new request: %v", res)
		}
	})
}

func TestTokensOfPermitsGrowAcrossEpochsAndMoves(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		for _, name := range s.names {
			s.dirs[name] = t.TempDir()
		}
		s.set.Policies = append(s.set.Policies, &policy.Policy{
			ID: "permits", Match: policy.On("plan", "permits"), Scope: []string{"tenant"}, OnStateLoss: policy.Full,
			Limit: bucket.Limit{Algorithm: bucket.Concurrency, Amount: 100, Window: int64(time.Minute)},
		})
		s.boot()
		slot, last := s.slot("t"), uint64(0)
		grant := func() {
			t.Helper()
			s.eventually(time.Second, func() error {
				d := s.any().take(t.Context(), request("t", "permits")).GetDecision()
				if !d.GetAllowed() {
					return errors.New("no permit")
				}
				if d.FencingToken <= last {
					t.Errorf("token %d after %d", d.FencingToken, last)
				}
				last = d.FencingToken
				return nil
			})
		}
		grant()
		grant()
		s.loseTwo()
		grant()
		s.begin(s.elsewhere(slot), slot)
		s.ended(slot, 10*time.Second)
		grant()
		s.loseTwo()
		grant()
	})
}
