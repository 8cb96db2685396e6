package bucket

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
			if extra := uint64(a.Delay) ^ a.PermitID; extra != 0 {
				h = fold(h, extra)
			}
		}
	}
	return h
}
