package bucket

// Bounds of what is kept of request ids.
const (
	// MaxSessionResults is how many unacknowledged results a slot keeps of one
	// session; with more the oldest is evicted, and ids up to it are TooOld.
	MaxSessionResults = 4096
	// MaxOwnResults is how many results a slot keeps under callers' own ids;
	// with more, requests with a new own id answer StoreFull until some expire.
	MaxOwnResults = 65_536

	// sessionIdle is when a session without a new result is forgotten. The
	// second horizon is for copies that were long on their way: their age was
	// written when they were sent.
	sessionIdle = 2 * Horizon

	expireAtOnce = 64 // own results dropped in one step
)

// ids keeps the results of admitted requests, so that each id is charged once.
//
// Results of a session form a queue in order of admission, as do those under
// own ids in one slot. All that expires, is acknowledged or is evicted leaves at
// the head. A result that leaves a session's queue raises its watermark: at or
// below it, ids are TooOld. Whether a thing has expired is decided by its times
// alone, so that when it is dropped cannot be observed.
type ids struct {
	pool  pool
	index index
	named []uint32 // by slot: its records in the index; no part of a dump
}

// queue is a list of results, oldest first, linked by resultFollow.
type queue struct{ head, tail, count uint32 }

// expired says whether something of time then is over at now after ns.
func expired(then, now, ns int64) bool {
	return now > then && uint64(now)-uint64(then) > uint64(ns)
}

func (d *ids) time(result uint32) int64 {
	return int64(le.Uint64(d.pool.view(result)[resultTime:]))
}

func (d *ids) sequence(result uint32) uint64 {
	return le.Uint64(d.pool.view(result)[recordB:])
}

// sessionOf is the record of id's session in slot, if there is one; ahead is
// where it was seen a moment ago, or noRecord.
func (d *ids) sessionOf(slot uint16, id *ID, ahead uint32) uint32 {
	if id.Kind != ClientID {
		return noRecord
	}
	if ahead != noRecord && d.pool.has(ahead) && named(d.pool.view(ahead), sessionRecord, slot, id.Session, 0) {
		return ahead
	}
	return d.find(sessionRecord, slot, id.Session, 0)
}

// standing says what id, of session s, is at now: TooOld, IDReused, Repeated
// with the result's record, or Denied for an id that has to be judged. Only a
// take tells its content. It changes nothing.
func (d *ids) standing(slot uint16, id *ID, s uint32, op Op, now int64) (Code, uint32) {
	if id.Kind == NoID {
		return Denied, noRecord
	}
	if id.AgeNanos > Horizon {
		return TooOld, noRecord
	}
	n := uint32(noRecord)
	if id.Kind == OwnID {
		n = d.find(ownResult, slot, id.Own.Hi, id.Own.Lo)
		if n != noRecord && expired(d.time(n), now, Horizon) {
			n = noRecord
		}
	} else {
		w, highest := d.watermark(s, id.Acked, now)
		if id.Sequence <= w {
			return TooOld, noRecord
		}
		if id.Sequence <= highest {
			n = d.resultOf(s, slot, id.Sequence)
		}
	}
	switch {
	case n == noRecord:
		return Denied, noRecord
	case op.takes() && le.Uint64(d.pool.view(n)[resultContent:]) != id.Content && answersOf(d.pool.view(n)) > 0:
		return IDReused, noRecord
	}
	return Repeated, n
}

// watermark is the sequence up to which ids of session s are TooOld at now, and
// the highest one that was admitted.
func (d *ids) watermark(s uint32, acked uint64, now int64) (w, highest uint64) {
	if s == noRecord {
		return acked, 0
	}
	c := d.pool.view(s)
	if expired(int64(le.Uint64(c[sessionLast:])), now, sessionIdle) {
		return acked, 0
	}
	w = max(acked, le.Uint64(c[sessionWatermark:]))
	if !expired(int64(le.Uint64(c[sessionOldest:])), now, Horizon) {
		return w, le.Uint64(c[sessionHighest:])
	}
	for n := d.queue(s).head; n != noRecord && expired(d.time(n), now, Horizon); {
		w = max(w, d.sequence(n))
		n = le.Uint32(d.pool.view(n)[resultFollow:])
	}
	return w, le.Uint64(c[sessionHighest:])
}

