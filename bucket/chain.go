package bucket

// link is what one entry adds to the chain, in the making.
type link struct {
	chain   uint64
	out     *Results
	first   int  // of out's items, the first one that is not in chain yet
	discard bool // nobody wants out
}

// fold mixes the results that are new into the chain.
func (l *link) fold() {
	l.chain = l.out.fold(l.chain, l.first)
	if l.discard {
		l.out.Reset()
	}
	l.first = len(l.out.Items)
}

// fold mixes the results from Items[first] on into a rolling hash.
func (r *Results) fold(h uint64, first int) uint64 {
	for i := range r.Items[first:] {
		item := &r.Items[first+i]
		h = fold(h, uint64(item.Code)<<32|uint64(uint32(item.Count)))
		h = fold(h, uint64(item.SlotTime))
		for k := range r.Answers[item.First : item.First+item.Count] {
			a := &r.Answers[int(item.First)+k]
			h = fold(h, a.Rule.Version^uint64(a.Reason)<<56)
			h = fold(h, a.Remaining)
			h = fold(h, uint64(a.ResetAfter)^uint64(a.RetryAfter)<<1)
			if extra := uint64(a.Delay) ^ a.PermitID ^ a.Units<<32 ^ a.UnitCost; extra != 0 {
				h = fold(h, extra)
			}
		}
	}
	return h
}
