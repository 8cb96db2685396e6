package bucket

import (
	"encoding/binary"
	"hash/crc32"
)

// The most bytes that parts of a chunk can have.
const (
	ruleMost    = 41 // with its number
	cellMost    = 1 + 16 + ruleMost + 16
	listMost    = 1 + 16 + ruleMost + 1 + 4 // without entries
	answerMost  = 16 + 2 + 1 + ruleMost + 24
	resultMost  = 1 + 1 + 16 + 8 + 8 + 2 + 2 // without answers
	sessionMost = 1 + 32
	thawMost    = 1 + ruleMost + 8
	endMost     = 1 + 17
)

// chunkWriter makes one chunk after the other. Whoever adds to it asks for room first.
type chunkWriter struct {
	buf   []byte
	max   int
	rules map[Rule]uint64
	list  int // offset of the number of entries of the list that is written
}

// begin empties w, for a chunk of at most maxBytes.
func (w *chunkWriter) begin(maxBytes int) {
	w.max = min(max(maxBytes, chunkHead+chunkSum), MaxChunkBytes)
	w.buf = append(make([]byte, 0, w.max), make([]byte, chunkHead)...)
	w.rules = map[Rule]uint64{}
}

// room says whether n more bytes fit. Into an empty chunk anything does.
func (w *chunkWriter) room(n int) bool { return len(w.buf)+n+chunkSum <= w.max || w.empty() }

func (w *chunkWriter) empty() bool { return len(w.buf) == chunkHead }

// finish is the chunk, which is the caller's from now on.
func (w *chunkWriter) finish(i *ChunkInfo) []byte {
	b := w.buf
	b[0] = chunkVersion
	b[1] = flag(i.First)*chunkFirst | flag(i.Last)*chunkLast | flag(i.Salvage)*chunkSalvage | flag(i.Restore)*chunkRestore
	le.PutUint16(b[2:], i.Slot)
	le.PutUint64(b[4:], i.Pass)
	le.PutUint32(b[12:], i.Number)
	le.PutUint64(b[16:], uint64(i.SlotTime))
	w.buf = nil
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func (w *chunkWriter) key(k Key) {
	w.buf = le.AppendUint64(w.buf, k.Hi)
	w.buf = le.AppendUint64(w.buf, k.Lo)
}

func (w *chunkWriter) rule(r *Rule) {
	n, known := w.rules[*r]
	if !known {
		n = uint64(len(w.rules))
		w.rules[*r] = n
	}
	w.buf = binary.AppendUvarint(w.buf, n)
	if !known {
		w.buf = appendRule(w.buf, r)
	}
}

func (w *chunkWriter) cell(k Key, r *Rule, l level) {
	w.buf = append(w.buf, byte(cellItem))
	w.key(k)
	w.rule(r)
	w.buf = le.AppendUint64(w.buf, uint64(l.last))
	w.buf = le.AppendUint32(w.buf, l.a)
	w.buf = le.AppendUint32(w.buf, l.b)
}

func (w *chunkWriter) gone(k Key) {
	w.buf = append(w.buf, byte(goneItem))
	w.key(k)
}

func (w *chunkWriter) openList(k Key, r *Rule, flags byte) {
	w.buf = append(w.buf, byte(listItem))
	w.key(k)
	w.rule(r)
	w.buf = append(w.buf, flags)
	w.list = len(w.buf)
	w.buf = le.AppendUint32(w.buf, 0)
}

// entry adds an entry to the open list.
func (w *chunkWriter) entry(t int64, n uint32) {
	w.buf = le.AppendUint64(w.buf, uint64(t))
	w.buf = le.AppendUint32(w.buf, n)
	le.PutUint32(w.buf[w.list:], le.Uint32(w.buf[w.list:])+1)
}

// permit adds a permit to the open list.
func (w *chunkWriter) permit(deadline int64, units uint32, token uint64) {
	w.entry(deadline, units)
	w.buf = le.AppendUint64(w.buf, token)
}

func (w *chunkWriter) session(id, watermark, highest, last uint64) {
	w.buf = append(w.buf, byte(sessionItem))
	for _, n := range [...]uint64{id, watermark, highest, last} {
		w.buf = le.AppendUint64(w.buf, n)
	}
}

// result adds the record of a result with its answers.
func (w *chunkWriter) result(d *ids, n uint32, answers []stored, r *rules) {
	c := d.pool.view(n)
	own := kindOf(c) == ownResult
	w.buf = append(w.buf, byte(resultItem), flag(own))
	if own {
		w.buf = append(w.buf, c[recordA:recordA+8]...)
	}
	w.buf = append(w.buf, c[recordB:recordB+8]...)
	w.buf = append(w.buf, c[resultContent:resultContent+8]...)
	w.buf = append(w.buf, c[resultTime:resultTime+8]...)
	w.buf = le.AppendUint16(w.buf, d.flags(n))
	w.buf = binary.AppendUvarint(w.buf, uint64(len(answers)))
	for i := range answers {
		s := &answers[i]
		w.key(s.key)
		w.buf = le.AppendUint16(w.buf, s.slot)
		w.buf = append(w.buf, byte(s.flags))
		w.rule(&r.version(s.rule).Rule)
		w.buf = le.AppendUint32(w.buf, s.cost)
		w.buf = le.AppendUint32(w.buf, s.remaining)
		w.buf = le.AppendUint64(w.buf, uint64(s.reset))
		w.buf = le.AppendUint64(w.buf, s.extra)
	}
}

func (w *chunkWriter) thaw(r *Rule, left int64) {
	w.buf = append(w.buf, byte(thawItem))
	w.rule(r)
	w.buf = le.AppendUint64(w.buf, uint64(left))
}

func (w *chunkWriter) end(sl *slot) {
	w.buf = append(w.buf, byte(endItem))
	w.buf = le.AppendUint64(w.buf, sl.grants)
	w.buf = append(w.buf, byte(sl.born))
	w.buf = le.AppendUint64(w.buf, uint64(sl.birth))
}
