package bucket

import (
	"bytes"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// mover is one world told twice: by a table whose slots never move, and by two
// groups between which they do. The groups' times differ; the slot times must not.
type mover struct {
	*world
	t       *rapid.T
	now     int64
	still   *rig
	groups  [2]*rig
	ahead   [2]int64 // of a group's time before now
	where   [moverSlots]int
	moves   [moverSlots]*moving
	counter uint64 // of revisions
	asked   int    // requests compared
	arrived int    // moves that ended with an own
}

const moverSlots = 3

// moving is a move that is under way.
type moving struct {
	m        Move
	pass     uint64
	from, to int
	export   *Export
	sealed   bool
	sealedAt int64
	complete bool
	old      [][]byte // chunks of this pass
}

func newMover(t *rapid.T) *mover {
	m := &mover{world: worlds(t), t: t, counter: 1}
	m.still = &rig{tb: t, table: NewTable(6)}
	for g := range m.groups {
		m.groups[g] = &rig{tb: t, table: NewTable(6)}
	}
	m.ahead[1] = rapid.SampledFrom([]int64{0, 1, 77 * sec, 1 << 55}).Draw(t, "ahead")
	m.still.entry(HoldEntry(0, []uint16{0, 1, 2, 4, 5}))
	m.groups[0].entry(HoldEntry(0, []uint16{0, 1, 2, 4}))
	m.groups[1].entry(HoldEntry(m.ahead[1], []uint16{5}))
	for p := range m.rules { // all know all policies, and never forget one
		for _, g := range []*rig{m.still, m.groups[0], m.groups[1]} {
			slot := uint16(4)
			if g == m.groups[1] {
				slot = 5
			}
			r := m.rules[p][0]
			g.apply(g.table.Time(), Request{Home: slot, Takes: []Take{{Slot: slot, Key: spread(uint64(90 + p)), Rule: r, Cost: 1}}})
			if g.table.rules.newest[r.Policy] == 0 {
				n := g.table.rules.intern(r)
				g.table.rules.name(n)
			}
		}
	}
	return m
}

// lasting keeps all rules of a table from being forgotten.
func lasting(tb *Table) {
	for i := range tb.rules.list {
		if v := &tb.rules.list[i]; v.used() && v.refs < 1<<40 {
			v.refs += 1 << 40
		}
	}
}

func (m *mover) stampOf(g int) int64 { return m.now + m.ahead[g] }

func (m *mover) entry(g int, e []byte) *Results {
	out := m.groups[g].entry(e)
	lasting(m.groups[g].table)
	return out
}

// code applies an entry of one move to group g.
func (m *mover) code(g int, make func(int64, []Move) []byte, mv Move) Code {
	return m.entry(g, make(m.stampOf(g), []Move{mv})).Items[0].Code
}

func (m *mover) must(g int, make func(int64, []Move) []byte, mv Move) {
	if c := m.code(g, make, mv); c != Moved {
		m.t.Fatalf("code %d of %+v in group %d, which stands at %+v", c, mv, g, m.groups[g].table.Slot(mv.Slot))
	}
}

func (m *mover) tick() {
	policy := rapid.IntRange(0, 1).Draw(m.t, "pace")
	rule := m.rules[policy][m.newest[policy]]
	step := rapid.OneOf(steps(rule.Limit), rapid.Int64Range(0, sec), rapid.SampledFrom([]int64{Horizon / 3, Horizon, Horizon + 1}))
	m.now = max(m.now, min(later(m.now, step.Draw(m.t, "step")), 1<<58))
}

// cut lets the next version of a policy begin everywhere at once.
func (m *mover) cut() {
	p := rapid.IntRange(0, 1).Draw(m.t, "policy")
	m.newest[p] = min(m.newest[p]+1, len(m.rules[p])-1)
	rules := []Rule{m.rules[p][m.newest[p]]}
	m.still.entry(CutoverEntry(m.now, rules))
	lasting(m.still.table)
	for g := range m.groups {
		m.entry(g, CutoverEntry(m.stampOf(g), rules))
	}
}

// ask sends one request to both worlds and compares what they say.
func (m *mover) ask() {
	t := m.t
	home := uint16(rapid.IntRange(0, moverSlots-1).Draw(t, "home"))
	r := m.requestFor(home)
	g := m.where[home]
	if mv := m.moves[home]; mv != nil && (mv.sealed || rapid.IntRange(0, 5).Draw(t, "wrong") == 0) {
		for _, g := range []int{mv.to, mv.from} {
			if g == mv.from && !mv.sealed {
				continue
			}
			if out := m.entry(g, m.groups[g].encode(m.stampOf(g), r)); out.Items[0].Code != NotHeld {
				t.Fatalf("a slot that is %v answers %d", m.groups[g].table.Slot(home).State, out.Items[0].Code)
			}
		}
		return
	}
	want := m.still.apply(m.now, r)
	lasting(m.still.table)
	var peeked Results
	peek := r.Op == OpTake
	if peek {
		m.groups[g].table.Peek(m.stampOf(g), &r, &peeked)
	}
	got := m.entry(g, m.groups[g].encode(m.stampOf(g), r))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-still +moved) at %d, %+v\n%s", m.now, r, diff)
	}
	if peek && peeked.Items[0].Code != got.Items[0].Code && got.Items[0].Code != StoreFull {
		t.Fatalf("peek says %d, apply %d", peeked.Items[0].Code, got.Items[0].Code)
	}
	m.granted([]Request{r}, got)
	m.asked++
}

// requestFor draws a request whose home is a slot. Others are in it only without
// an id, and where one group has them.
func (m *mover) requestFor(home uint16) Request {
	t := m.t
	newest := m.newest
	r := m.request(t, m.still.table)
	m.newest = newest // a cut-over is of all groups at once, see cut
	r.Home = home
	for i := range r.Takes {
		k := &r.Takes[i]
		k.Rule = m.rules[k.Rule.Policy][m.newest[k.Rule.Policy]]
		k.Slot = k.Slot % moverSlots
		if r.ID.Kind != NoID || m.where[k.Slot] != m.where[home] || m.moves[k.Slot] != nil && m.moves[k.Slot].sealed || r.Op != OpTake {
			k.Slot = home
		}
	}
	return r
}

// restore puts a copy made of its dump in the place of a group's table.
func (m *mover) restore() {
	g := rapid.IntRange(0, 1).Draw(m.t, "group")
	b := dump(m.t, m.groups[g].table)
	if rapid.Bool().Draw(m.t, "in place") {
		if err := m.groups[g].table.Restore(bytes.NewReader(b)); err != nil {
			m.t.Fatal(err)
		}
	} else {
		m.groups[g].table = restored(m.t, m.groups[g].table)
	}
	if !bytes.Equal(b, dump(m.t, m.groups[g].table)) {
		m.t.Fatal("a restored table dumps otherwise")
	}
	lasting(m.groups[g].table)
	for _, mv := range m.moves {
		if mv != nil && mv.from == g {
			m.copyAnew(mv)
		}
	}
}
