package control

import (
	"fmt"
	"slices"
)

func (s *State) checkGroup(g Group) error {
	joining, last := 0, uint64(0)
	for _, r := range g.Replicas {
		switch {
		case r.Serial <= last || r.Serial >= s.NextSerial:
			return fmt.Errorf("serial %d after %d, next is %d", r.Serial, last, s.NextSerial)
		case r.Role < Voter || r.Role > Missing:
			return fmt.Errorf("replica %d: %v", r.Serial, r.Role)
		case r.Role != Leaving && g.occupied(r.Node, r.Serial):
			return fmt.Errorf("two replicas on node %q", r.Node)
		case r.Role == Joining:
			joining++
		}
		last = r.Serial
	}
	if joining > 1 {
		return fmt.Errorf("%d replicas are joining", joining)
	}
	return s.checkBirths(g)
}

// checkMoves is check for all that is about moves and what is wished for.
func (s *State) checkMoves() error {
	revisions := make(map[uint64]bool, len(s.Moves))
	for i, m := range s.Moves {
		_, from := s.group(m.From)
		_, to := s.group(m.To)
		holder := m.From
		if m.Phase == Flipped {
			holder = m.To
		}
		switch {
		case i > 0 && s.Moves[i-1].Slot >= m.Slot:
			return fmt.Errorf("move of slot %d out of order", m.Slot)
		case m.Revision == 0 || m.Revision >= s.NextRevision || revisions[m.Revision]:
			return fmt.Errorf("move of slot %d has revision %d, next is %d", m.Slot, m.Revision, s.NextRevision)
		case !from || !to || m.From == m.To:
			return fmt.Errorf("move of slot %d from group %d to group %d", m.Slot, m.From, m.To)
		case m.Phase < Copying || m.Phase > Cancelled || m.FromSettled && m.ToSettled || m.Phase == Copying && (m.FromSettled || m.ToSettled):
			return fmt.Errorf("move of slot %d is %v, settled %v and %v", m.Slot, m.Phase, m.FromSettled, m.ToSettled)
		case int(m.Slot) >= len(s.SlotGroup) || s.SlotGroup[m.Slot] != holder:
			return fmt.Errorf("slot %d is not in group %d, as its move says", m.Slot, holder)
		}
		revisions[m.Revision] = true
	}
	if n := len(s.Groups); n > 0 && s.NextGroup > 0 && s.Groups[n-1].ID >= s.NextGroup {
		return fmt.Errorf("group %d, next is %d", s.Groups[n-1].ID, s.NextGroup)
	}
	if s.Wish == nil {
		return nil
	}
	if !s.Placed() || len(s.Wish.Slots) != s.Slots {
		return fmt.Errorf("%d slots are wished for, want %d", len(s.Wish.Slots), s.Slots)
	}
	return s.Wish.check(s)
}

// check says what is wrong with a wish, apart from its size and who may own.
func (w *Wish) check(s *State) error {
	if len(w.Groups) == 0 {
		return fmt.Errorf("no groups are wished for")
	}
	for i, id := range w.Groups {
		if _, ok := s.group(id); !ok || i > 0 && w.Groups[i-1] >= id {
			return fmt.Errorf("group %d is wished for, and not there or out of order", id)
		}
	}
	for slot, id := range w.Slots {
		if !w.Keeps(id) {
			return fmt.Errorf("slot %d is wished to be in group %d, which shall not stay", slot, id)
		}
	}
	return nil
}

// checkBirths is checkGroup for what a new epoch made.
func (s *State) checkBirths(g Group) error {
	if !slices.IsSorted(g.Births) || len(g.Births) > 0 && g.BirthRevision == 0 || g.BirthRevision > 0 && g.BirthRevision >= s.NextRevision {
		return fmt.Errorf("%d births with revision %d, next is %d", len(g.Births), g.BirthRevision, s.NextRevision)
	}
	for i, slot := range g.Births {
		m, moves := s.Move(slot)
		if i > 0 && g.Births[i-1] == slot || int(slot) >= len(s.SlotGroup) || s.SlotGroup[slot] != g.ID {
			return fmt.Errorf("birth of slot %d, which is in another group", slot)
		}
		if moves && m.Phase == Copying {
			return fmt.Errorf("slot %d moves before its birth", slot)
		}
	}
	for _, r := range g.Survivors {
		if r.Epoch >= g.Epoch || r.Serial >= s.NextSerial || len(g.Births) == 0 {
			return fmt.Errorf("replica %d survives epoch %d, next serial is %d", r.Serial, r.Epoch, s.NextSerial)
		}
	}
	return nil
}
