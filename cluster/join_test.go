package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

func TestNameHeldByAnotherDirectoryIsRefused(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		cfg := s.config("z") // another host …
		cfg.Name = "b"       // … under a name that is taken
		n, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		err = n.Run(t.Context())
		if !errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "another data directory") {
			t.Errorf("got %v, want a conflict that says what to do", err)
		}
		s.healthy(10 * time.Second)
		if got := s.nodes["a"].Incarnations()["b"]; got != s.nodes["b"].Incarnation() {
			t.Errorf("b is registered as %s, want the node that held the name", got)
		}
	})
}

// Incarnations returns the registered incarnation of each node.
func (n *Node) Incarnations() map[string]string {
	m := make(map[string]string)
	for _, node := range n.control.State().Nodes {
		m[node.Name] = node.Incarnation
	}
	return m
}

func TestNodeWithoutDirectoryComesBackAsNew(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		c := s.dial()
		defer c.Close()
		for _, name := range s.names {
			s.kill(name)
			time.Sleep(2 * time.Second)
			s.start(name)
			s.healthy(30 * time.Second)
			if err := s.controlVoters(3); err != nil {
				t.Errorf("%s lost its vote, and the cluster says that it is healthy: %v", name, err)
			}
		}
	})
}

// TestClusterWithAVoteMissingIsNotWhole takes a vote away, as the loss of a directory
// does: whoever restarts node after node by what the cluster says must not go on, since
// the two voters left are one loss from none.
func TestClusterWithAVoteMissingIsNotWhole(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		lead := s.nodes[s.any().controlLeader()]
		servers, err := lead.control.Servers()
		if err != nil {
			t.Fatal(err)
		}
		for id := range servers {
			if id == controlID(lead.self.name, lead.self.directory) {
				continue
			}
			if err := lead.control.Demote(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			break
		}
		const want = "the control group has 2 of 3 voters"
		r, err := lead.Status(t.Context(), &pb.StatusRequest{})
		if err != nil || r.Healthy || len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], want) {
			t.Errorf("%v, %v, want unhealthy: %s", r, err, want)
		}
		if ok, why := lead.whole(); ok || !strings.HasPrefix(why, want) {
			t.Errorf("whole %v %q, want %q", ok, why, want)
		}
		s.healthy(10 * time.Second)
		if err := s.controlVoters(3); err != nil {
			t.Error(err)
		}
	})
}

// controlVoters says whether the control group has n voters, and a member for
// each node that runs.
func (s *sim) controlVoters(n int) error {
	servers, err := s.any().control.Servers()
	if err != nil {
		return err
	}
	voters := 0
	for _, voter := range servers {
		if voter {
			voters++
		}
	}
	if voters != n || len(servers) != len(s.nodes) {
		return fmt.Errorf("control group is %v, want %d voters of %d", servers, n, len(s.nodes))
	}
	return nil
}

func TestTwoClustersNeverMerge(t *testing.T) {
	bubble(t, 2, func(t *testing.T, s *sim) {
		var said [2]bytes.Buffer // each written by one node's logger, which locks
		s.tune = func(c *Config) {
			c.Logger = slog.New(slog.NewTextHandler(&said[c.Name[0]-'a'], &slog.HandlerOptions{Level: slog.LevelError}))
		}
		for _, name := range s.names {
			s.dirs[name] = t.TempDir()
			cfg := s.config(name)
			cfg.BootstrapExpect, cfg.Join = 1, nil
			n, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			s.run(n)
		}
		s.healthy(10 * time.Second)
		ids := map[string]string{"a": s.nodes["a"].clusterID(), "b": s.nodes["b"].clusterID()}
		if ids["a"] == ids["b"] || ids["a"] == "" {
			t.Fatalf("cluster ids are %v", ids)
		}
		s.kill("b")
		s.start("b") // now with --join
		time.Sleep(2 * time.Minute)
		for name, id := range ids {
			st := s.nodes[name].control.State()
			if st.ClusterID != id || len(st.Nodes) != 1 {
				t.Errorf("%s: cluster %s with %d nodes, want %s with 1", name, st.ClusterID, len(st.Nodes), id)
			}
		}
		for name, id := range ids {
			if ok, why := s.nodes[name].Ready(); !ok || s.nodes[name].dir.ClusterID() != id {
				t.Errorf("%s: %s, its directory belongs to %s", name, why, s.nodes[name].dir.ClusterID())
			}
		}
		_, err := s.nodes["a"].Join(t.Context(), &pb.JoinRequest{Name: "x", ClusterId: ids["b"]})
		if !errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "clusters never merge") {
			t.Errorf("join from another cluster: %v", err)
		}
		s.kill("a")
		s.kill("b")
		for i := range said {
			if text := said[i].String(); !strings.Contains(text, "clusters never merge") || !strings.Contains(text, ids["a"]) || !strings.Contains(text, ids["b"]) {
				t.Errorf("%s does not say why: %s", s.names[i], text)
			}
		}
	})
}

