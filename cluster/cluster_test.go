package cluster

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// bubble runs a test of a cluster of n nodes in a bubble.
func bubble(t *testing.T, n int, f func(t *testing.T, s *sim)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, n)
		defer s.close()
		f(t, s)
	})
}

func TestThreeNodesFormACluster(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		r, err := s.nodes["b"].Status(t.Context(), &pb.StatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Nodes) != 3 || len(r.Groups) != 3 {
			t.Fatalf("%d nodes and %d groups, want 3 and 3", len(r.Nodes), len(r.Groups))
		}
		for _, g := range r.Groups {
			if len(g.Members) != 3 || g.Slots == 0 {
				t.Errorf("group %d has %d replicas and %d slots", g.Id, len(g.Members), g.Slots)
			}
		}
		s.eventually(time.Second, func() error {
			for name, x := range s.nodes {
				if ok, why := x.Ready(); !ok {
					return fmt.Errorf("%s is not ready: %s", name, why)
				}
			}
			return nil
		})
	})
}

func TestOneNodeIsAClusterOfItsOwn(t *testing.T) {
	bubble(t, 1, func(t *testing.T, s *sim) {
		s.boot()
		if r := s.any().take(t.Context(), request("t", "year")); !r.GetDecision().GetAllowed() {
			t.Errorf("first take: %v", r)
		}
	})
}

func TestAnyNodeAnswersTheSame(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		var admitted int
		for i := range 30 {
			x := s.nodes[s.names[i%3]]
			r := x.take(t.Context(), request("t", "year"))
			if r.GetError() != nil {
				t.Fatalf("take %d: %v", i, r.GetError())
			}
			if d := r.GetDecision(); d.GetAllowed() {
				admitted++
			} else if d.GetRetryAfterNs() <= 0 {
				t.Errorf("denied without a retry time: %v", d)
			}
		}
		if admitted != 10 {
			t.Errorf("%d of 30 admitted, want 10", admitted)
		}
	})
}
