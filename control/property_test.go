package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/policy"
)

// history applies commands to two machines and holds every invariant after each.
type history struct {
	t        rapid.TB
	m, twin  *Machine
	index    uint64
	restarts int
	said     map[string]string // what each version of each policy says
	look     Look
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
	if before.Policies != nil {
		h.policies(before, h.m.State())
	}
}

// planned applies what Plan wants; each must change something.
func (h *history) planned() int {
	s := h.m.State()
	commands := Plan(s, h.look)
	if d := cmp.Diff(commands, Plan(s, h.look)); d != "" {
		h.t.Fatalf("Plan says two things of one state: %s", d)
	}
	for _, c := range commands {
		before := h.m.State()
		h.apply(c)
		if h.m.State() == before {
			h.t.Fatalf("Plan wants %s, but it changes nothing", describe(c))
		}
	}
	return len(commands)
}

// report draws what the groups may say.
func (h *history) report(t *rapid.T) Command {
	s := h.m.State()
	if !s.Placed() {
		return Place{}
	}
	g := rapid.SampledFrom(s.Groups).Draw(t, "group")
	r := rapid.SampledFrom(g.Replicas).Draw(t, "replica")
	node := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "to")
	epoch := g.Epoch - uint32(rapid.IntRange(0, 9).Draw(t, "stale")/9)
	other := rapid.SampledFrom(s.Groups).Draw(t, "other")
	moves := []MoveID{{uint16(rapid.IntRange(0, 16).Draw(t, "slot")), rapid.Uint64Range(0, s.NextRevision+1).Draw(t, "revision")}}
	for _, m := range s.Moves {
		moves = append(moves, m.ID())
	}
	moves = moves[rapid.IntRange(0, len(moves)-1).Draw(t, "from"):]
	return rapid.SampledFrom([]Command{
		Form{g.ID, epoch},
		Reform{g.ID, epoch},
		Replace{g.ID, epoch, r.Serial, node},
		Promoted{g.ID, epoch, r.Serial},
		Dropped{g.ID, epoch, r.Serial},
		Miss{g.ID, epoch, r.Serial},
		Revert{g.ID, epoch, r.Serial, g.Replicas[0].Serial},
		Dropped{g.ID, epoch, s.NextSerial},
		Place{},
		founding(),
		AddReplica{g.ID, epoch, node},
		DropReplica{g.ID, epoch, r.Serial},
		AddGroup{node, []string{node}},
		Dissolve{g.ID, epoch},
		StartMoves{[]Start{{moves[0].Slot, other.ID}}},
		Flip{g.ID, epoch, moves},
		Flip{g.ID, epoch, moves},
		CancelMoves{moves, ""},
		Settled{g.ID, epoch, moves},
		Settled{g.ID, epoch, moves},
		NewEpoch{Group: g.ID, Epoch: epoch, Nodes: []string{node}, Configuration: []uint64{r.Serial}},
		Born{g.ID, epoch, []uint16{moves[0].Slot, 3, 4}},
		Drain{node},
		Undrain{node},
		Left{node},
		SetReplication{1 + 2*int(moves[0].Slot%2)},
		Rebalance{Wish{[]uint32{g.ID}, slices.Repeat([]uint32{g.ID}, 16)}},
		Retire{node, s.incarnation(node)},
		Unretire{node, s.incarnation(node)},
	}).Draw(t, "report")
}

// incarnation is the present one of a node, if it is known.
func (s *State) incarnation(name string) string {
	n, _ := s.Node(name)
	return n.Incarnation
}

func (h *history) register(t *rapid.T) Command {
	h.restarts++
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "node")
	incarnation := h.restarts - rapid.IntRange(0, 3).Draw(t, "late")
	return Register{
		Node:      Node{Name: name, Directory: fmt.Sprint("d", rapid.IntRange(0, 9).Draw(t, "directory")/9), Incarnation: fmt.Sprint("i", incarnation), FormatMax: FormatMax},
		Supersede: rapid.Bool().Draw(t, "supersede"),
	}
}

