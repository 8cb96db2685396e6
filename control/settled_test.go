package control

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// checkSettled holds what a cluster must be once all nodes answer and nothing is
// left to do.
func checkSettled(t rapid.TB, s *State) {
	t.Helper()
	if !s.Placed() {
		return
	}
	members := s.Members()
	if len(s.Moves) > 0 || s.drains() {
		t.Fatalf("it settles with moves %+v, nodes %+v, groups %+v, wish %+v", s.Moves, s.Nodes, s.Groups, s.Wish)
	}
	var owners []string
	for _, g := range s.Groups {
		owners = append(owners, g.Owner)
		checkSettledGroup(t, s, g)
	}
	slices.Sort(owners)
	if !slices.Equal(owners, s.Owners()) {
		t.Fatalf("it settles with owners %q, want %q of members %q", owners, s.Owners(), members)
	}
	for _, g := range s.Groups {
		if !s.keeps(g) {
			t.Fatalf("group %d stays and is not wished for", g.ID)
		}
	}
	checkLevel(t, s)
	most := math.Ceil(1.1 * float64(s.Slots) / float64(len(owners)))
	for _, g := range s.Groups {
		if n := s.CountSlots(g.ID); (s.Wish != nil || g.Added) && float64(n) > most {
			t.Fatalf("group %d has %d of %d slots, want at most %v", g.ID, n, s.Slots, most)
		}
	}
}

// checkLevel: of no two members one has two replicas more than the other.
func checkLevel(t rapid.TB, s *State) {
	t.Helper()
	least, most := math.MaxInt, 0
	for _, name := range s.Members() {
		least, most = min(least, s.CountReplicas(name)), max(most, s.CountReplicas(name))
	}
	if most-least > 1 {
		t.Fatalf("it settles with %d … %d replicas on a node: %+v", least, most, s.Groups)
	}
}

func checkSettledGroup(t rapid.TB, s *State, g Group) {
	t.Helper()
	if !g.Formed || len(g.Births) > 0 || len(g.Survivors) > 0 {
		t.Fatalf("it settles with group %+v", g)
	}
	missing := 0
	for _, r := range g.Replicas {
		switch {
		case r.Role == Missing:
			missing++
		case r.Role != Voter || s.Gone(r):
			t.Fatalf("group %d settles with %v", g.ID, r)
		}
	}
	if want := min(s.Replication, len(s.Members())); len(g.Replicas)-missing != want {
		t.Fatalf("group %d settles with %+v, want %d voters", g.ID, g.Replicas, want)
	}
}

// TestAnyClusterConverges: whatever starts, dies, restarts, is drained, removed
// or retired, wherever the control leader stops in the middle of a plan, however
// old the state that the leaders of groups act on, and however often their
// reports come: each slot is held in one place at most at any moment; and when
// the faults stop, the cluster becomes what it should be.
func TestAnyClusterConverges(t *testing.T) { rapid.Check(t, anyClusterConverges) }

func anyClusterConverges(t *rapid.T) {
	s := newSim(t)
	c := founding()
	c.Expect, c.Groups = rapid.IntRange(1, 4).Draw(t, "expect"), rapid.IntRange(0, 6).Draw(t, "groups")/2
	c.Slots = rapid.SampledFrom([]int{1, 5, 16, 48}).Draw(t, "slots")
	s.apply(c)
	for _, name := range []string{"a", "b", "c", "d"}[:c.Expect] {
		s.start(name, "d-"+name, false)
	}
	s.settle()
	for range rapid.IntRange(1, 80).Draw(t, "events") {
		s.event(t)
		s.check()
	}
	s.calm()
	s.settle()
	checkSettled(t, s.m.State())
}

// event lets one thing happen.
func (s *sim) event(t *rapid.T) {
	name := func() string { return rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "node") }
	switch rapid.IntRange(0, 19).Draw(t, "what") {
	case 0:
		n := name()
		s.start(n, "d-"+n, true)
	case 1:
		n := name()
		if rapid.IntRange(0, 3).Draw(t, "directory") == 0 {
			s.start(n, "other-"+n, true) // what had the name may still run
		}
	case 2:
		s.kill(name())
	case 3:
		s.apply(rapid.SampledFrom([]Command{Drain{name()}, Undrain{name()}, Remove{name()}}).Draw(t, "operator"))
	case 4, 5:
		s.wait(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, 10 * time.Minute}).Draw(t, "wait"))
	case 6, 7, 8, 9, 10:
		commands := s.plan()
		for _, c := range commands[:rapid.IntRange(0, len(commands)).Draw(t, "done")] {
			s.report(c) // the leader may die in between, and what it proposed may come again
		}
	case 11:
		if len(s.sent) > 0 {
			s.apply(rapid.SampledFrom(s.sent).Draw(t, "again"))
		}
	default:
		ids := s.instances()
		if len(ids) == 0 {
			return
		}
		st := s.m.State()
		if back := rapid.IntRange(0, 8).Draw(t, "back") - 4; back > 0 && back < len(s.past) {
			st = s.past[len(s.past)-back]
		}
		if id := rapid.SampledFrom(ids).Draw(t, "group"); st.Placed() {
			s.act(id, st)
		}
	}
}

// calm ends the faults: who is registered runs; of whom nobody knows whether it
// runs, an operator says that it does not.
func (s *sim) calm() {
	for _, n := range s.m.State().Nodes {
		if len(n.Unsure) > 0 {
			for p := range s.procs {
				if p.node == n.Name {
					delete(s.procs, p)
				}
			}
			s.start("z", "d-z", true)
			s.apply(Remove{n.Name})
		}
	}
	for _, n := range s.m.State().Nodes {
		if !n.Removed && !s.procs[process{n.Name, n.Incarnation}] {
			s.start(n.Name, n.Directory, false)
		}
	}
	if st := s.m.State(); len(st.Members()) == 0 {
		for _, n := range st.Registered() {
			s.apply(Undrain{n}) // nobody is left to take what they have
		}
	}
	s.wait(time.Minute)
}

func FuzzAnyClusterConverges(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyClusterConverges)) }
