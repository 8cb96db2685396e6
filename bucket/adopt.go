package bucket

import (
	"errors"
	"fmt"
	"math"
)

// adoptEntry obeys an adopt entry.
func (t *Table) adoptEntry(body []byte, stamp, now int64, out *Results) error {
	r := reader{b: body}
	m := Move{Slot: r.u16(), Revision: r.u64()}
	slotTime := int64(r.u64())
	if r.bad || int(m.Slot) >= len(t.slots) {
		return fmt.Errorf("%w: adopt", ErrMalformed)
	}
	info, err := ParseChunk(r.b)
	if errors.Is(err, ErrVersion) {
		return err
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	t.advance(now)
	code := MoveRefused
	if err == nil && info.Slot == m.Slot && m.Revision > 0 {
		code = t.adopt(m, &info, r.b, clockAt{slot: slotTime, group: stamp})
	}
	t.moved(m.Slot, code, out)
	t.clearRuins(clearPerEntry)
	return nil
}

// clockAt is a slot time that belongs to a group time.
type clockAt struct{ slot, group int64 }

// adopt takes over one sound chunk, if it is the one that is expected.
func (s *state) adopt(m Move, info *ChunkInfo, chunk []byte, at clockAt) Code {
	sl := &s.slots[m.Slot]
	switch sl.expects(m, info) {
	case Moved:
		return Moved
	case MoveRefused:
		return MoveRefused
	}
	if info.Number == 0 {
		if sl.state == SlotAbsent && !s.empty(m.Slot) {
			s.ruined--
		}
		sl.state, sl.revision, sl.pass, sl.next = SlotIncoming, m.Revision, info.Pass, 0
	}
	if info.First && !s.vacant(m.Slot) {
		return MoveAgain
	}
	sl.next++
	if info.Last {
		s.complete(sl, info, at)
	}
	a := adopter{s: s, slot: m.Slot, info: info}
	_ = walkChunk(chunk, a.item) // verified above
	return Moved
}

// expects says of a chunk that it is Moved, was adopted before; MoveRefused; or
// MoveAgain, to be adopted now.
func (s *slot) expects(m Move, info *ChunkInfo) Code {
	arriving := s.state == SlotIncoming || s.state == SlotComplete
	switch {
	case !arriving && s.state != SlotAbsent, m.Revision < s.revision:
		return MoveRefused
	case !arriving && m.Revision == s.revision:
		return MoveRefused // dropped, or forgotten
	case !arriving || m.Revision > s.revision || info.Pass > s.pass:
		if info.Number > 0 {
			return MoveRefused
		}
		return MoveAgain
	case info.Pass < s.pass || info.Number > s.next:
		return MoveRefused
	case info.Number < s.next:
		return Moved
	case s.state == SlotComplete:
		return MoveRefused
	}
	return MoveAgain
}

// complete lets slot time run on from at.
func (s *state) complete(sl *slot, info *ChunkInfo, at clockAt) {
	passed := int64(min(uint64(s.time)-uint64(at.group), math.MaxInt64)) // the stamp may have been before the table's time
	now := max(shift(at.slot, passed), info.SlotTime)
	sl.state, sl.offset, sl.since = SlotComplete, now-s.time, info.SlotTime
	if info.Salvage {
		sl.born, sl.birth = bornSalvaged, now
	}
	if info.Restore {
		sl.outdo(sl.revision)
	}
}

// adopter takes over the items of one chunk.
type adopter struct {
	s       *state
	slot    uint16
	info    *ChunkInfo
	refs    []uint32 // by a rule's number in the chunk
	session uint32   // record of the session that is named last
	stored  []stored
}

func (a *adopter) item(it *item) {
	for len(a.refs) < len(it.rules) {
		a.refs = append(a.refs, a.s.rules.admit(it.rules[len(a.refs)]))
	}
	switch it.kind {
	case cellItem:
		a.cell(it.key, a.refs[it.rule], it.level)
	case listItem:
		a.list(it)
	case goneItem:
		a.gone(it.key)
	case sessionItem:
		a.openSession(it)
	case resultItem:
		a.result(it)
	case thawItem:
		a.thaw(a.refs[it.rule], it.left)
	case endItem:
		a.end(it)
	}
}

func (a *adopter) sl() *slot { return &a.s.slots[a.slot] }

// open finds the cell of a key and frees its list.
func (a *adopter) open(key Key) (g *segment, off int, found bool) {
	if g = a.sl().segment(key); g == nil {
		return nil, 0, false
	}
	if off, found = g.find(key); !found {
		return nil, 0, false
	}
	x := &a.s.bench.site
	*x = site{s: a.s, key: key, slot: a.slot, commit: true}
	var ref uint32
	x.raw, ref = g.read(off)
	a.s.rules.version(ref).Limit.kind().free(x)
	return g, off, true
}

// cell makes the cell of a key hold l.
func (a *adopter) cell(key Key, ref uint32, l level) {
	g, off, found := a.open(key)
	if !found {
		a.sl().insert(key, l, ref)
		a.s.entered(a.slot, key, ref)
		return
	}
	_, was := g.read(off)
	a.s.rules.name(ref)
	a.s.rules.unname(was)
	g.write(off, key, l, ref)
}

func (a *adopter) gone(key Key) {
	g, off, found := a.open(key)
	if !found {
		return
	}
	_, ref := g.read(off)
	g.remove(off)
	a.s.left(a.slot, key, ref)
}