// change draws a change of policies.
func (h *history) change(t *rapid.T) Command {
	s := h.m.State()
	id := rapid.SampledFrom([]string{"a", "b", "c", "z"}).Draw(t, "id")
	amount := rapid.Uint64Range(1, 3).Draw(t, "amount")
	var ifMatch *uint64
	if rapid.Bool().Draw(t, "if match") {
		v := uint64(rapid.IntRange(0, int(s.PolicyVersion)).Draw(t, "version"))
		ifMatch = &v
	}
	p := count(id, amount)
	p.Family = rapid.SampledFrom([]string{"", "", "a"}).Draw(t, "family")
	by := Author{Who: "ann"}
	key := policy.On("tenant", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tenant"))
	until := rapid.Int64Range(1, 9).Draw(t, "until")
	return rapid.SampledFrom([]Command{
		PutPolicy{p, ifMatch, by},
		PutPolicies{
			Set:   &policy.Set{Home: []string{"tenant"}, NoMatch: policy.Action(amount % 2), Policies: []*policy.Policy{count("b", amount), count("y", 1)}},
			Prune: amount == 1, IfMatch: ifMatch, By: by,
		},
		DeletePolicy{id, ifMatch, by},
		Rollback{id, rapid.Uint64Range(0, s.PolicyVersion+1).Draw(t, "to"), ifMatch, by},
		SetOverride{&policy.Override{Policy: id, Key: key, Amount: &amount, Until: until}, by},
		ClearOverride{id, key, by},
		ExpireOverrides{until, by},
	}).Draw(t, "change")
}

// policies holds what a change of policies must hold: a version says one thing
// for ever, and the newest is above all before.
func (h *history) policies(before, after *State) {
	if after.Policies == nil {
		return
	}
	if after.PolicyVersion < before.PolicyVersion || after.PolicyVersion > before.PolicyVersion+1 {
		h.t.Fatalf("version %d after %d", after.PolicyVersion, before.PolicyVersion)
	}
	says := func(id string, version uint64, v any) {
		key := fmt.Sprintf("%s@%d", id, version)
		b, _ := json.Marshal(v)
		if was, ok := h.said[key]; ok && was != string(b) {
			h.t.Fatalf("%s was %s, is %s", key, was, b)
		}
		h.said[key] = string(b)
	}
	for _, p := range after.Policies.Policies {
		says(p.ID, p.Version, p)
		if _, known := before.Policies.Find(p.ID); before.PolicyVersion == after.PolicyVersion && !known {
			h.t.Fatalf("%s came without a version", p.ID)
		}
		if got, ok := after.version(p.ID, p.Version); !ok || got != p {
			h.t.Fatalf("version %d of %s is not found", p.Version, p.ID)
		}
	}
	for _, p := range after.Past {
		says(p.Policy.ID, p.Policy.Version, p.Policy)
	}
	for _, o := range after.Policies.Overrides {
		says("override", o.Version, o)
	}
	index, err := policy.Compile(before.Policies, policy.Keys{Slots: 16})
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := index.Update(after.Policies); err != nil {
		h.t.Fatal(err)
	}
}

func TestAnyHistoryKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{t: t, m: New(), twin: New(), said: map[string]string{}}
		c := founding()
		c.Expect, c.Groups = rapid.IntRange(1, 4).Draw(t, "expect"), rapid.IntRange(0, 3).Draw(t, "groups")
		h.apply(c)
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			switch rapid.IntRange(0, 16).Draw(t, "what") {
			case 0, 1, 2:
				h.apply(h.register(t))
			case 3:
				h.apply(Remove{rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "node")})
			case 4, 5, 6:
				h.look.Quiet = Hysteresis * time.Duration(rapid.IntRange(0, 1).Draw(t, "quiet"))
				h.look.Steady = h.look.Quiet
				h.planned()
			case 7, 8, 9, 10, 11, 12:
				h.apply(h.report(t))
			default:
				h.apply(h.change(t))
			}
		}
		h.settles()
	})
}

