package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/policy"
)

func (s *sim) keepDirectories() {
	for _, name := range s.names {
		s.dirs[name] = s.t.TempDir()
	}
}

func TestStopsBackToBackLoseNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.boot()
		take := func() bool { return s.any().take(t.Context(), request("t", "year")).GetDecision().GetAllowed() }
		for range 4 {
			if !take() {
				t.Fatal("denied")
			}
		}
		for _, name := range s.names { // nobody looks whether the last one is whole again
			s.stop(name)
			s.start(name)
		}
		s.healthy(30 * time.Second)
		for i := range 7 {
			if allowed := take(); allowed != (i < 6) {
				t.Errorf("take %d afterwards: allowed %v", i, allowed)
			}
		}
	})
}

// serving calls f with the status of the replica that leads a group, if any does.
func (s *sim) serving(id uint32, f func(x *simNode, h *hosted, st group.Status)) {
	for _, x := range s.nodes {
		for _, h := range x.hosts.all() {
			if st := h.replica.Status(); h.parsed.Group == id && st.Serving {
				f(x, h, st)
			}
		}
	}
}

// replaceable is a replica of group 0 on another node than its owner's.
func (s *sim) replaceable() (control.Group, control.Replica) {
	g := s.any().control.State().Groups[0]
	i := slices.IndexFunc(g.Replicas, func(r control.Replica) bool { return r.Node != g.Owner })
	return g, g.Replicas[i]
}

func (s *sim) replace(g control.Group, r control.Replica) {
	s.t.Helper()
	err := s.any().propose(s.t.Context(), control.Replace{Group: g.ID, Epoch: g.Epoch, OldSerial: r.Serial, Node: r.Node})
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestLiveReplicaVotesUntilItsSuccessorDoes(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		time.Sleep(15 * time.Second) // owners lead
		g, victim := s.replaceable()
		s.replace(g, victim)
		for range 400 {
			time.Sleep(5 * time.Millisecond)
			s.serving(0, func(_ *simNode, _ *hosted, st group.Status) {
				if len(st.Voters) < 3 {
					t.Fatalf("only %v vote", st.Voters)
				}
			})
		}
		s.healthy(10 * time.Second)
	})
}

func TestLeaderThatLagsRemovesNoReplicaOfTheFuture(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		old := s.any().control.State()
		g, victim := s.replaceable()
		s.replace(g, victim)
		time.Sleep(3 * time.Second)
		s.healthy(10 * time.Second)
		s.serving(0, func(x *simNode, h *hosted, st group.Status) {
			// What its leader would do by the state from before.
			_ = x.stepReplicas(t.Context(), h.replica, old, g, &st)
			time.Sleep(2 * time.Second)
			if now := h.replica.Status().Voters; !slices.Equal(now, st.Voters) {
				t.Errorf("voters went from %v to %v", st.Voters, now)
			}
		})
	})
}

func TestBrokenLeaderHandsOverAndIsReplaced(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		time.Sleep(15 * time.Second)
		s.serving(0, func(_ *simNode, h *hosted, _ group.Status) { h.breaks(errors.New("test")) })
		time.Sleep(time.Second)
		s.eventually(30*time.Second, func() error {
			for _, x := range s.nodes {
				for _, h := range x.hosts.all() {
					if h.broken.Load() != nil {
						return errors.New("still there")
					}
				}
			}
			return nil
		})
		s.healthy(10 * time.Second)
	})
}

func TestReplacementThatCannotBeIsNotProposedForEver(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		s.kill("c") // a third node is down: the step cannot end
		time.Sleep(2 * time.Second)
		x := s.nodes["b"]
		x.hosts.all()[0].breaks(errors.New("test"))
		time.Sleep(10 * time.Second)
		before := x.control.Log()
		time.Sleep(30 * time.Second)
		if n := x.control.Log() - before; n > 5 {
			t.Errorf("%d entries in the control log while nothing can change", n)
		}
	})
}

func TestClusterFindsTogetherFromItsDirectoriesAlone(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.boot()
		for _, name := range s.names {
			s.kill(name)
		}
		for _, name := range s.names {
			cfg := s.config(name)
			cfg.Join, cfg.BootstrapExpect = nil, 0
			n, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			s.run(n)
		}
		s.eventually(30*time.Second, func() error {
			for _, name := range s.names {
				if !s.nodes[name].registered() {
					return fmt.Errorf("%s is not registered", name)
				}
			}
			return nil
		})
	})
}

// A client gathers calls of callers who know nothing of each other.
func TestMessageThatNoEntryCanCarryIsDecidedInPieces(t *testing.T) {
	bubble(t, 1, func(t *testing.T, s *sim) {
		s.set = &policy.Set{Home: []string{"tenant"}}
		for i := range 30 {
			s.set.Policies = append(s.set.Policies, &policy.Policy{
				ID: fmt.Sprintf("p%02d", i), Cost: policy.Cost{Default: 1}, Scope: []string{"tenant"},
				Limit: bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 1e6, Burst: 1e6, Window: int64(time.Second)},
			})
		}
		s.boot()
		m := &pb.StreamRequest{Session: 7}
		for i := range 1000 {
			r := request(fmt.Sprint("t", i), "")
			r.Sent = &pb.Sent{Session: 7, Sequence: uint64(i + 1), Attempt: 1}
			m.Requests = append(m.Requests, r)
		}
		for i, r := range s.any().Decide(t.Context(), m, nil) {
			if !r.GetDecision().GetAllowed() {
				t.Fatalf("request %d: %v", i, r.GetError())
			}
		}
	})
}

func TestNodesStayReadyWhileAnotherIsGone(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		time.Sleep(time.Second)
		victim := s.leader("t")
		s.kill(victim)
		unready := make(map[string]time.Duration)
		for range 400 {
			time.Sleep(5 * time.Millisecond)
			for name, x := range s.nodes {
				if ok, _ := x.Ready(); !ok {
					unready[name] += 5 * time.Millisecond
				}
			}
		}
		for name, d := range unready {
			// All three groups may have been led by the victim.
			if d > 200*time.Millisecond {
				t.Errorf("%s was not ready for %s", name, d)
			}
		}
	})
}

func TestNodesToldToStopAtOnceGoOneAfterAnother(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.boot()
		if !s.any().take(t.Context(), request("t", "year")).GetDecision().GetAllowed() {
			t.Fatal("denied")
		}
		a, b := s.nodes["a"], s.nodes["b"]
		a.cancel()
		b.cancel()
		s.stop("a") // and its supervisor starts it again
		s.start("a")
		s.stop("b")
		s.start("b")
		s.healthy(30 * time.Second)
		for i := range 10 {
			if allowed := s.any().take(t.Context(), request("t", "year")).GetDecision().GetAllowed(); allowed != (i < 9) {
				t.Errorf("take %d afterwards: allowed %v", i, allowed)
			}
		}
	})
}

// Without its log a control replica has forgotten how it voted: under its old
// identity it could vote again.
func TestDirectoryWithoutItsControlLogIsRefused(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.boot()
		time.Sleep(time.Second)
		s.kill("c")
		if err := os.Remove(filepath.Join(s.dirs["c"], "control", "log.db")); err != nil {
			t.Fatal(err)
		}
		cfg := s.config("c")
		defer cfg.GossipTransport.Shutdown()
		if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), "control log is gone") {
			t.Errorf("got %v", err)
		}
	})
}