// roomFor says whether a result under id can be kept at now.
func (d *ids) roomFor(own *queue, id *ID, now int64) bool {
	return id.Kind != OwnID || own.count < MaxOwnResults || expired(d.time(own.head), now, Horizon)
}

// acknowledge obeys id.Acked and drops what has expired of the id's session s,
// or of the slot's own ids. It returns s, or noRecord if s itself was dropped.
func (d *ids) acknowledge(s uint32, own *queue, id *ID, r *rules, now int64) uint32 {
	if id.Kind == OwnID {
		d.expireOwn(own, r, now)
	}
	if s == noRecord {
		return s
	}
	c := d.pool.view(s)
	if expired(int64(le.Uint64(c[sessionLast:])), now, Horizon) || expired(int64(le.Uint64(c[sessionOldest:])), now, Horizon) || frees(c, id.Acked) {
		if !d.settle(s, id.Acked, r, now) {
			return noRecord
		}
		return s
	}
	if id.Acked > le.Uint64(c[sessionWatermark:]) {
		le.PutUint64(d.pool.edit(s)[sessionWatermark:], id.Acked)
	}
	return s
}

// settle drops what has expired of session s or is acknowledged by acked, and
// the session itself once it is idle. It reports whether the session is left.
func (d *ids) settle(s uint32, acked uint64, r *rules, now int64) bool {
	c := d.pool.view(s)
	q := d.queue(s)
	oldest, gone, some := le.Uint64(c[sessionOldest:]), uint16(0), false
	w := max(acked, le.Uint64(c[sessionWatermark:]))
	for q.head != noRecord {
		seq, at := d.sequence(q.head), d.time(q.head)
		oldest = uint64(at)
		if seq > w && !expired(at, now, Horizon) {
			break
		}
		w = max(w, seq)
		gone += d.pop(&q, r)
		some = true
	}
	if q.count == 0 && expired(int64(le.Uint64(c[sessionLast:])), now, sessionIdle) {
		d.free(s)
		return false
	}
	if w > le.Uint64(c[sessionWatermark:]) || some {
		c := d.pool.edit(s)
		le.PutUint64(c[sessionWatermark:], w)
		le.PutUint64(c[sessionOldest:], oldest)
		d.setQueue(s, q, gone)
	}
	return true
}

// expireOwn drops some of what has expired of a slot's own ids: at least one, if any has.
func (d *ids) expireOwn(own *queue, r *rules, now int64) {
	for range expireAtOnce {
		if own.head == noRecord || !expired(d.time(own.head), now, Horizon) {
			return
		}
		d.pop(own, r)
	}
}

// pop drops the oldest result of q; its answers name their rules no longer. It returns 1
// for a result that has a mark, else 0.
func (d *ids) pop(q *queue, r *rules) (marked uint16) {
	n := q.head
	c := d.pool.view(n)
	q.head = le.Uint32(c[resultFollow:])
	q.count--
	if q.head == noRecord {
		q.tail = noRecord
	}
	at := d.answers(n)
	for i := range answersOf(c) {
		if last := at.n; i > 0 {
			at.next()
			if last != n {
				d.pool.give(last)
			}
		}
		r.unname(le.Uint32(at.view()[answerRule:]))
	}
	if at.n != n {
		d.pool.give(at.n)
	}
	if kindOf(d.pool.view(n)) == markedResult {
		d.pool.give(n)
		return 1
	}
	d.free(n)
	return 0
}

// push appends result n to q.
func (d *ids) push(q *queue, n uint32) {
	if q.tail == noRecord {
		q.head = n
	} else {
		le.PutUint32(d.pool.edit(q.tail)[resultFollow:], n)
	}
	q.tail = n
	q.count++
}
