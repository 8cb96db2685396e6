package bucket

import "math"

// final writes what comes next after the copy, and says whether it can go on at
// once; not if there is no room, enough was looked at, or all is done.
func (e *Export) final() bool {
	switch e.stage {
	case cellStage:
		if !e.scan(true) || !e.changedCells() {
			return false
		}
		if e.cuts == e.t.rules.cuts {
			e.stage, e.record = ownStage, e.sl().own.head
		}
		return true
	case ownStage:
		if e.record = e.results(e.record, 0); e.record != noRecord {
			return false
		}
		e.stage = sessionStage
		return true
	case sessionStage:
		return e.sessions()
	case thawStage:
		return e.end()
	}
	return false
}

// changedCells writes the cells that changed behind the copy; false: there is no room.
func (e *Export) changedCells() bool {
	for ; len(e.order) > 0; e.order = e.order[1:] {
		delete(e.changes, e.order[0])
		if !e.changedCell(e.order[0], true) {
			return false
		}
	}
	return true
}

// changedCell writes the cell of a key as it is now; false: there is no room.
func (e *Export) changedCell(key Key, sealed bool) bool {
	if g := e.sl().segment(key); g != nil {
		if off, found := g.find(key); found {
			raw, ref := g.read(off)
			return e.cell(key, raw, ref, sealed)
		}
	}
	if !e.w.room(1 + 16) {
		return false
	}
	e.w.gone(key)
	return true
}

// resend goes on with the round that sends again what changed, or begins one if
// that is worth it, and says whether none is left to do. What changes meanwhile is
// for the next round.
func (e *Export) resend() (done bool) {
	if len(e.again) == 0 {
		n := len(e.order)
		if e.whole || n <= fewChanges || e.rounds == maxRounds || e.rounds > 0 && n > e.last/4*3 {
			return true // also where it changes as fast as it is sent
		}
		e.rounds++
		e.again, e.order, e.changes, e.last = e.order, nil, map[Key]struct{}{}, n
	}
	for ; len(e.again) > 0; e.again = e.again[1:] {
		if !e.changedCell(e.again[0], false) {
			break
		}
	}
	return false
}

// results writes results from record n on, and returns the one that there was no
// room for; for the first sure ones there is.
func (e *Export) results(n uint32, sure int) uint32 {
	d := &e.t.ids
	for ; n != noRecord; n = le.Uint32(d.pool.view(n)[resultFollow:]) {
		e.stored = d.recall(n, e.stored[:0])
		if sure--; sure < 0 && !e.w.room(resultMost+answerMost*len(e.stored)) {
			return n
		}
		e.w.result(d, n, e.stored, &e.t.rules)
	}
	return noRecord
}

// sessions looks for the slot's sessions in the whole pool, where they stand
// still while the slot is sealed, and writes each with its results.
func (e *Export) sessions() bool {
	d := &e.t.ids
	if d.named[e.slot] == e.sl().own.count {
		e.record = uint32(len(d.pool.pages) * pageRecords) // there is none
	}
	for ; int(e.record) < len(d.pool.pages)*pageRecords; e.record++ {
		if e.looks--; e.looks < 0 {
			return false
		}
		n := e.record + 1
		c := d.pool.view(n)
		if kindOf(c) != sessionRecord || le.Uint16(c[recordSlot:]) != e.slot {
			continue
		}
		if !e.w.room(sessionMost + resultMost + answerMost*MaxRequestTakes) {
			return false
		}
		e.w.session(le.Uint64(c[recordA:]), le.Uint64(c[sessionWatermark:]), le.Uint64(c[sessionHighest:]), le.Uint64(c[sessionLast:]))
		if e.queue == noRecord {
			e.queue = d.queue(n).head
		}
		if e.queue = e.results(e.queue, 1); e.queue != noRecord {
			return false
		}
	}
	e.stage = thawStage
	return true
}

// end writes the thaws and what closes the last chunk.
func (e *Export) end() bool {
	for r := range e.thaws {
		u := use{Rule: r}
		if e.t.rules.stand(&u); u.ref == 0 {
			continue
		}
		if at := shift(e.t.rules.version(u.ref).thaw, e.sl().offset); at > e.t.slotTime(e.slot) {
			e.late = append(e.late, r)
		}
	}
	clear(e.thaws)
	for len(e.late) > exactThaws && e.w.room(thawMost) {
		e.thaw()
	}
	if !e.w.room(exactThaws*thawMost + endMost) {
		return false
	}
	for len(e.late) > 0 {
		e.thaw()
	}
	e.w.end(e.sl())
	e.stage = doneStage
	return false
}

// thaw writes the thaw of one rule.
func (e *Export) thaw() {
	u := use{Rule: e.late[0]}
	e.late = e.late[1:]
	if e.t.rules.stand(&u); u.ref == 0 {
		return
	}
	left, at := int64(math.MaxInt64), shift(e.t.rules.version(u.ref).thaw, e.sl().offset)
	if at < math.MaxInt64 {
		left = max(at-e.t.slotTime(e.slot), 0)
	}
	e.w.thaw(&u.Rule, left)
}
