package cluster

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/control"
)

func TestLossSaysWhatIsKnown(t *testing.T) {
	for _, c := range []struct {
		loss loss
		want string
	}{
		{loss{voters: 3}, ""},
		{loss{voters: 3, silent: []string{"c"}}, ""},
		{
			loss{voters: 3, silent: []string{"b", "c"}},
			": as a sees it, 2 of 3 replicas do not answer (b, c); it refuses all takes until a majority is back: " +
				"see whether those processes run and the network reaches them; start again, from its --data-dir, only what has ended, or `rlnode remove` what will never return",
		},
		{
			loss{voters: 3, gone: []string{"b", "c"}},
			": as a sees it, 2 of 3 replicas are gone with their processes (b, c); it refuses all takes until the control leader begins a new epoch: within seconds, if there is one",
		},
		{
			loss{voters: 3, silent: []string{"c"}, gone: []string{"b"}},
			": as a sees it, 1 of 3 replicas do not answer (c) and 1 of 3 replicas are gone with their processes (b); it refuses all takes until a majority is back: " +
				"see whether those processes run and the network reaches them; start again, from its --data-dir, only what has ended, or `rlnode remove` what will never return",
		},
	} {
		if got := c.loss.text("a"); got != c.want {
			t.Errorf("%+v:\n%s\nwant\n%s", c.loss, got, c.want)
		}
	}
}

// TestStatusOfASilentNodeSaysWhatToDo: a node that does not answer is named with
// what to do; one that has just started does not count itself among the dead.
func TestStatusOfASilentNodeSaysWhatToDo(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.boot()
		id := s.any().clusterID()
		s.kill("b")
		problems := func(of string) string {
			st, err := s.nodes[of].Status(t.Context(), &pb.StatusRequest{})
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(st.Problems, "\n")
		}
		s.eventually(10*time.Second, func() error {
			if text := problems("a"); !strings.Contains(text, "b does not answer: if its process runs, look at the network; if it has ended, start it again from its --data-dir, or `rlnode remove b`") {
				return fmt.Errorf("%s", text)
			}
			return nil
		})
		s.kill("c")
		s.kill("a")
		s.start("a")
		s.eventually(10*time.Second, func() error {
			if text := problems("a"); text != "nothing is heard of cluster "+id+" yet: nobody of it answers at 10.0.0.2:7602, 10.0.0.3:7602: do those nodes run, and are they of this cluster?" {
				return fmt.Errorf("%s", text)
			}
			return nil
		})
	})
}

// TestLossCountsProcessesKnownToHaveEnded: what a node says of its own earlier
// process, before the control group hears of the new one, and of the others.
func TestLossCountsProcessesKnownToHaveEnded(t *testing.T) {
	n := &Node{self: identity{name: "a", incarnation: "a2", directory: "d"}}
	s := &control.State{Nodes: []control.Node{
		{Name: "a", Incarnation: "a1", Directory: "d"},
		{Name: "b", Incarnation: "b2", Past: []string{"b1"}},
		{Name: "c", Incarnation: "c2", Past: []string{"c1"}, Unsure: []control.Process{{Directory: "e", Incarnation: "c1"}}},
		{Name: "d", Incarnation: "d1", Removed: true},
		{Name: "e", Incarnation: "e1"},
	}}
	var l loss
	for _, m := range []control.Replica{
		{Node: "a", Incarnation: "a1"},
		{Node: "b", Incarnation: "b1"},
		{Node: "c", Incarnation: "c1"},
		{Node: "d", Incarnation: "d1"},
		{Node: "e", Incarnation: "e1"},
	} {
		n.countLoss(&l, s, m, false)
	}
	if want := (loss{gone: []string{"a", "b", "d"}, silent: []string{"c as it ran before, from another --data-dir", "e"}, voters: 5}); !reflect.DeepEqual(l, want) {
		t.Errorf("got %+v, want %+v", l, want)
	}
	if a := s.Nodes[0]; !n.follows(a) || n.follows(s.Nodes[1]) {
		t.Error("the new process of a is not taken for it")
	}
	if n.follows(control.Node{Name: "a", Incarnation: "a3", Past: []string{"a2"}}) {
		t.Error("a superseded process is taken for its node")
	}
}
