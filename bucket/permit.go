package bucket

// A permit's record, little endian, found in the index by its slot and id:
//
//	0 next  4 tag  6 slot  8 id  16 fencing token  24 key 16  40 deadline  48 units  52 older  56 younger
const (
	permitToken    = 16
	permitKey      = 24
	permitDeadline = 40
	permitUnits    = 48
	permitOlder    = 52 // the one of this bucket that expires before it
	permitYounger  = 56
)

// permit is a permit's record, read.
type permit struct {
	deadline int64 // ns of slot time; it counts before it
	units    uint32
	older    uint32
	younger  uint32
}

func (d *ids) permit(n uint32) permit {
	c := d.pool.view(n)
	return permit{
		deadline: int64(le.Uint64(c[permitDeadline:])), units: le.Uint32(c[permitUnits:]),
		older: le.Uint32(c[permitOlder:]), younger: le.Uint32(c[permitYounger:]),
	}
}

// permitID is the id of the permit that was granted with a token: another for
// each token of a slot, and not 0, but not told by counting. (The steps of
// splitmix64, each of which can be undone.)
func permitID(slot uint16, token uint64) uint64 {
	h := token ^ uint64(slot)<<48
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// grant makes a permit with the slot's next fencing token, which it returns.
func (x *site) grant(units uint32, deadline int64) uint64 {
	sl := &x.s.slots[x.slot]
	sl.grants++
	if uint64(x.slot)<<48 == sl.grants {
		sl.grants++ // its id would be 0
	}
	x.permit(units, deadline, sl.grants)
	return sl.grants
}

// permit makes a permit with a token; 0 is that of permits of nobody.
func (x *site) permit(units uint32, deadline int64, token uint64) {
	d := &x.s.ids
	n := d.pool.take()
	c := d.pool.edit(n)
	id := permitID(x.slot, token)
	name(c, permitRecord, 0, x.slot, id, token)
	le.PutUint64(c[permitKey:], x.key.Hi)
	le.PutUint64(c[permitKey+8:], x.key.Lo)
	le.PutUint32(c[permitUnits:], units)
	d.enter(n, x.slot, nameHash(permitRecord, x.slot, id, 0))
	x.link(n, deadline)
	x.raw.a += units
}

// held is the record of the permit of x's bucket with that id, if it counts at now.
func (x *site) held(id uint64, now int64) uint32 {
	n := x.s.ids.find(permitRecord, x.slot, id, 0)
	if n == noRecord {
		return noRecord
	}
	c := x.s.ids.pool.view(n)
	if le.Uint64(c[permitToken:]) == 0 {
		return noRecord
	}
	if le.Uint64(c[permitKey:]) != x.key.Hi || le.Uint64(c[permitKey+8:]) != x.key.Lo || x.s.ids.permit(n).deadline <= now {
		return noRecord
	}
	return n
}

// link puts permit n where its deadline belongs. That is the end, unless the
// limit's window has become shorter a while ago.
func (x *site) link(n uint32, deadline int64) {
	d, e := &x.s.ids, ends(x.raw)
	older, younger := e.last, uint32(noRecord)
	for older != noRecord {
		p := d.permit(older)
		if p.deadline <= deadline {
			break
		}
		older, younger = p.older, older
	}
	c := d.pool.edit(n)
	le.PutUint64(c[permitDeadline:], uint64(deadline))
	x.join(older, n)
	x.join(n, younger)
}

// unlink takes permit n out of the list.
func (x *site) unlink(n uint32) {
	p := x.s.ids.permit(n)
	x.join(p.older, p.younger)
}

// join makes two permits neighbours; noRecord is the end of the list.
func (x *site) join(older, younger uint32) {
	p, e := &x.s.ids.pool, ends(x.raw)
	if older == noRecord {
		e.first = younger
	} else {
		le.PutUint32(p.edit(older)[permitYounger:], younger)
	}
	if younger == noRecord {
		e.last = older
	} else {
		le.PutUint32(p.edit(younger)[permitOlder:], older)
	}
	x.raw.last = e.pack()
}

// release ends permit n.
func (x *site) release(n uint32) {
	units := x.s.ids.permit(n).units
	x.unlink(n)
	x.raw.a -= min(units, x.raw.a)
	x.s.ids.free(n)
}

// expire drops the permits whose deadline has come.
func (x *site) expire(now int64) {
	for n := ends(x.raw).first; n != noRecord; n = ends(x.raw).first {
		if x.s.ids.permit(n).deadline > now {
			return
		}
		x.release(n)
	}
}
