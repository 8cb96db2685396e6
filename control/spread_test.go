package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMovedSlotsAreBounded: through waves of nodes that join, drain, or die and
// are removed, at most twice the part of nodes that came or went moves, and then
// nobody owns more than 1.25 times the mean.
func TestMovedSlotsAreBounded(t *testing.T) {
	histories := 12
	if testing.Short() {
		histories = 2
	}
	worst := 0.0
	for seed := range histories {
		rnd := rand.New(rand.NewPCG(uint64(seed), 7))
		h := newWaves(t, 1024, 3+rnd.IntN(3))
		for range 4 {
			before, slots := h.m.State().Members(), h.m.State().SlotGroup
			h.wave(rnd)
			after := h.m.State()
			changed := 0
			for _, n := range before {
				if !slices.Contains(after.Members(), n) {
					changed++
				}
			}
			for _, n := range after.Members() {
				if !slices.Contains(before, n) {
					changed++
				}
			}
			moved := 0
			for slot := range slots {
				if slots[slot] != after.SlotGroup[slot] {
					moved++
				}
			}
			if changed == 0 {
				if moved > 0 {
					t.Fatalf("%d slots moved for nothing", moved)
				}
				continue
			}
			part := float64(moved) / 1024 / (float64(changed) / float64(max(len(before), len(after.Members()))))
			worst = max(worst, part)
			if part > 2 {
				t.Errorf("history %d: %d → %d nodes move %.2f times their part", seed, len(before), len(after.Members()), part)
			}
			checkSettled(t, after)
		}
	}
	t.Logf("at worst %.2f times the part of nodes that came or went", worst)
}

// waves is a cluster of which only the machine is there; what groups should
// report is reported at once.
type waves struct {
	t     *testing.T
	m     *Machine
	index uint64
	nodes int
}

func newWaves(t *testing.T, slots, nodes int) *waves {
	w := &waves{t: t, m: New()}
	c := founding()
	c.Slots, c.Expect = slots, nodes
	w.apply(c)
	for range nodes {
		w.join()
	}
	w.settle()
	return w
}

func (w *waves) apply(c Command) {
	w.index++
	if r, err := w.m.Apply(w.index, Encode(c)); err != nil || r.Err != nil {
		w.t.Fatalf("%s: %v, %v", describe(c), err, r.Err)
	}
}

func (w *waves) join() {
	w.nodes++
	name := fmt.Sprintf("node-%d", w.nodes)
	w.apply(Register{Node: Node{Name: name, Directory: name, Incarnation: name, FormatMax: FormatMax}})
}

// wave lets some nodes join, drain or be removed at once.
func (w *waves) wave(rnd *rand.Rand) {
	for range 1 + rnd.IntN(3) {
		members := w.m.State().Members()
		name := members[rnd.IntN(len(members))]
		switch what := rnd.IntN(3); {
		case what == 0 || len(members) < 4:
			w.join()
		case what == 1:
			w.apply(Drain{name})
		default:
			w.apply(Remove{name})
		}
	}
	w.settle()
}

func (w *waves) settle() {
	for range 2000 {
		s := w.m.State()
		for _, c := range Plan(s, Look{Quiet: Hysteresis, Steady: Hysteresis}) {
			w.apply(c)
		}
		w.report()
		if w.m.State() == s {
			return
		}
	}
	w.t.Fatal("it never settles")
}

// report says for all groups that what was to be done is done.
func (w *waves) report() {
	s := w.m.State()
	for _, g := range s.Groups {
		if !g.Formed {
			w.apply(Form{g.ID, g.Epoch})
		}
		if len(g.Births) > 0 {
			w.apply(Born{g.ID, g.Epoch, g.Births})
		}
		for _, r := range g.Replicas {
			switch {
			case r.Role == Joining && !s.Gone(r):
				w.apply(Promoted{g.ID, g.Epoch, r.Serial})
			case r.Role == Leaving:
				w.apply(Dropped{g.ID, g.Epoch, r.Serial})
			}
		}
		var from, to []MoveID
		for _, m := range s.MovesOf(g.ID) {
			if m.From == g.ID && m.Phase == Copying {
				from = append(from, m.ID())
			}
		}
		if from != nil {
			w.apply(Flip{g.ID, g.Epoch, from})
		}
		from = nil
		for _, m := range w.m.State().MovesOf(g.ID) {
			switch {
			case m.To == g.ID && m.Phase != Copying:
				to = append(to, m.ID())
			case m.From == g.ID && (m.Phase == Cancelled || m.ToSettled):
				from = append(from, m.ID())
			}
		}
		if ids := append(from, to...); ids != nil {
			w.apply(Settled{g.ID, g.Epoch, ids})
		}
	}
}
