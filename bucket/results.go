package bucket

// stored is what is kept of one answer of an admitted request; the rest follows
// from its being admitted and from the rule.
type stored struct {
	rule      uint32
	remaining uint32
	reset     int64
}

// keep stores the answers of an admitted request under id, at now; s is the
// record of the id's session, or noRecord.
func (d *ids) keep(slot uint16, own *queue, id *ID, s uint32, answers []stored, now int64) {
	switch id.Kind {
	case OwnID:
		d.push(own, d.result(ownResult, slot, id.Own.Hi, id.Own.Lo, id.Content, answers, now))
	case ClientID:
		if s == noRecord {
			s = d.newSession(slot, id)
		}
		q := d.queue(s)
		if q.count >= MaxSessionResults {
			seq := d.sequence(q.head)
			d.pop(&q)
			c := d.pool.edit(s)
			le.PutUint64(c[sessionWatermark:], max(seq, le.Uint64(c[sessionWatermark:])))
		}
		d.push(&q, d.result(clientResult, slot, id.Session, id.Sequence, id.Content, answers, now))
		d.setQueue(s, q)
		c := d.pool.edit(s)
		le.PutUint64(c[sessionHighest:], max(id.Sequence, le.Uint64(c[sessionHighest:])))
		le.PutUint64(c[sessionLast:], uint64(now))
	}
}

func (d *ids) newSession(slot uint16, id *ID) uint32 {
	s := d.pool.take()
	name(d.pool.edit(s), sessionRecord, 0, slot, id.Session, id.Acked) // the watermark's place is that of b
	d.index.add(&d.pool, s, nameHash(sessionRecord, slot, id.Session, 0))
	return s
}

// result makes the record of a result, in no queue yet.
func (d *ids) result(kind recordKind, slot uint16, a, b, content uint64, answers []stored, now int64) uint32 {
	n := d.pool.take()
	c := d.pool.edit(n)
	name(c, kind, len(answers), slot, a, b)
	le.PutUint64(c[resultContent:], content)
	le.PutUint64(c[resultTime:], uint64(now))
	more, off := n, resultAnswer
	for i := range answers {
		if off == recordSize {
			next := d.pool.take()
			link := recordNext
			if more == n {
				link = resultMore
			}
			le.PutUint32(d.pool.edit(more)[link:], next)
			more, off = next, moreAnswer
		}
		putStored(d.pool.edit(more)[off:], answers[i])
		off += answerSize
	}
	d.index.add(&d.pool, n, nameHash(kind, slot, a, b))
	return n
}

// recall appends the answers of result n to dst.
func (d *ids) recall(n uint32, dst []stored) []stored {
	c := d.pool.view(n)
	off, link := resultAnswer, resultMore
	for range answersOf(c) {
		if off == recordSize {
			c = d.pool.view(le.Uint32(c[link:]))
			off, link = moreAnswer, recordNext
		}
		dst = append(dst, getStored(c[off:]))
		off += answerSize
	}
	return dst
}

func putStored(c []byte, a stored) {
	le.PutUint64(c, uint64(a.reset))
	le.PutUint32(c[8:], a.remaining)
	le.PutUint32(c[12:], a.rule)
}

func getStored(c []byte) stored {
	return stored{reset: int64(le.Uint64(c)), remaining: le.Uint32(c[8:]), rule: le.Uint32(c[12:])}
}
