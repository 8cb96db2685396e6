package control

import (
	"slices"

	"github.com/ringlimit/ringlimit/api/fault"
)

// StartMoves opens moves, all or none. Each must be wished for (State.Wish); its
// groups must have formed, and its slot have no open move and no pending birth.
// Moves get revisions in the order given.
type StartMoves struct {
	Moves []Start `json:"moves"`
}

// Start says where a slot shall go.
type Start struct {
	Slot uint16 `json:"slot"`
	To   uint32 `json:"to"`
}

// Flip gives slots to the targets of their moves: the leader of the source says
// that it has sealed them and that the target has all of them. Each move is
// judged by itself; what is flipped already stays so. When none is flipped
// because of it or before, it is refused: look at the State.
type Flip struct {
	Group uint32   `json:"group"` // the source
	Epoch uint32   `json:"epoch"` // its epoch: a leader of one that was given up has no say
	Moves []MoveID `json:"moves"`
}

// CancelMoves leaves slots where they are. Each move is judged by itself, as with Flip.
type CancelMoves struct {
	Moves  []MoveID `json:"moves"`
	Reason string   `json:"reason,omitempty"` // at most maxText bytes; kept in the log only
}

// Settled says that a group has done its part of the end of moves. Each move is
// judged by itself. The source of a Flipped move may forget its copy, and settle,
// only when the target has settled: until then that copy is all there is to
// begin the transfer again from.
type Settled struct {
	Group uint32   `json:"group"`
	Epoch uint32   `json:"epoch"`
	Moves []MoveID `json:"moves"`
}

func (StartMoves) kind() string  { return "start_moves" }
func (Flip) kind() string        { return "flip" }
func (CancelMoves) kind() string { return "cancel_moves" }
func (Settled) kind() string     { return "settled" }

func (c StartMoves) apply(s *State) (bool, error) {
	if len(c.Moves) == 0 {
		return false, fault.Field("moves", "none, want at least one")
	}
	if n := s.copying() + len(c.Moves); n > MaxMoves {
		return false, fault.New(fault.Conflict, "%d moves would be open, want at most %d", n, MaxMoves)
	}
	s.Moves = slices.Clone(s.Moves)
	for _, m := range c.Moves {
		if err := s.mayMove(m); err != nil {
			return false, err
		}
		i, _ := s.move(m.Slot)
		s.Moves = slices.Insert(s.Moves, i, Move{
			Slot: m.Slot, Revision: s.revision(), From: s.SlotGroup[m.Slot], To: m.To, Phase: Copying,
		})
	}
	return true, nil
}

// mayMove says why a slot may not start to move.
func (s *State) mayMove(m Start) error {
	if s.Wish == nil || int(m.Slot) >= len(s.SlotGroup) || s.Wish.Slots[m.Slot] != m.To {
		return fault.New(fault.Conflict, "slot %d is not wished to be in group %d", m.Slot, m.To)
	}
	if s.SlotGroup[m.Slot] == m.To {
		return fault.New(fault.Conflict, "slot %d is in group %d", m.Slot, m.To)
	}
	if open, ok := s.Move(m.Slot); ok {
		return fault.New(fault.Conflict, "slot %d has an open move, revision %d", m.Slot, open.Revision)
	}
	from, _ := s.Group(s.SlotGroup[m.Slot])
	to, _ := s.Group(m.To)
	if !from.Formed || !to.Formed {
		return fault.New(fault.Conflict, "slot %d moves from group %d to group %d, and one of them has not formed", m.Slot, from.ID, to.ID)
	}
	if _, unborn := slices.BinarySearch(from.Births, m.Slot); unborn {
		return fault.New(fault.Conflict, "slot %d has not begun in epoch %d of group %d", m.Slot, from.Epoch, from.ID)
	}
	return nil
}

func (c Flip) apply(s *State) (bool, error) {
	if _, err := s.find(c.Group, c.Epoch); err != nil {
		return false, err
	}
	changed, err := s.judge(c.Moves, func(m *Move) verdict {
		switch {
		case m.From != c.Group || m.Phase == Cancelled:
			return refused
		case m.Phase == Flipped:
			return asBefore
		}
		m.Phase = Flipped
		return done
	})
	if changed {
		s.SlotGroup = slices.Clone(s.SlotGroup)
		for _, m := range s.Moves {
			if m.Phase == Flipped {
				s.SlotGroup[m.Slot] = m.To
			}
		}
		s.Revision++
	}
	return changed, err
}

func (c CancelMoves) apply(s *State) (bool, error) {
	if len(c.Reason) > maxText {
		return false, fault.Field("reason", "%d bytes, want at most %d", len(c.Reason), maxText)
	}
	return s.judge(c.Moves, func(m *Move) verdict {
		switch m.Phase {
		case Flipped:
			return refused
		case Cancelled:
			return asBefore
		}
		m.Phase = Cancelled
		return done
	})
}

func (c Settled) apply(s *State) (bool, error) {
	if _, err := s.find(c.Group, c.Epoch); err != nil {
		return false, err
	}
	changed, err := s.judge(c.Moves, func(m *Move) verdict {
		var side *bool
		switch {
		case m.Phase == Copying:
			return refused
		case m.To == c.Group:
			side = &m.ToSettled
		case m.From == c.Group && (m.Phase == Cancelled || m.ToSettled):
			side = &m.FromSettled
		default:
			return refused
		}
		if *side {
			return asBefore
		}
		*side = true
		return done
	})
	s.close()
	return changed, err
}
