package bucket

// A record of a sliding log, little endian, holds up to 7 entries:
//
//	0 next  4 tag, plainRecord  6 first entry  7 end of entries  8 —  12 entries, each: time 8 · cost 4
const (
	logFirst     = 6
	logEnd       = 7
	logEntries   = 12
	logEntry     = 12
	logPerRecord = (recordSize - logEntries) / logEntry
)

// listEnds is the first and the last record of a list, noRecord if it is empty.
type listEnds struct{ first, last uint32 }

func ends(l level) listEnds {
	return listEnds{first: uint32(uint64(l.last)), last: uint32(uint64(l.last) >> 32)}
}

func (e listEnds) pack() int64 { return int64(uint64(e.first) | uint64(e.last)<<32) }

// logPlace is an entry of a log, or the end behind the last one.
type logPlace struct {
	s      *state
	c      []byte
	record uint32
	i      int
}

// log is the place of x's oldest entry.
func (x *site) log() logPlace { return logPlace{s: x.s, record: ends(x.raw).first}.start() }

// newest is the place of x's youngest entry; there must be one.
func (x *site) newest() logPlace {
	p := logPlace{s: x.s, record: ends(x.raw).last}.start()
	p.i = int(p.c[logEnd]) - 1
	return p
}

func (p logPlace) start() logPlace {
	if p.record != noRecord {
		p.c = p.s.ids.pool.view(p.record)
		p.i = int(p.c[logFirst])
	}
	return p
}

func (p logPlace) ok() bool { return p.record != noRecord }

func (p logPlace) time() int64 { return int64(le.Uint64(p.c[logEntries+p.i*logEntry:])) }

func (p logPlace) cost() uint32 { return le.Uint32(p.c[logEntries+p.i*logEntry+8:]) }

func (p logPlace) setCost(n uint32) {
	le.PutUint32(p.s.ids.pool.edit(p.record)[logEntries+p.i*logEntry+8:], n)
}

func (p *logPlace) next() {
	if p.i++; p.i == int(p.c[logEnd]) {
		p.record = le.Uint32(p.c[recordNext:])
		*p = p.start()
	}
}

// prune drops the entries that are out.
func (x *site) prune(l *Limit, now int64) {
	e := ends(x.raw)
	for e.first != noRecord {
		at := logPlace{s: x.s, record: e.first}.start()
		i, end := at.i, int(at.c[logEnd])
		for ; at.i < end && x.out(l, at.time(), now); at.i++ {
			x.raw.a -= min(at.cost(), x.raw.a)
			x.raw.b--
		}
		if at.i < end {
			if at.i != i {
				x.s.ids.pool.edit(e.first)[logFirst] = byte(at.i)
			}
			break
		}
		next := le.Uint32(at.c[recordNext:])
		x.s.ids.pool.give(e.first)
		e.first = next
	}
	if e.first == noRecord {
		x.raw = level{}
		return
	}
	x.raw.last = e.pack()
}

// push adds an entry at the end, or its cost to the last entry if that is not older.
func (x *site) push(t int64, cost uint32) {
	p, e := &x.s.ids.pool, ends(x.raw)
	x.raw.a += cost
	if e.last != noRecord {
		if at := x.newest(); at.time() >= t {
			at.setCost(at.cost() + cost)
			return
		}
	}
	if e.last == noRecord || p.view(e.last)[logEnd] == logPerRecord {
		n := p.take()
		if e.last == noRecord {
			e.first = n
		} else {
			le.PutUint32(p.edit(e.last)[recordNext:], n)
		}
		e.last = n
		x.raw.last = e.pack()
	}
	c := p.edit(e.last)
	i := int(c[logEnd])
	le.PutUint64(c[logEntries+i*logEntry:], uint64(t))
	le.PutUint32(c[logEntries+i*logEntry+8:], cost)
	c[logEnd]++
	x.raw.b++
}

// freeLog gives all records of a log back.
func (s *state) freeLog(l level) {
	for n := ends(l).first; n != noRecord; {
		next := le.Uint32(s.ids.pool.view(n)[recordNext:])
		s.ids.pool.give(n)
		n = next
	}
}
