package bucket

import "fmt"

// move obeys an entry that moves slots; stamp is its own, now the group time.
func (t *Table) move(kind entryKind, body []byte, stamp, now int64, out *Results) error {
	if kind == adoptEntry {
		return t.adoptEntry(body, stamp, now, out)
	}
	step, known := moveSteps[kind]
	if !known {
		return fmt.Errorf("%w: kind %d", ErrVersion, kind)
	}
	r := reader{b: body}
	moves := make([]Move, r.counted(r.uvarint(), 1<<16, moveBytes))
	for i := range moves {
		moves[i] = Move{Slot: r.u16(), Revision: r.u64()}
		if int(moves[i].Slot) >= len(t.slots) {
			return fmt.Errorf("%w: slot %d of %d", ErrMalformed, moves[i].Slot, len(t.slots))
		}
	}
	if r.bad || len(r.b) > 0 {
		return fmt.Errorf("%w: moves", ErrMalformed)
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	t.advance(now)
	for _, m := range moves {
		code := MoveRefused
		if m.Revision > 0 {
			code = step(&t.state, m)
		}
		t.moved(m.Slot, code, out)
	}
	t.clearRuins(clearPerEntry)
	return nil
}

// moved appends the result of one move.
func (t *Table) moved(slot uint16, code Code, out *Results) {
	out.Items = append(out.Items, Result{Code: code, First: int32(len(out.Answers)), SlotTime: t.Slot(slot).Time})
}

var moveSteps = map[entryKind]func(*state, Move) Code{
	sealEntry:   (*state).seal,
	unsealEntry: (*state).unseal,
	ownEntry:    (*state).own,
	forgetEntry: (*state).forget,
	dropEntry:   (*state).drop,
	birthEntry:  (*state).bear,
}

func (s *state) seal(m Move) Code {
	sl := &s.slots[m.Slot]
	switch {
	case sl.state == SlotSealed && m.Revision == sl.revision:
		return Moved
	case sl.state != SlotHeld || m.Revision <= sl.revision:
		return MoveRefused
	}
	sl.sealed = sl.time(s.time)
	sl.state, sl.revision = SlotSealed, m.Revision
	s.held--
	return Moved
}

// unseal also keeps a move that is over from sealing later.
func (s *state) unseal(m Move) Code {
	sl := &s.slots[m.Slot]
	switch {
	case sl.state == SlotHeld && m.Revision >= sl.revision:
		sl.revision = m.Revision
		return Moved
	case sl.state != SlotSealed || m.Revision != sl.revision:
		return MoveRefused
	}
	sl.state, sl.sealed, sl.export = SlotHeld, 0, nil
	s.held++
	return Moved
}

func (s *state) own(m Move) Code {
	sl := &s.slots[m.Slot]
	switch {
	case m.Revision != sl.revision:
		return MoveRefused
	case sl.state == SlotHeld:
		return Moved
	case sl.state != SlotComplete:
		return MoveRefused
	}
	// Not before: a copy that is only read has revisions of its own. (One that a backup is
	// read from owns its slots too; those of a cluster that is made of it are far above.)
	if sl.born == bornSalvaged {
		sl.outdo(m.Revision)
	}
	sl.state = SlotHeld
	s.held++
	return Moved
}

func (s *state) forget(m Move) Code {
	sl := &s.slots[m.Slot]
	switch {
	case m.Revision != sl.revision:
		return MoveRefused
	case sl.state == SlotAbsent:
		return Moved
	case sl.state != SlotSealed:
		return MoveRefused
	}
	s.vacate(m.Slot)
	return Moved
}

// drop also keeps what is still on its way from being adopted.
func (s *state) drop(m Move) Code {
	sl := &s.slots[m.Slot]
	if m.Revision < sl.revision {
		return MoveRefused
	}
	switch sl.state {
	case SlotAbsent:
	case SlotIncoming, SlotComplete:
		s.vacate(m.Slot)
	default:
		return MoveRefused
	}
	sl.revision, sl.pass, sl.next = m.Revision, 0, 0
	return Moved
}

func (s *state) bear(m Move) Code {
	sl := &s.slots[m.Slot]
	switch {
	case m.Revision < sl.revision:
		return MoveRefused
	case sl.state == SlotHeld && m.Revision == sl.revision:
		return Moved
	case sl.state == SlotHeld || sl.state == SlotSealed:
		return MoveRefused
	case sl.state != SlotAbsent:
		s.vacate(m.Slot)
	}
	sl.revision, sl.pass, sl.next = m.Revision, 0, 0
	if !s.vacant(m.Slot) {
		return MoveAgain
	}
	sl.state, sl.born, sl.offset = SlotHeld, bornEmpty, -s.time
	sl.outdo(m.Revision)
	s.held++
	return Moved
}

// outdo makes the tokens of permits to come greater than any before a birth of that
// revision, which are not known any more: revisions of the cluster grow, and fewer
// than 2^32 permits are granted between two of them.
func (s *slot) outdo(revision uint64) { s.grants = max(s.grants, revision<<32) }

// vacant clears a bounded part of what a slot that is not held still has, and
// reports whether it is as good as new.
func (s *state) vacant(slot uint16) bool {
	sl, ruin := &s.slots[slot], s.slots[slot].state == SlotAbsent && !s.empty(slot)
	if !s.empty(slot) && !s.clear(slot, clearPerChunk) {
		return false
	}
	if ruin {
		s.ruined--
	}
	sl.reset()
	return true
}
