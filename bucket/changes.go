package bucket

// Changes counts what has changed in the cells of a slot, in this process: it is
// no part of the state, of a dump or of a chunk. Equal counts, in one table and
// under one SlotInfo.Revision and State, mean that no bucket was changed between;
// results that were dropped, and time that passed, do not count.
func (t *Table) Changes(slot uint16) uint64 {
	if int(slot) >= len(t.slots) {
		return 0
	}
	return t.slots[slot].changes
}
