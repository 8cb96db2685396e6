package bucket

import "math/bits"

// Records, little endian. What they stand for is kind, slot and two words.
//
//	session   0 next  4 tag  6 slot  8 session  16 watermark  24 highest  32 last  40 head  44 tail  48 count
//	          52 first  54 marked  56 oldest  64 marks, 16 of 2 bytes
//	result    0 next  4 tag  6 slot  8 session or key.Hi  16 sequence or key.Lo  24 content  32 time  40 follow  44 more  48 answer
//	more      0 next  48 answer
//	answer    see results.go
//	permit    see permit.go
//	log       see logrecord.go
const (
	recordTag  = 4 // kind, and of a result its number of answers << kindBits
	recordSlot = 6
	recordA    = 8
	recordB    = 16

	sessionWatermark = 16
	sessionHighest   = 24
	sessionLast      = 32
	sessionQueue     = 40
	sessionFirst     = 52 // place of the oldest mark
	sessionMarked    = 54 // number of marks
	sessionOldest    = 56 // no result of its queue is older; 0 says nothing
	sessionMarks     = 64 // see session.go

	resultContent = 24
	resultTime    = 32
	resultFollow  = 40 // the next younger result of the queue
	resultMore    = 44 // the record that holds further answers
	resultAnswer  = 48

	kindBits = 3
)

type recordKind uint16

const (
	plainRecord recordKind = iota // free, of further answers, or of a log
	sessionRecord
	clientResult
	ownResult
	permitRecord
	markedResult // of a client, in no index: see session.go
)

func kindOf(c []byte) recordKind { return recordKind(le.Uint16(c[recordTag:]) & (1<<kindBits - 1)) }

func answersOf(c []byte) int { return int(le.Uint16(c[recordTag:]) >> kindBits) }

// name writes what a record stands for.
func name(c []byte, kind recordKind, answers int, slot uint16, a, b uint64) {
	le.PutUint16(c[recordTag:], uint16(answers)<<kindBits|uint16(kind))
	le.PutUint16(c[recordSlot:], slot)
	le.PutUint64(c[recordA:], a)
	le.PutUint64(c[recordB:], b)
}

// recordHash is the hash of what a record stands for.
func recordHash(c []byte) uint64 {
	kind := kindOf(c)
	b := le.Uint64(c[recordB:])
	if !kind.hasB() {
		b = 0
	}
	return nameHash(kind, le.Uint16(c[recordSlot:]), le.Uint64(c[recordA:]), b)
}

// hasB says whether the second word is part of what a record stands for. A
// session has its watermark there, a permit its token.
func (k recordKind) hasB() bool { return k != sessionRecord && k != permitRecord }

func nameHash(kind recordKind, slot uint16, a, b uint64) uint64 {
	return fold(fold(fold(uint64(kind)<<16|uint64(slot), a), b), 0)
}

// fold mixes a word into a rolling hash, in the manner of wyhash.
func fold(h, word uint64) uint64 {
	hi, lo := bits.Mul64(h^word^0x9e3779b97f4a7c15, 0xa0761d6478bd642f)
	return (hi ^ lo) + 0xe7037ed1a0b428db
}

// find returns the record that stands for the name, or noRecord.
func (d *ids) find(kind recordKind, slot uint16, a, b uint64) uint32 {
	return d.walk(d.first(nameHash(kind, slot, a, b)), kind, slot, a, b)
}

// first is the first record of a hash's chain.
func (d *ids) first(hash uint64) uint32 {
	return d.index.head(d.index.chain(hash))
}

// walk looks for the name in a chain from record n on.
func (d *ids) walk(n uint32, kind recordKind, slot uint16, a, b uint64) uint32 {
	for n != noRecord {
		c := d.pool.view(n)
		if named(c, kind, slot, a, b) {
			return n
		}
		n = le.Uint32(c[recordNext:])
	}
	return noRecord
}

// named says whether c stands for the name.
func named(c []byte, kind recordKind, slot uint16, a, b uint64) bool {
	return kindOf(c) == kind && le.Uint16(c[recordSlot:]) == slot && le.Uint64(c[recordA:]) == a &&
		(!kind.hasB() || le.Uint64(c[recordB:]) == b)
}

// enter puts record n, which stands for something of a slot, into the index.
func (d *ids) enter(n uint32, slot uint16, hash uint64) {
	d.index.add(&d.pool, n, hash)
	d.named[slot]++
}

// free drops record n, which stands for something, from the index and the pool.
func (d *ids) free(n uint32) {
	d.named[le.Uint16(d.pool.view(n)[recordSlot:])]--
	d.index.drop(&d.pool, n, recordHash(d.pool.view(n)))
	d.pool.give(n)
}