func TestWholeClusterComesBackFromItsDirectories(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		for _, name := range s.names {
			s.dirs[name] = t.TempDir()
		}
		s.boot()
		id := s.any().clusterID()
		for _, name := range s.names {
			s.kill(name)
		}
		for _, name := range s.names {
			s.start(name)
		}
		s.eventually(30*time.Second, func() error {
			st := s.nodes["c"].control.State()
			for _, name := range s.names {
				if node, _ := st.Node(name); node.Incarnation != s.nodes[name].Incarnation() {
					return fmt.Errorf("%s is not registered", name)
				}
			}
			return nil
		})
		if got := s.any().clusterID(); got != id {
			t.Errorf("cluster id is %s, was %s", got, id)
		}
		// Every replica was in memory: nothing may be admitted from nothing.
		for range 20 {
			time.Sleep(time.Second)
			if r := s.any().take(t.Context(), request("t", "year")); r.GetDecision().GetAllowed() {
				t.Fatalf("answered %v after all replicas were lost", r.GetDecision())
			}
		}
	})
}

// TestRemovedNodeIsNewWithItsOldDirectory: the machine was only thought to be lost.
func TestRemovedNodeIsNewWithItsOldDirectory(t *testing.T) {
	bubble(t, 4, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.boot()
		s.kill("c")
		s.eventually(20*time.Second, func() error {
			_, err := s.any().Remove(t.Context(), &pb.RemoveRequest{Node: "c"})
			return err
		})
		s.healthy(2 * time.Minute)
		s.start("c")
		s.eventually(time.Minute, func() error {
			node, ok := s.any().control.State().Node("c")
			if !ok || node.Removed || node.Incarnation != s.nodes["c"].Incarnation() {
				return fmt.Errorf("registered %t: %+v", ok, node)
			}
			return nil
		})
		s.healthy(2 * time.Minute)
	})
}

func TestRemovedNodeLeavesTheGroupsOnTwoOfThree(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		time.Sleep(2 * time.Second) // before that the control leader does not judge
		if _, err := s.nodes["a"].Remove(t.Context(), &pb.RemoveRequest{Node: "c"}); !errors.Is(err, fault.Conflict) {
			t.Errorf("remove of a running node: %v, want a conflict", err)
		}
		if _, err := s.nodes["a"].Remove(t.Context(), &pb.RemoveRequest{Node: "q"}); !errors.Is(err, fault.NotFound) {
			t.Errorf("remove of an unknown node: %v", err)
		}
		s.kill("c")
		s.eventually(20*time.Second, func() error {
			_, err := s.nodes["a"].Remove(t.Context(), &pb.RemoveRequest{Node: "c"})
			return err
		})
		// The answer may have been lost: asked again, it is no error.
		if r, err := s.nodes["b"].Remove(t.Context(), &pb.RemoveRequest{Node: "c"}); err != nil || !r.GetAlready() {
			t.Errorf("removed again: %v, %v", r, err)
		}
		s.eventually(30*time.Second, func() error {
			r, _ := s.nodes["b"].Status(t.Context(), &pb.StatusRequest{})
			for _, g := range r.Groups {
				if g.Healthy || !strings.Contains(g.Problem, "missing") {
					return fmt.Errorf("group %d: %q", g.Id, g.Problem)
				}
			}
			return nil
		})
		for i := range 5 {
			s.eventually(10*time.Second, func() error {
				r := s.nodes["a"].take(t.Context(), request(fmt.Sprint(i), "year"))
				if !r.GetDecision().GetAllowed() {
					return fmt.Errorf("%v", r)
				}
				return nil
			})
		}
		s.eventually(30*time.Second, func() error { return s.controlVoters(1) })
		s.start("c") // comes back as new
		s.healthy(time.Minute)
	})
}
