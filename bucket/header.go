package bucket

import (
	"errors"
	"fmt"
)

// The header of a dump, little endian:
//
//	slots 4 · time 8 · index 8 · chain 8 · cursor 4 × 6
//	rules 4, each: policy 8 · version 8 · algorithm 1, 0: a free number · amount 4 · burst 4 · window 8 · loss 1 ·
//	               began 8 · thaw 8 · idle 8 · next 4 · aside 1
//	pages of records 4, each: used 2 · free 2 · next 2
//	chains of the index 4 · records in them 4
//	slots, each: state 1 · born 1 · next chunk 4 · own ids: head 4, tail 4, count 4 · grants 8 · revision 8 · pass 8 ·
//	             offset 8 · since 8 · birth 8 · sealed 8 · 1 + bits of dir, 0: none 1 ·
//	             segments until dir is full, each: depth 1 · cells 4 · count 4

// ErrDump is returned by Restore for a dump that is cut off, damaged, of another
// version, or of another number of slots.
var ErrDump = errors.New("bucket: unusable dump")

const (
	ruleBytes = 63 // 8+8+1+4+4+8+1 of the rule, 8+8+8+4+1
	pageBytes = 6
	slotBytes = 75

	maxRestoredCells = 1 << 26 // of one segment: 2.4 GB
)

func (s *state) header() []byte {
	b := le.AppendUint32(nil, uint32(len(s.slots)))
	b = le.AppendUint64(b, uint64(s.time))
	b = le.AppendUint64(b, s.index)
	b = le.AppendUint64(b, s.chain)
	for _, n := range []uint32{s.cursor.slot, s.cursor.prefix, s.cursor.cell, s.cursor.record, s.cursor.rule, s.cursor.ruin} {
		b = le.AppendUint32(b, n)
	}
	b = le.AppendUint32(b, uint32(len(s.rules.list)))
	for i := range s.rules.list {
		b = s.rules.list[i].header(b)
	}
	b = le.AppendUint32(b, uint32(len(s.ids.pool.pages)))
	for _, g := range s.ids.pool.pages {
		b = le.AppendUint16(b, g.used)
		b = le.AppendUint16(b, g.free)
		b = le.AppendUint16(b, g.next)
	}
	b = le.AppendUint32(b, s.ids.index.n)
	b = le.AppendUint32(b, s.ids.index.count)
	for i := range s.slots {
		b = s.slots[i].header(b)
	}
	return b
}

