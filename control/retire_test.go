package control

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// placed returns a cluster of some nodes after its first placement.
func placed(t *testing.T, slots int, nodes ...string) *sim {
	s := newSim(t)
	c := founding()
	c.Slots, c.Expect = slots, len(nodes)
	s.apply(c)
	for _, n := range nodes {
		s.start(n, "d-"+n, false)
	}
	s.settle()
	return s
}

func namesOf(commands []Command) (out []string) {
	for _, c := range commands {
		out = append(out, c.kind())
	}
	return out
}

func TestRetiredNodeIsTakenBack(t *testing.T) {
	s := placed(t, 16, "a", "b", "c", "d")
	p := process{"d", "d1"}
	delete(s.procs, p) // it stops, and its memory stays
	s.listen()
	s.wait(10 * time.Minute)
	for _, c := range s.plan() {
		s.apply(c)
	}
	if n, _ := s.m.State().Node("d"); !n.Retired || slices.Contains(s.m.State().Members(), "d") {
		t.Fatalf("%+v is not retired", n)
	}
	s.procs[p] = true
	s.listen()
	if got := Plan(s.m.State(), s.look); len(got) == 0 || got[0] != (Unretire{"d", "d1"}) {
		t.Fatalf("%q, want it back first", namesOf(got))
	}
	s.settle()
	s.wait(time.Minute)
	s.settle()
	checkSettled(t, s.m.State())
	if err := s.apply(Retire{"d", "d0"}); err == nil {
		t.Error("another process is retired")
	}
}

func TestRetiredProcessIsNotLost(t *testing.T) {
	s := placed(t, 16, "a", "b", "c")
	s.kill("a")
	s.wait(time.Hour)
	s.apply(Retire{"a", "a1"})
	s.kill("b")
	s.apply(Retire{"b", "b1"})
	st := s.m.State()
	for _, g := range st.Groups {
		if st.MajorityLost(g) {
			t.Errorf("group %d has lost its majority because nobody answers", g.ID)
		}
	}
	if err := s.apply(NewEpoch{Group: 0, Epoch: 1, Nodes: []string{"c"}}); err == nil {
		t.Error("a new epoch because nobody answers")
	}
}

// TestOldNodesAreNotSentWhatTheyCannotRead: as long as a node reads format 2
// only, slots stay; what format 1 could say is said.
func TestOldNodesAreNotSentWhatTheyCannotRead(t *testing.T) {
	s := placed(t, 16, "a", "b", "c")
	if got := s.m.Snapshot()[0]; got != snapshotOld {
		t.Errorf("a snapshot of version %d, and nothing in it is new", got)
	}
	old := Node{Name: "d", Directory: "d-d", Incarnation: "d1", FormatMax: 2}
	s.procs[process{"d", "d1"}] = true
	s.apply(Register{Node: old})
	s.start("a", "d-a", false)
	s.wait(time.Hour)
	want := []string{"replace", "replace", "replace"}
	if d := cmp.Diff(want, namesOf(Plan(s.m.State(), s.look))); d != "" {
		t.Error(d)
	}
	s.settle()
	if got := s.m.Snapshot()[0]; got != snapshotOld || s.m.State().Wish != nil {
		t.Errorf("a snapshot of version %d, wish %v", got, s.m.State().Wish)
	}
	old.Incarnation, old.FormatMax = "d2", 3
	s.procs[process{"d", "d2"}] = true
	s.apply(Register{Node: old})
	s.wait(time.Hour)
	s.settle()
	if got := s.m.Snapshot()[0]; got != snapshotVersion {
		t.Errorf("a snapshot of version %d after slots have moved", got)
	}
	checkSettled(t, s.m.State())
}

// TestCrashedGrowthLosesNothing: of two voters one is lost on the way from one
// replica to three; the other one has all that was ever admitted.
func TestCrashedGrowthLosesNothing(t *testing.T) {
	s := placed(t, 4, "a")
	s.start("b", "d-b", false)
	s.start("c", "d-c", false)
	s.wait(time.Minute)
	for s.m.State().Groups[0].voters() < 2 {
		for _, c := range s.plan() {
			s.apply(c)
		}
		s.act(instance{0, 1}, s.m.State())
	}
	second := s.m.State().Groups[0].Replicas[1].Node
	s.start(second, "d-"+second, false)
	for _, c := range s.plan() {
		s.apply(c)
	}
	g := s.m.State().Groups[0]
	if g.Epoch != 2 || len(g.Survivors) != 1 || g.Survivors[0].Node != "a" {
		t.Errorf("%+v, want a new epoch with a as its survivor", g)
	}
	s.settle()
	checkSettled(t, s.m.State())
}

// TestNoStepWithoutALiveMajority: a voter that is unfit or silent counts for nothing.
func TestNoStepWithoutALiveMajority(t *testing.T) {
	s := placed(t, 4, "a", "b", "c", "d")
	s.start("a", "d-a", false)
	st := s.m.State()
	other := st.Groups[0].Replicas[2]
	for _, look := range []Look{
		{Silent: map[string]time.Duration{other.Node: time.Second}},
		{Unfit: map[uint64]bool{other.Serial: true}},
	} {
		for _, c := range Plan(st, look) {
			if r, ok := c.(Replace); ok && r.Group == 0 {
				t.Errorf("%s with %s unfit", describe(c), other.Node)
			}
		}
	}
	if got := Plan(st, Look{}); len(got) == 0 {
		t.Error("nothing is done with all nodes there")
	}
}

// BenchmarkPlanNothing is what the control leader does five times a second.
func BenchmarkPlanNothing(b *testing.B) {
	m := New()
	c := founding()
	c.Slots, c.Expect = 1024, 7
	entries := [][]byte{Encode(c)}
	for _, n := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		entries = append(entries, Encode(Register{Node: Node{Name: n, Directory: "d", Incarnation: n, FormatMax: FormatMax}}))
	}
	entries = append(entries, Encode(Place{}))
	for g := range uint32(7) {
		entries = append(entries, Encode(Form{g, 1}))
	}
	for i, e := range entries {
		if r, err := m.Apply(uint64(i), e); err != nil || r.Err != nil {
			b.Fatal(err, r.Err)
		}
	}
	for b.Loop() {
		if got := Plan(m.State(), Look{Quiet: time.Hour, Steady: time.Hour}); len(got) != 0 {
			b.Fatal(namesOf(got))
		}
	}
}
