package bucket

// aheadRequests is how many requests' cells and records are loaded before the
// first of them is decided, so that their cache misses overlap. With fewer each pass
// waits for its last ones more often; with 64 all that was loaded still fits the second
// level of a cache.
const aheadRequests = 64

// touchAhead loads what deciding jobs will need, one kind of thing after the
// other: each pass reads only what the passes before have brought, and none waits
// for another of its own.
func (t *Table) touchAhead(jobs []job) {
	first, last := &jobs[0], &jobs[len(jobs)-1]
	t.warmth += t.touchCells(t.work.asks[first.first:last.first+last.count]) + t.touchSessions(jobs)
}

// touchCells loads the cells of asks, and what leads there.
func (t *Table) touchCells(asks []ask) (sum uint64) {
	slots := t.slots
	for i := range asks {
		if n := int(asks[i].slot); n < len(slots) {
			sum += uint64(len(slots[n].dir)) + slots[n].changes
		}
	}
	for i := range asks {
		if n := int(asks[i].slot); n < len(slots) {
			if g := slots[n].segment(asks[i].key); g != nil {
				sum += uint64(g.cells)
			}
		}
	}
	for i := range asks {
		if n := int(asks[i].slot); n < len(slots) {
			sum += slots[n].touch(asks[i].key)
		}
	}
	return sum
}

// touchSessions finds the sessions of jobs, and loads the results at both ends of
// their queues: the newest is followed by another, and the oldest may go.
func (t *Table) touchSessions(jobs []job) (sum uint64) {
	d := &t.ids
	for i := range jobs {
		if j := &jobs[i]; j.id.Kind == ClientID {
			j.session = d.first(nameHash(sessionRecord, j.home, j.id.Session, 0))
		}
	}
	for i := range jobs {
		if n := jobs[i].session; n != noRecord {
			sum += d.touch(n)
		}
	}
	for i := range jobs {
		if j := &jobs[i]; j.session != noRecord {
			j.session = d.walk(j.session, sessionRecord, j.home, j.id.Session, 0)
		}
	}
	var stack [aheadRequests]uint32
	oldest := stack[:0] // results that may go
	for i := range jobs {
		j := &jobs[i]
		if j.session == noRecord {
			continue
		}
		q := d.queue(j.session)
		if q.head == noRecord {
			continue
		}
		sum += d.touch(q.tail)
		if frees(d.pool.view(j.session), j.id.Acked) {
			oldest = append(oldest, q.head)
		}
	}
	for range 3 { // as a rule one or two go; and the one behind, to see that it stays
		sum += d.touchNext(oldest)
	}
	return sum
}

// touchNext loads results, and makes each of the list the next younger one of its queue.
func (d *ids) touchNext(results []uint32) (sum uint64) {
	for _, n := range results {
		if n != noRecord {
			sum += d.touch(n)
		}
	}
	for i, n := range results {
		if n != noRecord {
			results[i] = le.Uint32(d.pool.view(n)[resultFollow:])
		}
	}
	return sum
}

// touch loads a record.
func (d *ids) touch(n uint32) uint64 {
	c := d.pool.view(n)
	return uint64(c[recordTag]) + uint64(c[recordSize-1])
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
