package bucket

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// A chunk is a part of a slot, little endian, and says all that is needed to
// read it:
//
//	version 1 · flags 1 · slot 2 · pass 8 · number 4 · slot time 8 · items · CRC 4
//
// An item is a kind 1, then by kind:
//
//	cell     key 16 · rule · last 8 · a 4 · b 4
//	list     key 16 · rule · flags 1 · entries 4, each: time 8 · cost 4 of a log,
//	         deadline 8 · units 4 · token 8 of permits
//	gone     key 16
//	session  id 8 · watermark 8 · highest 8 · last 8
//	result   own 1 · name 16, or sequence 8 in the session before · content 8 · time 8 · flags 2 ·
//	         answers uvarint, each: key 16 · slot 2 · flags 1 · rule · cost 4 · remaining 4 · reset 8 · extra 8
//	thaw     rule · left 8
//	end      grants 8 · born 1 · birth 8
//
// A rule is a uvarint, as in an entry: the first unused number announces a new
// one, which follows. The CRC is Castagnoli's, of all before it.
const (
	chunkVersion = 1
	chunkHead    = 24
	chunkSum     = 4

	chunkFirst   = 1 << 0
	chunkLast    = 1 << 1
	chunkSalvage = 1 << 2
	chunkRestore = 1 << 3
	chunkFlags   = 1<<4 - 1

	listContinues = 1 << 0 // the cell has the entries before these
	listMerged    = 1 << 1
	listFlags     = 1<<2 - 1

	logEntryBytes    = 12
	permitEntryBytes = 20
)

type itemKind uint8

const (
	cellItem itemKind = 1 + iota
	listItem
	goneItem
	sessionItem
	resultItem
	thawItem
	endItem
)

// item is an item of a chunk, read.
type item struct {
	kind  itemKind
	flags byte
	own   bool
	born  born
	given uint16 // flags of a result
	rules []Rule // those of the chunk that were announced so far
	rule  int    // index in rules
	key   Key
	level level
	list  []byte

	session, watermark, highest uint64

	name    Key // of an own id; of a client's, Lo is the sequence
	content uint64
	time    int64    // of a result or a session; birth of a slot
	answers []stored // rule is an index in rules

	left   int64
	grants uint64
}

// ErrChunk is returned by ParseChunk for a chunk that is cut off, damaged, or
// makes no sense; for one of another version it is ErrVersion.
var ErrChunk = errors.New("bucket: unusable chunk")

// ChunkInfo is what a chunk says of itself.
type ChunkInfo struct {
	Slot     uint16
	Pass     uint64
	Number   uint32 // from 0 on
	First    bool   // it begins with an empty slot: the first of a pass, or one that starts over amid it
	Last     bool   // the slot is complete with it
	Salvage  bool   // see Table.Salvage
	Restore  bool   // see Export.Restore
	SlotTime int64  // ns, when it was made; with Last that of the seal
	Cells    int    // cells, or parts of long ones
	Results  int    // results of request ids
}

// ParseChunk checks the whole of a chunk. What it accepts, an AdoptEntry can carry.
func ParseChunk(b []byte) (ChunkInfo, error) {
	var i ChunkInfo
	if len(b) == 0 || b[0] != chunkVersion {
		return i, fmt.Errorf("%w: chunk of %d bytes, first %x", ErrVersion, len(b), b[:min(len(b), 1)])
	}
	if len(b) < chunkHead+chunkSum || len(b) > MaxChunkBytes {
		return i, fmt.Errorf("%w: %d bytes", ErrChunk, len(b))
	}
	body := b[:len(b)-chunkSum]
	if crc32.Checksum(body, castagnoli) != le.Uint32(b[len(body):]) {
		return i, fmt.Errorf("%w: checksum", ErrChunk)
	}
	i = ChunkInfo{
		First: b[1]&chunkFirst != 0, Last: b[1]&chunkLast != 0, Salvage: b[1]&chunkSalvage != 0, Restore: b[1]&chunkRestore != 0,
		Slot: le.Uint16(b[2:]), Pass: le.Uint64(b[4:]), Number: le.Uint32(b[12:]), SlotTime: int64(le.Uint64(b[16:])),
	}
	ended := false
	err := walkChunk(b, func(it *item) {
		switch it.kind {
		case cellItem, listItem:
			i.Cells++
		case resultItem:
			i.Results++
		case endItem:
			ended = true
		}
	})
	if err != nil {
		return ChunkInfo{}, err
	}
	if b[1]&^chunkFlags != 0 || i.Number == 0 && !i.First || i.Number == math.MaxUint32 || i.SlotTime < 0 || ended != i.Last {
		return ChunkInfo{}, fmt.Errorf("%w: head %x", ErrChunk, b[:chunkHead])
	}
	return i, nil
}
