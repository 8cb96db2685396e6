package control

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// history applies commands to two machines and holds every invariant after each.
type history struct {
	t        *rapid.T
	m, twin  *Machine
	index    uint64
	restarts int
}

func (h *history) apply(c Command) {
	h.index++
	data := Encode(c)
	before := h.m.State()
	was := string(before.Snapshot())
	r, err := h.m.Apply(h.index, data)
	if err != nil {
		h.t.Fatalf("%s: %v", data, err)
	}
	if h.index%7 == 0 { // the twin lives from a snapshot now and then
		snapshot := h.twin.Snapshot()
		h.twin = New()
		if err := h.twin.Restore(snapshot); err != nil {
			h.t.Fatal(err)
		}
	}
	if _, err := h.twin.Apply(h.index, data); err != nil {
		h.t.Fatal(err)
	}
	if !bytes.Equal(h.m.Snapshot(), h.twin.Snapshot()) {
		h.t.Fatalf("%s: the machines differ", data)
	}
	checkStep(h.t, before, h.m.State(), r, was)
}

// planned applies what Next wants; each must be accepted, and one per group.
func (h *history) planned() int {
	s := h.m.State()
	commands := Next(s)
	if d := cmp.Diff(commands, Next(s)); d != "" {
		h.t.Fatalf("Next says two things of one state: %s", d)
	}
	for _, c := range commands {
		before := h.m.State()
		h.apply(c)
		if h.m.State() == before {
			h.t.Fatalf("Next wants %s, but it changes nothing", describe(c))
		}
	}
	return len(commands)
}

// report draws what the groups may say.
func (h *history) report() Command {
	s := h.m.State()
	if !s.Placed() {
		return Place{}
	}
	g := rapid.SampledFrom(s.Groups).Draw(h.t, "group")
	r := rapid.SampledFrom(g.Replicas).Draw(h.t, "replica")
	node := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(h.t, "to")
	epoch := g.Epoch - uint32(rapid.IntRange(0, 9).Draw(h.t, "stale")/9)
	return rapid.SampledFrom([]Command{
		Form{g.ID, epoch},
		Reform{g.ID, epoch},
		Replace{g.ID, epoch, r.Serial, node},
		Promoted{g.ID, epoch, r.Serial},
		Dropped{g.ID, epoch, r.Serial},
		Miss{g.ID, epoch, r.Serial},
		Dropped{g.ID, epoch, s.NextSerial},
		Place{},
		founding(),
	}).Draw(h.t, "report")
}

func (h *history) register() Command {
	h.restarts++
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(h.t, "node")
	incarnation := h.restarts - rapid.IntRange(0, 3).Draw(h.t, "late")
	return Register{
		Node:      Node{Name: name, Directory: fmt.Sprint("d", rapid.IntRange(0, 9).Draw(h.t, "directory")/9), Incarnation: fmt.Sprint("i", incarnation)},
		Supersede: rapid.Bool().Draw(h.t, "supersede"),
	}
}

func TestAnyHistoryKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{t: t, m: New(), twin: New()}
		c := founding()
		c.Expect, c.Groups = rapid.IntRange(1, 4).Draw(t, "expect"), rapid.IntRange(0, 3).Draw(t, "groups")
		h.apply(c)
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2:
				h.apply(h.register())
			case 3:
				h.apply(Remove{rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "node")})
			case 4, 5, 6:
				h.planned()
			default:
				h.apply(h.report())
			}
		}
		h.settles()
	})
}

// settles lets a healthy cluster finish: then every group has formed, and each
// replica is a voter of a live process, unless no node is left for it.
func (h *history) settles() {
	for round := 0; h.planned() > 0 || h.finish(); round++ {
		if round > 200 {
			h.t.Fatal("it never settles")
		}
	}
	s := h.m.State()
	nodes := s.Registered()
	for _, g := range s.Groups {
		if !g.Formed {
			h.t.Fatalf("group %d has not formed", g.ID)
		}
		missing := 0
		for _, r := range g.Replicas {
			switch {
			case r.Role == Missing:
				missing++
			case r.Role != Voter || s.Gone(r):
				h.t.Fatalf("group %d settles with %v", g.ID, r)
			}
		}
		if missing > 0 && len(g.Replicas)-missing < len(nodes) {
			h.t.Fatalf("group %d misses %d replicas with %d nodes", g.ID, missing, len(nodes))
		}
	}
}

// finish reports every step as done and says whether there was any.
func (h *history) finish() (any bool) {
	before := h.m.State()
	for _, g := range before.Groups {
		if !g.Formed {
			h.apply(Form{g.ID, g.Epoch})
		}
		for _, r := range g.Replicas {
			if r.Role == Joining && !before.Gone(r) {
				h.apply(Promoted{g.ID, g.Epoch, r.Serial})
			}
			if r.Role == Leaving {
				h.apply(Dropped{g.ID, g.Epoch, r.Serial})
			}
		}
	}
	return h.m.State() != before
}

func FuzzApplyNeverPanics(f *testing.F) {
	for _, c := range []Command{
		founding(),
		Register{Node: Node{Name: "a", Directory: "d", Incarnation: "i"}},
		Place{},
		Form{0, 1},
		Reform{0, 1},
		Replace{0, 1, 1, "b"},
		Promoted{0, 1, 1},
		Dropped{0, 1, 1},
		Miss{0, 1, 1},
		Remove{"a"},
	} {
		f.Add(Encode(c))
	}
	var snapshots [][]byte
	for _, prepare := range []string{"", "found", "found\nstart a\nstart b\nstart c\nplace", "found\nstart a\nstart b\nstart c\nstart d\nsettle\nremove a\nstep"} {
		s := newScript(f)
		s.run(prepare)
		snapshots = append(snapshots, s.m.Snapshot())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, snapshot := range snapshots {
			m := New()
			if err := m.Restore(snapshot); err != nil {
				t.Fatal(err)
			}
			before := m.State()
			r, err := m.Apply(100, data)
			if err != nil && m.State() != before {
				t.Fatal("an error, and a new state")
			}
			checkStep(t, before, m.State(), r, string(snapshot))
			Next(m.State())
		}
		m := New()
		if m.Restore(data) == nil {
			Next(m.State())
		}
	})
}
