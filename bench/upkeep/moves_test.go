package main

import (
	"testing"
	"time"
)

// TestMovedUnderFindsWhoWaited: of a slot that group 1 gave to group 2, those waited
// who were under way when the first answer of group 2 came.
func TestMovedUnderFindsWhoWaited(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	at := func(slot uint16, group uint32, call, ret int) record {
		return record{slot: slot, group: group, slotTime: ms(ret - 1), due: ms(call), call: ms(call), at: ms(ret)}
	}
	all := []record{
		at(5, 2, 40, 43),                   // after the move
		at(5, 1, 1, 4),                     // before it
		at(5, 2, 10, 31), at(5, 2, 12, 30), // meanwhile
		at(6, 1, 9, 35), at(6, 1, 36, 37), // of a slot that stays
		at(7, 1, 1, 2), at(7, 3, 3, 9), at(7, 1, 50, 55), // forth and back
	}
	waits, moves := movedUnder(all, func(r record) bool { return r.slot != 7 })
	if d := durations(waits); len(moves) != 1 || moves[0] != ms(30) || len(d) != 2 || d[0] != ms(18) || d[1] != ms(21) {
		t.Errorf("waits %v, moves %v", waits, moves)
	}
	waits, moves = movedUnder(all, func(r record) bool { return r.slot == 7 })
	if len(moves) != 2 || len(waits) != 2 {
		t.Errorf("waits %v, moves %v", waits, moves)
	}
	w := window{"", ms(45), ms(60)}
	if got := in(waits, w); len(got) != 1 || got[0].took != ms(5) || countIn(moves, w) != 1 {
		t.Errorf("in the window %v", got)
	}
	if d := latencies(all, w); len(d) != 1 || d[0] != ms(5) {
		t.Errorf("latencies %v", d)
	}
}
