package bucket

import (
	"hash/crc32"
	"io"
	"slices"
	"sync"
)

// A dump is, little endian:
//
//	magic 8 · length of header 4 · header · CRC 4 · parts, each followed by its CRC 4
//
// Parts are raw blocks: the segments slot by slot, the pages of records, the
// pages of the index. The header says how many and how large (see header.go).
// A CRC is Castagnoli's, of the header or of one part.
const dumpMagic = "rldump\x00\x03"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Dump is a table as it was at BeginDump. Its methods may run beside the
// table's; WriteTo and Close from one goroutine at a time.
//
// Nothing is copied when it begins. Before Apply changes bytes that the dump has
// not written yet, it saves the old ones here, 8 bytes of notes with each; a
// part with many of them is copied as a whole, once. WriteTo copies part after
// part, holding up Apply for one part of at most 128 KiB.
type Dump struct {
	gate   *sync.Mutex // the table's: guards parts against Apply
	index  uint64
	chain  uint64
	size   int64
	count  int // of parts
	header []byte
	parts  []part
	closed bool // guarded by gate
}

// part is one block of a dump. Its three states: shared with the table, with
// notes of what changed; kept, a copy of its own; done.
type part struct {
	buf   []byte
	notes []byte // old bytes, each with offset 4 and length 4 behind them
	kept  bool
	done  bool
}

const noteSize = 8

// BeginDump freezes a view of the table. The caller must Close it. Several may
// be open at once.
func (t *Table) BeginDump() *Dump {
	d := &Dump{gate: t.gate, index: t.index, chain: t.chain}
	blocks := t.blocks()
	d.header = t.header()
	d.parts, d.count = make([]part, len(blocks)), len(blocks)
	d.size = int64(len(dumpMagic) + 4 + len(d.header) + 4)
	t.gate.Lock()
	defer t.gate.Unlock()
	for i, b := range blocks {
		d.parts[i].buf = b.buf
		d.size += int64(len(b.buf) + 4)
		b.views = slices.DeleteFunc(b.views, func(v view) bool { return !v.dump.needs(v.at) })
		b.views = append(b.views, view{dump: d, at: i})
	}
	return d
}

// blocks lists all blocks of the state in the order of a dump.
func (s *state) blocks() []*block {
	var all []*block
	for i := range s.slots {
		s.slots[i].segments(func(_ int, g *segment) { all = append(all, &g.block) })
	}
	for _, g := range s.ids.pool.pages {
		all = append(all, &g.block)
	}
	return append(all, s.ids.index.heads...)
}

// Index is the index of the last entry in the dump.
func (d *Dump) Index() uint64 { return d.index }

// Chain is the table's Chain at Index.
func (d *Dump) Chain() uint64 { return d.chain }

// Size is how many bytes WriteTo writes.
func (d *Dump) Size() int64 { return d.size }

// save keeps n bytes of part i, which the table is about to change. It returns
// false if the dump need not be told of this block any more. The table holds gate.
func (d *Dump) save(i, off, n int) bool {
	if !d.needs(i) {
		return false
	}
	p := &d.parts[i]
	if len(p.notes)+n+noteSize > len(p.buf)/4 {
		p.buf = append([]byte(nil), p.buf...)
		p.restore(p.buf)
		p.kept, p.notes = true, nil
		return false
	}
	p.notes = append(p.notes, p.buf[off:off+n]...)
	p.notes = le.AppendUint32(p.notes, uint32(off))
	p.notes = le.AppendUint32(p.notes, uint32(n))
	return true
}

// needs says whether the table must save old bytes of part i here.
func (d *Dump) needs(i int) bool {
	return !d.closed && !d.parts[i].done && !d.parts[i].kept
}

// restore undoes in buf, a copy of p.buf, what the notes tell, newest first.
func (p *part) restore(buf []byte) {
	for notes := p.notes; len(notes) > 0; {
		end := len(notes) - noteSize
		off, n := int(le.Uint32(notes[end:])), int(le.Uint32(notes[end+4:]))
		copy(buf[off:], notes[end-n:end])
		notes = notes[:end-n]
	}
}

// WriteTo writes the dump, once. It returns io.ErrClosedPipe after Close, and
// the error of w.
func (d *Dump) WriteTo(w io.Writer) (int64, error) {
	head := append([]byte(dumpMagic), 0, 0, 0, 0)
	le.PutUint32(head[len(dumpMagic):], uint32(len(d.header)))
	head = append(head, d.header...)
	head = le.AppendUint32(head, crc32.Checksum(head, castagnoli))
	n, err := w.Write(head)
	written := int64(n)
	scratch := make([]byte, 0, maxSegmentBytes+4)
	for i := 0; i < d.count && err == nil; i++ {
		if scratch, err = d.take(i, scratch[:0]); err == nil {
			scratch = le.AppendUint32(scratch, crc32.Checksum(scratch, castagnoli))
			n, err = w.Write(scratch)
			written += int64(n)
		}
	}
	return written, err
}

// take appends part i to dst and lets go of it.
func (d *Dump) take(i int, dst []byte) ([]byte, error) {
	d.gate.Lock()
	defer d.gate.Unlock()
	if d.closed || d.parts[i].done {
		return dst, io.ErrClosedPipe
	}
	p := &d.parts[i]
	dst = append(dst, p.buf...)
	if !p.kept {
		p.restore(dst)
	}
	*p = part{done: true}
	return dst, nil
}

// Close lets go of the table, also amid WriteTo.
func (d *Dump) Close() {
	d.gate.Lock()
	defer d.gate.Unlock()
	d.closed, d.parts = true, nil
}
