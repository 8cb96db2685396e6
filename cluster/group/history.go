package group

// historySize is how many positions a replica remembers: at some thousands of
// entries a second, more than what passes while another replica's word is on
// its way.
const historySize = 4096

// history is the hash of what was applied, at each of the last positions, so
// that two replicas can be compared at one index although they are never there
// at the same moment.
type history struct {
	ring [historySize]position
}

type position struct {
	index, chain uint64
}

func (h *history) add(index, chain uint64) { h.ring[index%historySize] = position{index, chain} }

func (h *history) at(index uint64) (chain uint64, ok bool) {
	p := h.ring[index%historySize]
	return p.chain, p.index == index && index != 0
}

// ChainAt is the hash of all that was applied up to an index of late. Not ok: the
// index is ahead of this replica, too far behind, or was no entry of the table.
func (r *Replica) ChainAt(index uint64) (chain uint64, ok bool) {
	h := &r.fsm.view
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.past.at(index)
}
