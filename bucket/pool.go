package bucket

// A record is 96 bytes in a page of the pool. Its number is place + 1; 0 is none.
const (
	recordSize    = 96
	pageRecords   = 1024
	recordPage    = pageRecords * recordSize // 96 KiB
	noRecord      = 0
	recordNext    = 0 // of a free record: the next free one of its page, by place + 1
	recordPageLog = 10
)

// pool holds the records of request ids, logs and permits in pages without a pointer. The lowest
// page with room is used first, so that a pool grown by a burst drains from its
// end and gives pages back.
type pool struct {
	pages []*page
	room  int // no page below it has a free record
	used  int // records
}

type page struct {
	block
	used uint16
	free uint16 // place + 1 of the first freed record, 0 none
	next uint16 // places from here on were never used
}

// take returns a zeroed record.
func (p *pool) take() uint32 {
	for p.room < len(p.pages) && p.pages[p.room].used == pageRecords {
		p.room++
	}
	if p.room == len(p.pages) {
		p.pages = append(p.pages, &page{block: block{buf: make([]byte, recordPage)}})
	}
	g := p.pages[p.room]
	at := g.next
	if g.free != 0 {
		at = g.free - 1
		c := g.buf[int(at)*recordSize:][:recordSize]
		g.touch(int(at)*recordSize, recordSize)
		g.free = uint16(le.Uint32(c[recordNext:]))
		clear(c)
	} else {
		g.next++
	}
	g.used++
	p.used++
	return uint32(p.room)<<recordPageLog + uint32(at) + 1
}

// give takes a record back, and the last pages once they are empty.
func (p *pool) give(n uint32) {
	i := int((n - 1) >> recordPageLog)
	at := (n - 1) % pageRecords
	c := p.edit(n)
	le.PutUint16(c[recordTag:], uint16(plainRecord)) // take clears the rest
	g := p.pages[i]
	le.PutUint32(c[recordNext:], uint32(g.free))
	g.free = uint16(at + 1)
	g.used--
	p.used--
	p.room = min(p.room, i)
	p.trim()
}

// trim drops the last page while it is empty and the one before has room, so
// that one record taken and given at an edge does not make a page each time.
func (p *pool) trim() {
	for n := len(p.pages); n > 1; n = len(p.pages) {
		if p.pages[n-1].used > 0 || p.pages[n-2].used > pageRecords/2 {
			return
		}
		p.pages[n-1] = nil
		p.pages = p.pages[:n-1]
		p.room = min(p.room, n-1)
	}
}

// has says whether there is a page with record n.
func (p *pool) has(n uint32) bool { return int((n-1)>>recordPageLog) < len(p.pages) }

// view is record n to read.
func (p *pool) view(n uint32) []byte {
	at := int((n-1)%pageRecords) * recordSize
	return p.pages[(n-1)>>recordPageLog].buf[at : at+recordSize : at+recordSize]
}

// edit is record n to change.
func (p *pool) edit(n uint32) []byte {
	g := p.pages[(n-1)>>recordPageLog]
	at := int((n-1)%pageRecords) * recordSize
	g.touch(at, recordSize)
	return g.buf[at : at+recordSize : at+recordSize]
}
