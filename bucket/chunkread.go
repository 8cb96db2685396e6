package bucket

import "fmt"

// walkChunk calls f with each item of a chunk whose checksum is good. The item is
// valid until f returns. Of a chunk that ParseChunk has accepted it returns nil.
func walkChunk(b []byte, f func(*item)) error {
	r := reader{b: b[chunkHead : len(b)-chunkSum]}
	var it item
	inSession := false
	for len(r.b) > 0 {
		it.kind = itemKind(r.u8())
		if err := it.read(&r, inSession); err != nil {
			return err
		}
		if r.bad || it.kind == endItem && len(r.b) > 0 {
			return fmt.Errorf("%w: item of kind %d, %d bytes before the end", ErrChunk, it.kind, len(r.b))
		}
		inSession = inSession || it.kind == sessionItem
		f(&it)
	}
	return nil
}

// read reads what comes behind the kind.
func (it *item) read(r *reader, inSession bool) (err error) {
	switch it.kind {
	case cellItem:
		it.key = r.key()
		if it.rule, err = it.readRule(r); err == nil {
			it.level = level{last: int64(r.u64()), a: r.u32(), b: r.u32()}
			r.bad = r.bad || it.rules[it.rule].Limit.Algorithm.listed()
		}
	case listItem:
		it.key = r.key()
		if it.rule, err = it.readRule(r); err == nil {
			it.readList(r)
		}
	case goneItem:
		it.key = r.key()
	case sessionItem:
		it.session, it.watermark, it.highest, it.time = r.u64(), r.u64(), r.u64(), int64(r.u64())
		r.bad = r.bad || it.time < 0
	case resultItem:
		err = it.readResult(r, inSession)
	case thawItem:
		if it.rule, err = it.readRule(r); err == nil {
			it.left = int64(r.u64())
			r.bad = r.bad || it.left < 0
		}
	case endItem:
		it.grants, it.born, it.time = r.u64(), born(r.u8()), int64(r.u64())
		r.bad = r.bad || it.born > bornSalvaged || it.time < 0
	default:
		r.bad = true
	}
	return err
}

func (r *reader) key() Key { return Key{Hi: r.u64(), Lo: r.u64()} }

// readRule reads the number of a rule, and the rule where it is announced. Also
// of a reader that is bad the number is one that there is.
func (it *item) readRule(r *reader) (int, error) {
	n := r.uvarint()
	if n < uint64(len(it.rules)) && !r.bad {
		return int(n), nil
	}
	r.bad = r.bad || n > uint64(len(it.rules))
	rule := Rule{Limit: Limit{Algorithm: TokenBucket}}
	if !r.bad {
		var err error
		if rule, err = r.rule(); err != nil {
			return 0, err
		}
	}
	it.rules = append(it.rules, rule)
	return len(it.rules) - 1, nil
}

func (it *item) readList(r *reader) {
	it.flags = r.u8()
	size, isLog := permitEntryBytes, it.rules[it.rule].Limit.Algorithm == SlidingLog
	if isLog {
		size = logEntryBytes
	}
	n := r.counted(uint64(r.u32()), MaxChunkBytes, size)
	r.bad = r.bad || it.flags&^listFlags != 0 || !it.rules[it.rule].Limit.Algorithm.listed() || !isLog && it.flags&listMerged != 0
	if r.bad {
		return
	}
	it.list, r.b = r.b[:n*size], r.b[n*size:]
	for e := it.list; len(e) > 0; e = e[size:] {
		r.bad = r.bad || int64(le.Uint64(e)) < 0
	}
}

func (it *item) readResult(r *reader, inSession bool) error {
	flag := r.u8()
	if it.own = flag == 1; it.own {
		it.name = r.key()
	} else {
		it.name = Key{Lo: r.u64()}
	}
	r.bad = r.bad || flag > 1 || !it.own && !inSession
	it.content, it.time, it.given = r.u64(), int64(r.u64()), r.u16()
	r.bad = r.bad || it.time < 0 || it.given&^(flagGiven|flagUndone|flagRefunded) != 0
	const minAnswer = 44
	it.answers = it.answers[:0]
	for range r.counted(r.uvarint(), MaxRequestTakes, minAnswer) {
		s := stored{key: r.key(), slot: r.u16(), flags: uint16(r.u8())}
		n, err := it.readRule(r)
		if err != nil {
			return err
		}
		s.rule, s.cost, s.remaining = uint32(n), r.u32(), r.u32()
		s.reset, s.extra = int64(r.u64()), r.u64()
		it.answers = append(it.answers, s)
	}
	return nil
}
