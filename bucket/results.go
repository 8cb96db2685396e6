package bucket

// keep stores the answers of an admitted request under id, at now, and returns
// the record; s is that of the id's session, or noRecord. The id has a kind.
func (d *ids) keep(slot uint16, own *queue, id *ID, s uint32, answers []stored, r *rules, now int64) (n uint32) {
	for i := range answers {
		r.name(answers[i].rule)
	}
	switch id.Kind {
	case OwnID:
		n = d.result(ownResult, slot, id.Own.Hi, id.Own.Lo, id.Content, answers, now)
		d.enter(n, slot, nameHash(ownResult, slot, id.Own.Hi, id.Own.Lo))
		d.push(own, n)
	case ClientID:
		if s == noRecord {
			s = d.newSession(slot, id)
		}
		q, gone := d.queue(s), uint16(0)
		if q.count >= MaxSessionResults {
			seq := d.sequence(q.head)
			gone = d.pop(&q, r)
			c := d.pool.edit(s)
			le.PutUint64(c[sessionWatermark:], max(seq, le.Uint64(c[sessionWatermark:])))
		}
		n = d.result(markedResult, slot, id.Session, id.Sequence, id.Content, answers, now)
		d.append(s, &q, n, id.Sequence)
		d.setQueue(s, q, gone)
		c := d.pool.edit(s)
		le.PutUint64(c[sessionHighest:], max(id.Sequence, le.Uint64(c[sessionHighest:])))
		le.PutUint64(c[sessionLast:], uint64(now))
	}
	return n
}

func (d *ids) newSession(slot uint16, id *ID) uint32 {
	s := d.pool.take()
	name(d.pool.edit(s), sessionRecord, 0, slot, id.Session, id.Acked) // the watermark's place is that of b
	d.enter(s, slot, nameHash(sessionRecord, slot, id.Session, 0))
	return s
}

// result makes the record of a result, in no queue and no index yet.
func (d *ids) result(kind recordKind, slot uint16, a, b, content uint64, answers []stored, now int64) uint32 {
	n := d.pool.take()
	c := d.pool.edit(n)
	name(c, kind, len(answers), slot, a, b)
	le.PutUint64(c[resultContent:], content)
	le.PutUint64(c[resultTime:], uint64(now))
	at, link := n, resultMore
	for i := range answers {
		if i > 0 {
			next := d.pool.take()
			le.PutUint32(d.pool.edit(at)[link:], next)
			at, link = next, recordNext
		}
		putStored(d.pool.edit(at)[resultAnswer:], &answers[i])
	}
	return n
}
