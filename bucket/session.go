package bucket

// fewResults is how many results of a session its record tells apart by marks, the low
// 16 bits of their sequences. Most sessions have no more in one slot; those results are
// in no index, which spares a take two places of memory that nothing else needs. With
// one more all its results go into the index, until none is left.
const fewResults = 16

func (d *ids) queue(session uint32) queue {
	c := d.pool.view(session)[sessionQueue:]
	return queue{head: le.Uint32(c), tail: le.Uint32(c[4:]), count: le.Uint32(c[8:])}
}

// setQueue writes a session's queue, from which so many results have gone.
func (d *ids) setQueue(session uint32, q queue, gone uint32) {
	c := d.pool.edit(session)
	le.PutUint32(c[sessionQueue:], q.head)
	le.PutUint32(c[sessionQueue+4:], q.tail)
	le.PutUint32(c[sessionQueue+8:], q.count)
	first := (uint32(le.Uint16(c[sessionFirst:])) + gone) % fewResults
	if q.count == 0 {
		first = 0
		le.PutUint16(c[sessionIndexed:], 0)
	}
	le.PutUint16(c[sessionFirst:], uint16(first))
}

// indexed says whether the results of a session are in the index, and not in its marks.
func indexed(session []byte) bool { return le.Uint16(session[sessionIndexed:]) != 0 }

// mark is where a session's record marks the result that is number i of its queue, from 0 on.
func mark(session []byte, i uint32) []byte {
	first := uint32(le.Uint16(session[sessionFirst:]))
	return session[sessionMarks+(first+i)%fewResults*2:][:2:2]
}

// stays says of a short queue that the result number i is, by its mark, above sequence w. It
// can be wrong where sequences are more than 2^15 apart; the sweep looks at the sequence itself.
func stays(session []byte, i uint32, w uint64) bool {
	return int16(le.Uint16(mark(session, i))-uint16(w)) > 0
}

// append makes n, a result of session s with that sequence, the newest of its queue q,
// which the caller writes.
func (d *ids) append(s uint32, q *queue, n uint32, sequence uint64) {
	c := d.pool.edit(s)
	if q.count == fewResults && !indexed(c) {
		for at := q.head; at != noRecord; at = le.Uint32(d.pool.view(at)[resultFollow:]) {
			d.enterResult(at)
		}
		le.PutUint16(c[sessionIndexed:], 1)
	}
	if indexed(c) {
		d.enterResult(n)
	} else {
		le.PutUint16(mark(c, q.count), uint16(sequence))
	}
	if q.count == 0 {
		le.PutUint64(c[sessionOldest:], le.Uint64(d.pool.view(n)[resultTime:]))
	}
	d.push(q, n)
}

// enterResult puts a client's result into the index.
func (d *ids) enterResult(n uint32) {
	c := d.pool.edit(n)
	slot := le.Uint16(c[recordSlot:])
	name(c, clientResult, answersOf(c), slot, le.Uint64(c[recordA:]), le.Uint64(c[recordB:]))
	d.enter(n, slot, recordHash(c))
}

// resultOf finds the result of session s in slot under a sequence, or noRecord.
func (d *ids) resultOf(s uint32, slot uint16, sequence uint64) uint32 {
	c := d.pool.view(s)
	if indexed(c) {
		return d.find(clientResult, slot, le.Uint64(c[recordA:]), sequence)
	}
	q := d.queue(s)
	for i := range q.count {
		if le.Uint16(mark(c, i)) != uint16(sequence) {
			continue
		}
		n := q.head
		for range i {
			n = le.Uint32(d.pool.view(n)[resultFollow:])
		}
		if d.sequence(n) == sequence {
			return n
		}
	}
	return noRecord
}