func (v *version) header(b []byte) []byte {
	b = le.AppendUint64(b, v.Policy)
	b = le.AppendUint64(b, v.Version)
	b = append(b, byte(v.Limit.Algorithm))
	b = le.AppendUint32(b, uint32(v.Limit.Amount))
	b = le.AppendUint32(b, uint32(v.Limit.Burst))
	b = le.AppendUint64(b, uint64(v.Limit.Window))
	b = append(b, byte(v.Loss))
	b = le.AppendUint64(b, uint64(v.began))
	b = le.AppendUint64(b, uint64(v.thaw))
	b = le.AppendUint64(b, uint64(v.idle))
	b = le.AppendUint32(b, v.next)
	return append(b, flag(v.aside))
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// header appends what a dump's header says of a slot.
func (s *slot) header(b []byte) []byte {
	b = append(b, byte(s.state), byte(s.born))
	for _, n := range [...]uint32{s.next, s.own.head, s.own.tail, s.own.count} {
		b = le.AppendUint32(b, n)
	}
	for _, n := range [...]uint64{s.grants, s.revision, s.pass, uint64(s.offset), uint64(s.since), uint64(s.birth), uint64(s.sealed)} {
		b = le.AppendUint64(b, n)
	}
	if len(s.dir) == 0 {
		return append(b, 0)
	}
	b = append(b, byte(1+s.bits()))
	s.segments(func(_ int, g *segment) {
		b = append(b, g.depth)
		b = le.AppendUint32(b, g.cells)
		b = le.AppendUint32(b, g.count)
	})
	return b
}

// parseHeader makes a state from a header, its blocks still without bytes.
func parseHeader(b []byte, slots int) (*state, error) {
	r := &reader{b: b}
	if n := int(r.u32()); n != slots {
		return nil, fmt.Errorf("%w: of %d slots, the table has %d", ErrDump, n, slots)
	}
	s := &state{slots: make([]slot, slots)}
	s.time, s.index, s.chain = int64(r.u64()), r.u64(), r.u64()
	s.cursor = cursor{slot: r.u32(), prefix: r.u32(), cell: r.u32(), record: r.u32(), rule: r.u32(), ruin: r.u32()}
	list := make([]version, r.counted(uint64(r.u32()), len(b), ruleBytes))
	for i := range list {
		list[i].parse(r)
	}
	s.rules = newRules(list)
	s.rules.now = s.time
	s.ids.named = make([]uint32, slots)
	s.ids.parse(r)
	for i := range s.slots {
		s.slots[i].parse(r)
		s.buckets += s.slots[i].count
		if s.slots[i].state == SlotHeld {
			s.held++
		}
	}
	if r.bad || len(r.b) > 0 || int(s.cursor.slot) >= slots || s.cursor.prefix >= 1<<maxDepth || !s.rules.sound() || s.time < 0 {
		return nil, fmt.Errorf("%w: its header makes no sense", ErrDump)
	}
	return s, nil
}

func (v *version) parse(r *reader) {
	v.Rule = Rule{Policy: r.u64(), Version: r.u64(), Limit: Limit{
		Algorithm: Algorithm(r.u8()), Amount: uint64(r.u32()), Burst: uint64(r.u32()), Window: int64(r.u64()),
	}, Loss: Loss(r.u8())}
	v.began, v.thaw, v.idle = int64(r.u64()), int64(r.u64()), int64(r.u64())
	v.next, v.aside = r.u32(), r.u8() != 0
	if v.used() {
		r.bad = r.bad || !v.Limit.Algorithm.known() || !v.Loss.known() || v.Limit.clamped() != v.Limit
	} else {
		r.bad = r.bad || *v != version{}
	}
}

// sound says whether each policy has one newest version, and each chain only
// newer ones.
func (r *rules) sound() bool {
	seen := 0
	for i := range r.list {
		v := &r.list[i]
		switch {
		case !v.used():
			continue
		case v.aside && v.next != 0 || int(v.next) > len(r.list):
			return false
		case v.next != 0:
			if n := &r.list[v.next-1]; !n.used() || n.aside || n.Policy != v.Policy || n.Version <= v.Version || n.began < v.began {
				return false
			}
			seen++
		case v.aside || r.newest[v.Policy] == uint32(i+1):
			seen++
		}
	}
	return seen == r.live && (len(r.list) == 0 || r.list[len(r.list)-1].used())
}

func (d *ids) parse(r *reader) {
	d.pool.pages = make([]*page, r.counted(uint64(r.u32()), len(r.b), pageBytes))
	for i := range d.pool.pages {
		g := &page{used: r.u16(), free: r.u16(), next: r.u16()}
		r.bad = r.bad || max(g.used, g.free, g.next) > pageRecords
		d.pool.pages[i] = g
		d.pool.used += int(g.used)
	}
	d.index.n, d.index.count = r.u32(), r.u32()
	if d.index.n < minHeads || int64(d.index.n) > int64(minHeads)+4*int64(len(d.pool.pages))*pageRecords {
		r.bad = true
		return
	}
	d.index.heads = make([]*block, (d.index.n-1)>>headsPageLog+1)
	for i := range d.index.heads {
		d.index.heads[i] = &block{}
	}
}

func (s *slot) parse(r *reader) {
	s.state, s.born, s.next = SlotState(r.u8()), born(r.u8()), r.u32()
	s.own = queue{head: r.u32(), tail: r.u32(), count: r.u32()}
	s.grants, s.revision, s.pass = r.u64(), r.u64(), r.u64()
	s.offset, s.since, s.birth, s.sealed = int64(r.u64()), int64(r.u64()), int64(r.u64()), int64(r.u64())
	r.bad = r.bad || s.state > SlotComplete || s.born > bornSalvaged || min(s.since, s.birth, s.sealed) < 0
	bits := int(r.u8()) - 1
	if bits < 0 || bits > maxDepth || r.bad {
		r.bad = r.bad || bits > maxDepth
		return
	}
	s.dir = make([]*segment, 1<<bits)
	for i := 0; i < len(s.dir) && !r.bad; {
		g := &segment{depth: r.u8(), cells: r.u32(), count: r.u32()}
		n := len(s.dir) >> g.depth
		if n == 0 || i%n != 0 || g.cells < minCells || g.cells > maxRestoredCells || g.count >= g.cells {
			r.bad = true
			return
		}
		for j := range n {
			s.dir[i+j] = g
		}
		s.count += int(g.count)
		i += n
	}
}
