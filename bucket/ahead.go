package bucket

// aheadRequests is how many requests' cells and records are loaded before the
// first of them is decided, so that their cache misses overlap.
const aheadRequests = 16

// touchAhead loads what deciding jobs will need, one kind of thing after the
// other: each pass reads only what the pass before has brought.
func (t *Table) touchAhead(jobs []job) {
	first, last := &jobs[0], &jobs[len(jobs)-1]
	sum := uint64(0)
	for i := range jobs {
		if j := &jobs[i]; j.id.Kind == ClientID {
			j.session = t.ids.first(nameHash(sessionRecord, j.home, j.id.Session, 0))
		}
	}
	asks := t.work.asks[first.first : last.first+last.count]
	for i := range asks {
		if int(asks[i].slot) < len(t.slots) {
			sum += t.slots[asks[i].slot].touch(asks[i].key)
		}
	}
	for i := range jobs {
		if n := jobs[i].session; n != noRecord {
			sum += uint64(t.ids.pool.view(n)[recordTag])
		}
	}
	for i := range jobs {
		if j := &jobs[i]; j.session != noRecord {
			j.session = t.ids.walk(j.session, sessionRecord, j.home, j.id.Session, 0)
		}
	}
	for i := range jobs {
		if j := &jobs[i]; j.session != noRecord {
			if oldest := t.ids.queue(j.session).head; oldest != noRecord {
				sum += uint64(t.ids.pool.view(oldest)[recordTag])
			}
		}
	}
	t.warmth += sum
}

// touch loads the cell where a search for k begins, and the cache line behind it.
func (s *slot) touch(k Key) uint64 {
	g := s.segment(k)
	if g == nil {
		return 0
	}
	const line = 64
	at := int(g.home(k.Lo)) * cellSize
	return uint64(g.buf[at]) + uint64(g.buf[min(at+line, len(g.buf)-1)])
}
