package bucket

// fewResults is how many results of a session its record tells apart by marks, the low
// 16 bits of their sequences. Most sessions have no more in one slot. These are in no
// index, which spares a take two places of memory that nothing else needs; further ones
// are. No marked result has more than twice as many before it in its queue.
const fewResults = 16

func (d *ids) queue(session uint32) queue {
	c := d.pool.view(session)[sessionQueue:]
	return queue{head: le.Uint32(c), tail: le.Uint32(c[4:]), count: le.Uint32(c[8:])}
}

// setQueue writes a session's queue, from which so many marked results have gone.
func (d *ids) setQueue(session uint32, q queue, gone uint16) {
	c := d.pool.edit(session)
	le.PutUint32(c[sessionQueue:], q.head)
	le.PutUint32(c[sessionQueue+4:], q.tail)
	le.PutUint32(c[sessionQueue+8:], q.count)
	if gone > 0 {
		le.PutUint16(c[sessionFirst:], (le.Uint16(c[sessionFirst:])+gone)%fewResults)
		le.PutUint16(c[sessionMarked:], marked(c)-gone)
	}
}

// marked is the number of marks in a session's record, of its oldest results that are
// not in the index.
func marked(session []byte) uint16 { return le.Uint16(session[sessionMarked:]) }

// mark is the place of mark i of a session, from the oldest on.
func mark(session []byte, i uint16) []byte {
	return session[sessionMarks+(le.Uint16(session[sessionFirst:])+i)%fewResults*2:][:2:2]
}

// frees says whether acked lets go of results of a session, without a look at them: by
// the oldest mark. A no that is wrong, where sequences are more than 2^15 apart or the
// oldest result has no mark, does no harm: the watermark hides what stays.
func frees(session []byte, acked uint64) bool {
	if acked <= le.Uint64(session[sessionWatermark:]) || le.Uint32(session[sessionQueue:]) == noRecord {
		return false
	}
	return marked(session) == 0 || int16(le.Uint16(mark(session, 0))-uint16(acked)) <= 0
}

// append makes n, a result of session s with that sequence, the newest of its queue q,
// which the caller writes.
func (d *ids) append(s uint32, q *queue, n uint32, sequence uint64) {
	c := d.pool.edit(s)
	if few := marked(c); few < fewResults && q.count <= uint32(few)+fewResults {
		le.PutUint16(mark(c, few), uint16(sequence))
		le.PutUint16(c[sessionMarked:], few+1)
	} else {
		r := d.pool.edit(n)
		slot, session := le.Uint16(r[recordSlot:]), le.Uint64(r[recordA:])
		name(r, clientResult, answersOf(r), slot, session, sequence)
		d.enter(n, slot, nameHash(clientResult, slot, session, sequence))
	}
	if q.count == 0 {
		le.PutUint64(c[sessionOldest:], le.Uint64(d.pool.view(n)[resultTime:]))
	}
	d.push(q, n)
}

// resultOf finds the result of session s in slot under a sequence, or noRecord.
func (d *ids) resultOf(s uint32, slot uint16, sequence uint64) uint32 {
	c := d.pool.view(s)
	few := marked(c)
	for i := range few {
		if le.Uint16(mark(c, i)) == uint16(sequence) {
			if n := d.amongMarked(s, few, sequence); n != noRecord {
				return n
			}
			break
		}
	}
	if d.queue(s).count == uint32(few) {
		return noRecord
	}
	return d.find(clientResult, slot, le.Uint64(c[recordA:]), sequence)
}

// amongMarked looks for a sequence among the few results of session s that have marks.
func (d *ids) amongMarked(s uint32, few uint16, sequence uint64) uint32 {
	for n := d.queue(s).head; n != noRecord && few > 0; {
		c := d.pool.view(n)
		if kindOf(c) == markedResult {
			if le.Uint64(c[recordB:]) == sequence {
				return n
			}
			few--
		}
		n = le.Uint32(c[resultFollow:])
	}
	return noRecord
}
