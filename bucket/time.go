package bucket

import "math"

// Group time is what entries carry. Slot time is group time plus the slot's
// offset, so that it runs on when the slot moves from group to group. All that is
// stored of a slot is in slot time; rules, which slots share, are in group time.
// Neither is ever below 0 or steps back, and both stop at the end of an int64.

// shift is t + by for a time in the other of the two; the ends of time stay.
func shift(t, by int64) int64 {
	if by == 0 || t == math.MinInt64 || t == math.MaxInt64 {
		return t
	}
	sum := t + by
	switch {
	case by > 0 && sum < t:
		return math.MaxInt64
	case by < 0 && sum > t:
		return math.MinInt64
	}
	return sum
}

// time is the slot time of a slot at the group time now; it does not stand still.
func (s *slot) time(now int64) int64 {
	if s.offset == 0 {
		return now
	}
	return max(shift(now, s.offset), 0)
}

// slotTime is the slot time of a slot now.
func (s *state) slotTime(slot uint16) int64 {
	sl := &s.slots[slot]
	if sl.state == SlotSealed {
		return sl.sealed
	}
	return sl.time(s.time)
}

// advance lets group time become now.
func (s *state) advance(now int64) { s.time, s.rules.now = now, now }
