package bucket

import (
	"testing"

	"pgregory.net/rapid"
)

// TestMovedSlotAnswersAsOneThatNeverMoved is the promise of this package's moves.
func TestMovedSlotAnswersAsOneThatNeverMoved(t *testing.T) {
	arrived, asked := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := newMover(t)
		for range rapid.IntRange(20, 250).Draw(t, "steps") {
			switch rapid.IntRange(0, 19).Draw(t, "what") {
			case 0:
				m.tick()
			case 1:
				m.cut()
			case 2:
				g := rapid.IntRange(0, 1).Draw(t, "group")
				m.entry(g, StampEntry(m.stampOf(g), rapid.SampledFrom([]int{0, 10, 1000}).Draw(t, "sweep")))
				m.still.entry(StampEntry(m.now, 0))
			case 3:
				m.restore()
			case 4, 5, 6, 7, 8:
				m.step(uint16(rapid.IntRange(0, moverSlots-1).Draw(t, "slot")))
			default:
				m.ask()
			}
		}
		for g := range m.groups {
			restored(t, m.groups[g].table)
		}
		arrived += m.arrived
		asked += m.asked
	})
	t.Logf("%d moves arrived, %d requests compared", arrived, asked)
}

// step takes the move of a slot one step further, or begins one.
func (m *mover) step(slot uint16) {
	t, mv := m.t, m.moves[slot]
	switch {
	case mv == nil:
		m.counter++
		mv = &moving{m: Move{Slot: slot, Revision: m.counter}, from: m.where[slot], to: 1 - m.where[slot]}
		m.moves[slot] = mv
		m.copyAnew(mv)
	case rapid.IntRange(0, 11).Draw(t, "cancel") == 0:
		m.cancel(mv)
	case rapid.IntRange(0, 11).Draw(t, "anew") == 0:
		m.copyAnew(mv)
	case mv.complete:
		m.flip(mv)
	case mv.sealed:
		if chunk, last := mv.export.Final(m.size()); chunk != nil {
			m.adopt(mv, chunk)
			mv.complete = last
		}
	default:
		chunk, more := mv.export.Next(m.size())
		if chunk != nil {
			m.adopt(mv, chunk)
		}
		if rapid.IntRange(0, 7).Draw(t, "seal") < map[bool]int{true: 1, false: 2}[more] {
			m.must(mv.from, SealEntry, mv.m)
			mv.sealed, mv.sealedAt = true, m.now
		}
	}
}

func (m *mover) size() int { return rapid.SampledFrom([]int{0, 200, 1000, 64 << 10}).Draw(m.t, "size") }

// copyAnew is what a new leader of the source does.
func (m *mover) copyAnew(mv *moving) {
	mv.pass++
	mv.complete, mv.old = false, nil
	mv.export = m.groups[mv.from].table.Export(mv.m.Slot, mv.pass)
}

// adopt commits a chunk, after it perhaps one that was committed before.
func (m *mover) adopt(mv *moving, chunk []byte) {
	info, err := ParseChunk(chunk)
	if err != nil || info.Slot != mv.m.Slot || info.Pass != mv.pass || int(info.Number) != len(mv.old) {
		m.t.Fatalf("%+v: %v", info, err)
	}
	mv.old = append(mv.old, chunk)
	if rapid.IntRange(0, 4).Draw(m.t, "repeat") == 0 {
		mv.old = append(mv.old[:len(mv.old):len(mv.old)], mv.old[rapid.IntRange(0, len(mv.old)-1).Draw(m.t, "which")])
	}
	for _, c := range mv.old[info.Number:] {
		info, _ := ParseChunk(c)
		code := MoveAgain
		for n := 0; code == MoveAgain; n++ {
			late := min(rapid.SampledFrom([]int64{0, 0, 1, 1000}).Draw(m.t, "late"), m.now-mv.sealedAt)
			stamp := m.stampOf(mv.to) - late
			slotTime := info.SlotTime + m.now - mv.sealedAt + stamp - m.stampOf(mv.to)
			code = m.entry(mv.to, AdoptEntry(stamp, mv.m, slotTime, c)).Items[0].Code
			if n > 100 {
				m.t.Fatal("never cleared")
			}
		}
		if code != Moved {
			m.t.Fatalf("code %d of %+v at %+v", code, info, m.groups[mv.to].table.Slot(mv.m.Slot))
		}
	}
	mv.old = mv.old[:info.Number+1]
}

func (m *mover) flip(mv *moving) {
	m.must(mv.to, OwnEntry, mv.m)
	m.must(mv.from, ForgetEntry, mv.m)
	if rapid.Bool().Draw(m.t, "twice") {
		m.must(mv.to, OwnEntry, mv.m)
		m.must(mv.from, ForgetEntry, mv.m)
		m.refused(mv.from, SealEntry, mv.m)
		m.refused(mv.to, DropEntry, mv.m)
	}
	m.where[mv.m.Slot], m.moves[mv.m.Slot] = mv.to, nil
	m.arrived++
}

func (m *mover) cancel(mv *moving) {
	m.must(mv.from, UnsealEntry, mv.m)
	m.must(mv.to, DropEntry, mv.m)
	m.moves[mv.m.Slot] = nil
	m.refused(mv.from, SealEntry, mv.m)
	m.refused(mv.to, OwnEntry, mv.m)
	if len(mv.old) > 0 {
		out := m.entry(mv.to, AdoptEntry(m.stampOf(mv.to), mv.m, 0, mv.old[0]))
		if out.Items[0].Code != MoveRefused {
			m.t.Fatalf("a dropped move is adopted: %d", out.Items[0].Code)
		}
	}
}

func (m *mover) refused(g int, make func(int64, []Move) []byte, mv Move) {
	if c := m.code(g, make, mv); c != MoveRefused {
		m.t.Fatalf("code %d of %+v in group %d, which stands at %+v", c, mv, g, m.groups[g].table.Slot(mv.Slot))
	}
}
