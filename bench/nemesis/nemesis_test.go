package nemesis

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// TestPartitionPlans: which directions each of them cuts, of five nodes.
func TestPartitionPlans(t *testing.T) {
	nodes := []string{"a", "b", "c", "d", "e"}
	for _, c := range []struct {
		name       string
		plan       plan
		cuts       int
		both       bool // each cut goes both ways
		cut, whole [2]string
		plane      fleet.Plane
	}{
		{"isolate", isolate, 8, true, [2]string{"a", "e"}, [2]string{"b", "c"}, fleet.AllPlanes},
		{"split", split, 12, true, [2]string{"b", "c"}, [2]string{"a", "b"}, fleet.AllPlanes},
		{"bridge", bridge, 8, true, [2]string{"b", "e"}, [2]string{"a", "e"}, fleet.AllPlanes},
		{"one-way", oneWay, 4, false, [2]string{"a", "b"}, [2]string{"b", "a"}, fleet.AllPlanes},
		{"pair", onePair, 2, true, [2]string{"b", "a"}, [2]string{"a", "c"}, fleet.AllPlanes},
		{"peer-plane", peerOnly, 8, true, [2]string{"a", "d"}, [2]string{"c", "d"}, fleet.PeerPlane},
		{"gossip-plane", gossipOnly, 8, true, [2]string{"a", "d"}, [2]string{"c", "d"}, fleet.GossipPlane},
	} {
		cuts, what := c.plan(nodes)
		has := func(p [2]string) bool { return slices.Contains(cuts, blocked{p[0], p[1], c.plane}) }
		if len(cuts) != c.cuts || !has(c.cut) || has(c.whole) || what == "" {
			t.Errorf("%s (%s) cuts %v", c.name, what, cuts)
		}
		for _, b := range cuts {
			if back := has([2]string{b.to, b.from}); back != c.both {
				t.Errorf("%s cuts %s to %s, and back: %v", c.name, b.from, b.to, back)
			}
		}
	}
}

// TestNothingIsEmptiedBesideAnEmptyNode, until the cluster was seen whole after that node
// had been started anew.
func TestNothingIsEmptiedBesideAnEmptyNode(t *testing.T) {
	a, b := &fleet.Node{Name: "a"}, &fleet.Node{Name: "b"}
	f := &fleet.Fleet{Nodes: []*fleet.Node{a, b}}
	w := worldOf(f)
	for range 2 { // also again
		if !w.mayEmpty(a) {
			t.Error("a may not be emptied, though no other node is empty")
		}
	}
	if w.mayEmpty(b) {
		t.Error("b may be emptied while a may be without its memory")
	}
	if names := w.renewed(); names != nil {
		t.Errorf("%v are renewed, though nothing runs", names)
	}
	f.Forget(a) // removed: what it had is made anew elsewhere
	if names := w.renewed(); !slices.Equal(names, []string{"a"}) {
		t.Errorf("%v are renewed", names)
	}
	w.regained([]string{"a"}, 2*time.Second)
	if !w.mayEmpty(b) {
		t.Error("b may not be emptied after all was whole")
	}
	w.wipe([]*fleet.Node{a, b})
	if open := w.Memory().Open(); len(open) != 2 {
		t.Errorf("%v are empty, want both", open)
	}
}

// worldOf is a world in which it is one second.
func worldOf(f *fleet.Fleet) *World {
	return NewWorld(f, Cuts, rand.New(rand.NewPCG(1, 1)), func() time.Duration { return time.Second })
}

func TestNobodyIsClaimedWithoutARunningNode(t *testing.T) {
	w := worldOf(&fleet.Fleet{Nodes: []*fleet.Node{{Name: "a"}}})
	if _, err := w.claim(1, "a"); !errors.Is(err, ErrNotNow) {
		t.Errorf("error %v, want ErrNotNow", err)
	}
}

// TestKindsAreNamedOnce and can be found; what a machine lacks leaves them out.
func TestKindsAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	w := worldOf(&fleet.Fleet{})
	w.nodes = 3
	for _, k := range Kinds {
		if seen[k.Name] || k.Does == "" || k.New == nil {
			t.Errorf("kind %q stands twice or lacks something", k.Name)
		}
		seen[k.Name] = true
		if want := k.Needs&^Cuts == 0 && k.Nodes <= 3; w.CanBear(k) != want {
			t.Errorf("%s on three relayed nodes: %v", k.Name, !want)
		}
	}
	for _, k := range Kinds {
		if k.Instead != "" && (!seen[k.Instead] || k.Instead == k.Name) {
			t.Errorf("%s in the place of %s", k.Instead, k.Name)
		}
	}
	if all, err := Find([]string{"all"}); err != nil || len(all) != len(Kinds) {
		t.Errorf("all: %d kinds, %v", len(all), err)
	}
	if _, err := Find([]string{"kill", "nonsense"}); err == nil {
		t.Error("nonsense was found")
	}
}