// settles lets a healthy cluster finish, and then holds that it is as wished.
func (h *history) settles() {
	h.look = Look{Quiet: Hysteresis, Steady: Hysteresis}
	for _, n := range h.m.State().Nodes {
		if len(n.Unsure) > 0 && len(h.m.State().Registered()) > 1 {
			h.apply(Remove{n.Name}) // only an operator can say that their processes ended
		}
	}
	for round := 0; h.planned() > 0 || h.finish(); round++ {
		if round > 400 {
			h.t.Fatal("it never settles")
		}
	}
	if s := h.m.State(); !slices.ContainsFunc(s.Nodes, func(n Node) bool { return len(n.Unsure) > 0 }) {
		checkSettled(h.t, s)
	}
}

// finish reports every step as done and says whether there was any.
func (h *history) finish() (any bool) {
	before := h.m.State()
	for _, m := range before.Moves {
		from, _ := before.Group(m.From)
		to, _ := before.Group(m.To)
		id := []MoveID{m.ID()}
		if m.Phase == Copying {
			h.apply(Flip{from.ID, from.Epoch, id})
		}
		h.apply(Settled{to.ID, to.Epoch, id})
		h.apply(Settled{from.ID, from.Epoch, id})
	}
	for _, g := range before.Groups {
		if !g.Formed {
			h.apply(Form{g.ID, g.Epoch})
		}
		if len(g.Births) > 0 {
			h.apply(Born{g.ID, g.Epoch, g.Births[:1]})
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
		Revert{0, 1, 10, 1},
		Remove{"a"},
		PutPolicy{Policy: count("a", 7), IfMatch: is(1)},
		PutPolicies{Set: founding().Policies, Prune: true},
		DeletePolicy{ID: "a"},
		Rollback{ID: "a", To: 1},
		SetOverride{Override: &policy.Override{Policy: "a", Key: policy.On("tenant", "x"), Times: 2, Per: 1}},
		ClearOverride{Policy: "a", Key: policy.On("tenant", "x")},
		ExpireOverrides{Now: 5},
		StartMoves{[]Start{{3, 1}}},
		Flip{0, 1, []MoveID{{3, 1}}},
		CancelMoves{[]MoveID{{3, 1}}, "why"},
		Settled{0, 1, []MoveID{{3, 1}}},
		Rebalance{Wish{[]uint32{0, 1}, make([]uint32, 16)}},
		AddGroup{"d", []string{"d", "a", "b"}},
		Dissolve{0, 1},
		AddReplica{0, 1, "d"},
		DropReplica{0, 1, 1},
		SetReplication{1},
		Drain{"a"},
		Undrain{"a"},
		Left{"a"},
		Retire{"a", "a1"},
		Unretire{"a", "a1"},
		NewEpoch{Group: 0, Epoch: 1, Nodes: []string{"a"}, Configuration: []uint64{1}},
		Born{0, 2, []uint16{1, 2}},
	} {
		f.Add(Encode(c))
	}
	var snapshots [][]byte
	for _, prepare := range []string{
		"", "found", "found\nstart a\nstart b\nstart c\nplace", "found\nstart a\nstart b\nstart c\nstart d\nsettle\nremove a\nstep",
		"found\nstart a\nstart b\nstart c\nsettle\nstart d\nwait 10\nstep\nform\nstep\nstep", "found\nstart a\nstart b\nstart c\nsettle\nstart a\nstart b\nstep",
	} {
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
			Plan(m.State(), Look{Quiet: Hysteresis})
		}
		m := New()
		if m.Restore(data) == nil {
			Plan(m.State(), Look{Quiet: Hysteresis, Silent: map[string]time.Duration{"a": time.Hour}, ReplaceAfter: time.Minute})
		}
	})
}
