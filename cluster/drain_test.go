package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
)

// drain empties a node, and waits until its process has ended by itself.
func (s *sim) drain(name string, within time.Duration) {
	s.t.Helper()
	s.eventually(10*time.Second, func() error {
		_, err := s.any().Drain(s.t.Context(), &pb.DrainRequest{Node: name})
		return err
	})
	x := s.nodes[name]
	select {
	case err := <-x.done:
		if err != nil {
			s.t.Fatalf("drained node %s ended with %v", name, err)
		}
	case <-time.After(within):
		st, _ := s.any().Status(s.t.Context(), &pb.StatusRequest{})
		s.t.Fatalf("%s has not left within %s: %v\n%v", name, within, st.GetProblems(), st.GetNodes())
	}
	x.cancel()
	delete(s.nodes, name)
	s.net.Kill(name)
	s.net.Revive(name)
}

func TestDrainRefusesWhatCannotBe(t *testing.T) {
	bubble(t, 1, func(t *testing.T, s *sim) {
		s.boot()
		_, err := s.any().Drain(t.Context(), &pb.DrainRequest{Node: "a"})
		if !errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "no other node") {
			t.Errorf("the last node: %v", err)
		}
		_, err = s.any().Drain(t.Context(), &pb.DrainRequest{Node: "q"})
		if !errors.Is(err, fault.NotFound) || !strings.Contains(err.Error(), `"q"`) {
			t.Errorf("an unknown node: %v", err)
		}
		if _, err = s.any().Undrain(t.Context(), &pb.UndrainRequest{Node: "a"}); !errors.Is(err, fault.Conflict) {
			t.Errorf("undrain of a node that stays: %v", err)
		}
	})
}

func TestDrainedNodeLeavesAndItsProcessEnds(t *testing.T) {
	bubble(t, 4, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.few()
		s.boot()
		c := s.dial()
		defer c.Close()
		spent := func(i int) client.Request { return client.Request{Tenant: fmt.Sprint("t", i), Plan: "year"} }
		for i := range 20 {
			burst(c, 4, spent(i)).want(t, 4, 0)
		}
		leader := s.any().controlLeader() // its vote and its leadership move away too
		s.eventually(10*time.Second, func() error {
			_, err := s.nodes[leader].Drain(t.Context(), &pb.DrainRequest{Node: leader})
			return err
		})
		r, err := s.any().Drain(t.Context(), &pb.DrainRequest{Node: leader})
		if err != nil || !r.Already {
			t.Errorf("drained again: %v, %v", r, err)
		}
		st, _ := s.any().Status(t.Context(), &pb.StatusRequest{})
		for _, n := range st.Nodes {
			if n.Draining != (n.Name == leader) || n.Draining && (n.State != "draining" || !strings.Contains(n.Progress, "slots")) {
				t.Errorf("status of a draining node: %v", n)
			}
		}
		if st.Healthy {
			t.Error("healthy while a node drains")
		}
		s.drain(leader, 3*time.Minute)
		s.healthy(time.Minute)
		s.shares(3)
		s.eventually(10*time.Second, func() error { return s.controlVoters(3) })
		for i := range 20 {
			burst(c, 10, spent(i)).want(t, 6, 4)
		}
		s.start(leader) // a supervisor that should not: it joins as a new node
		s.settled(2 * time.Minute)
		s.shares(4)
		for i := range 20 {
			burst(c, 5, spent(i)).want(t, 0, 5)
		}
	})
}

func TestUndrainLetsANodeStay(t *testing.T) {
	bubble(t, 4, func(t *testing.T, s *sim) {
		s.boot()
		if _, err := s.any().Drain(t.Context(), &pb.DrainRequest{Node: "d"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		if _, err := s.any().Undrain(t.Context(), &pb.UndrainRequest{Node: "d"}); err != nil {
			t.Fatal(err)
		}
		s.settled(2 * time.Minute)
		s.shares(4)
	})
}

func TestThreeShrinkToOne(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.few()
		s.boot()
		c := s.dial()
		defer c.Close()
		load := spend(t, c, 10, time.Second)
		s.drain("c", 3*time.Minute)
		s.settled(time.Minute)
		s.eventually(30*time.Second, func() error { return s.controlVoters(1) })
		s.drain("a", 3*time.Minute)
		s.settled(time.Minute)
		s.shares(1)
		load.exact(t)
	})
}

func TestRemovedNodeIsReplacedAndComesBackAsNew(t *testing.T) {
	bubble(t, 5, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.few()
		s.boot()
		c := s.dial()
		defer c.Close()
		load := spend(t, c, 20, time.Second)
		s.kill("e")
		s.eventually(10*time.Second, func() error {
			_, err := s.any().Remove(t.Context(), &pb.RemoveRequest{Node: "e"})
			return err
		})
		s.healthy(time.Minute)
		s.shares(4)
		s.eventually(30*time.Second, func() error { return s.controlVoters(3) })
		s.dirs["e"] = t.TempDir()
		s.start("e")
		s.settled(2 * time.Minute)
		s.shares(5)
		load.exact(t)
	})
}

func TestDeadNodeIsReplacedAfterAWhileAndTakenBack(t *testing.T) {
	bubble(t, 5, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.tune = func(c *Config) { c.ReplaceAfter, c.Slots = time.Minute, 128 }
		s.boot()
		before := s.any().control.State()
		s.kill("e")
		time.Sleep(40 * time.Second) // a restart that takes its time
		s.start("e")
		s.settled(time.Minute)
		now := s.any().control.State()
		for slot, g := range now.SlotGroup {
			if g != before.SlotGroup[slot] {
				t.Fatalf("slot %d moved from group %d to %d by a restart", slot, before.SlotGroup[slot], g)
			}
		}
		s.kill("e")
		time.Sleep(2 * time.Minute)
		if node, _ := s.any().control.State().Node("e"); !node.Retired {
			t.Fatal("a node that is dead for long still counts")
		}
		s.eventually(time.Minute, func() error {
			st := s.any().control.State()
			for _, g := range st.Groups {
				if len(g.Replicas) != 3 || hasNode(g, "e") {
					return fmt.Errorf("group %d has %+v", g.ID, g.Replicas)
				}
			}
			if len(st.Moves) > 0 {
				return fmt.Errorf("%d moves", len(st.Moves))
			}
			return nil
		})
		s.shares(4)
		s.start("e")
		s.settled(2 * time.Minute)
		s.shares(5)
		s.eventually(30*time.Second, func() error { return s.controlVoters(3) })
	})
}

// TestOnlyTheControlLeaderSaysWhoIsUnknown: a process that has just started knows of
// nobody yet, and must not call a node that is there unknown: who asks to have it
// removed would take that for done.
func TestOnlyTheControlLeaderSaysWhoIsUnknown(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.boot()
		s.kill("b")
		asked := s.start("b")
		begun := time.Now()
		for time.Since(begun) < 5*time.Second {
			_, err := asked.Remove(t.Context(), &pb.RemoveRequest{Node: "a"})
			if errors.Is(err, fault.NotFound) || err == nil {
				t.Fatalf("%v after the start, of a node that runs: %v", time.Since(begun), err)
			}
			_, err = asked.Undrain(t.Context(), &pb.UndrainRequest{Node: "a"})
			if errors.Is(err, fault.NotFound) {
				t.Fatalf("%v after the start: %v", time.Since(begun), err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}
