package control

// CountSlots counts the slots of a group.
func (s *State) CountSlots(group uint32) int {
	n := 0
	for _, g := range s.SlotGroup {
		if g == group {
			n++
		}
	}
	return n
}

// Decode reads a log entry that Encode wrote; it refuses anything else.
func Decode(data []byte) (Command, error) { return decode(data) }
