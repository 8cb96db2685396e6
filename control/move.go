package control

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ringlimit/ringlimit/api/fault"
)

// Move is a slot on its way from one group to another. Its life, which only
// commands change:
//
//	StartMoves ─▶ Copying ─ Flip ─▶ Flipped ─┐
//	                 └─ CancelMoves ─▶ Cancelled ─┴─ both sides Settled ─▶ no longer listed
//
// Whichever of Flip and CancelMoves comes first in the log counts, the other one
// is refused. Flip gives the slot to To in the same step, so that each slot has
// exactly one group at each index of the log. While a move is listed no other
// one of its slot starts, and neither group is dissolved.
type Move struct {
	Slot        uint16    `json:"slot"`
	Revision    uint64    `json:"revision"` // from 1, never used twice in a cluster
	From        uint32    `json:"from"`     // groups
	To          uint32    `json:"to"`
	Phase       MovePhase `json:"phase"`
	FromSettled bool      `json:"from_settled,omitempty"` // From has done its part of the end: forget, or unseal
	ToSettled   bool      `json:"to_settled,omitempty"`   // and so has To: own, or drop
}

// ID is what commands name a move by.
func (m Move) ID() MoveID { return MoveID{m.Slot, m.Revision} }

// MoveID names a move.
type MoveID struct {
	Slot     uint16 `json:"slot"`
	Revision uint64 `json:"revision"`
}

// MovePhase is how far a move is.
type MovePhase uint8

// The phases of a move.
const (
	Copying   MovePhase = iota + 1 // From serves the slot, or has sealed it; To has a part, and does not serve
	Flipped                        // To owns the slot and serves it; then From forgets its copy
	Cancelled                      // From serves the slot as if nothing had been; To drops its copy
)

var phases = [...]string{Copying: "copying", Flipped: "flipped", Cancelled: "cancelled"}

func (p MovePhase) String() string {
	if p >= Copying && p <= Cancelled {
		return phases[p]
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// MaxMoves bounds the moves that are Copying at once.
const MaxMoves = 16

// Move finds the open move of a slot.
func (s *State) Move(slot uint16) (Move, bool) {
	i, ok := s.move(slot)
	if !ok {
		return Move{}, false
	}
	return s.Moves[i], true
}

// MovesOf returns the open moves from or to a group, by slot.
func (s *State) MovesOf(group uint32) []Move {
	var out []Move
	for _, m := range s.Moves {
		if m.From == group || m.To == group {
			out = append(out, m)
		}
	}
	return out
}

func (s *State) move(slot uint16) (int, bool) {
	return slices.BinarySearchFunc(s.Moves, slot, func(m Move, slot uint16) int { return cmp.Compare(m.Slot, slot) })
}

// copying counts the moves that are Copying.
func (s *State) copying() int {
	n := 0
	for _, m := range s.Moves {
		if m.Phase == Copying {
			n++
		}
	}
	return n
}

// revision gives out the next revision.
func (s *State) revision() uint64 {
	r := max(s.NextRevision, 1)
	s.NextRevision = r + 1
	return r
}

// verdict is what became of one move of a command that names several.
type verdict uint8

const (
	refused  verdict = iota
	asBefore         // it is so already, or the move is over
	done
)

// judge lets each of the moves named be changed by f, in a slice of its own. An
// error says that all were refused.
func (s *State) judge(moves []MoveID, f func(*Move) verdict) (changed bool, err error) {
	s.Moves = slices.Clone(s.Moves)
	count := [3]int{}
	for _, id := range moves {
		i, ok := s.move(id.Slot)
		switch {
		case ok && s.Moves[i].Revision == id.Revision:
			count[f(&s.Moves[i])]++
		case id.Revision != 0 && id.Revision < s.NextRevision:
			count[asBefore]++ // it left the list
		default:
			count[refused]++
		}
	}
	if count[refused] > 0 && count[refused] == len(moves) {
		return false, fault.New(fault.Conflict, "none of the %d moves named is at that point", len(moves))
	}
	return count[done] > 0, nil
}

// close takes moves off the list that both sides have settled.
func (s *State) close() {
	s.Moves = slices.DeleteFunc(s.Moves, func(m Move) bool { return m.FromSettled && m.ToSettled })
	if len(s.Moves) == 0 {
		s.Moves = nil
	}
}
