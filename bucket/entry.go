package bucket

import "encoding/binary"

// An entry is what a group's log carries:
//
//	version 1 byte · kind 1 byte · stamp 8 bytes, little endian · by kind:
//	requests  count 4 bytes, then requests
//	sweep     cells to visit, uvarint
//	hold      count uvarint, then slots of 2 bytes
//	cutover   count uvarint, then rules, written out
//	adopt     slot 2 · revision 8 · slot time 8 · chunk (chunk.go)
//	seal, unseal, own, forget, drop, birth
//	          count uvarint, then moves, each: slot 2 · revision 8
//
// A request:
//
//	flags 1 · home 2 · by op: amount or permit, of a lease also share, uvarint · id · takes uvarint, each:
//	  slot xor home uvarint · key 16 · rule · cost × 2 + shadow uvarint
//	id of a client: session · sequence uvarint · content 8 · age uvarint if flagged
//	own id:         key 16 · content 8 · age uvarint if flagged
//
// A rule or a session is a uvarint: its number in order of first appearance in
// this entry. The first unused number announces a new one, which follows:
//
//	rule     policy 8 · version 8 · algorithm 1 · loss 1 · amount, burst, window uvarint
//	session  session 8 · acked uvarint
const (
	entryVersion = 2
	// leaseEntryVersion is that of an entry with an OpLease, which builds that write
	// only version 2 cannot read: whoever adds one has to know that all can.
	leaseEntryVersion = 3

	entryStamp = 2  // offset of the stamp
	entryBody  = 10 // offset of what depends on the kind

	flagKind    = 0b0000_0011 // IDKind
	flagNoNew   = 0b0000_0100
	flagAged    = 0b0000_1000
	flagOp      = 0b0111_0000 // Op
	flagOpShift = 4
	flagsAll    = 0b0111_1111
)

type entryKind uint8

const (
	requestsEntry entryKind = 1
	sweepEntry    entryKind = 2
	holdEntry     entryKind = 3
	cutoverEntry  entryKind = 4
	adoptEntry    entryKind = 5
	sealEntry     entryKind = 6
	unsealEntry   entryKind = 7
	ownEntry      entryKind = 8
	forgetEntry   entryKind = 9
	dropEntry     entryKind = 10
	birthEntry    entryKind = 11
)

// The bounds of an entry.
const (
	MaxEntryRequests = 8192
	MaxEntryBytes    = 512 << 10
	MaxRequestTakes  = 256
)

// minRequest and minTake are the fewest bytes that a request or a take can have.
const (
	minRequest = 4
	minTake    = 19
)

func appendHeader(b []byte, kind entryKind, stamp int64) []byte {
	b = append(b, entryVersion, byte(kind))
	return binary.LittleEndian.AppendUint64(b, uint64(stamp))
}

// StampEntry is an entry that carries only the time, and lets the sweep visit
// that many cells (bounded by the table).
func StampEntry(stamp int64, sweep int) []byte {
	b := appendHeader(nil, sweepEntry, stamp)
	return binary.AppendUvarint(b, uint64(max(sweep, 0)))
}

// HoldEntry is an entry that names slots the group holds from now on.
func HoldEntry(stamp int64, slots []uint16) []byte {
	b := appendHeader(make([]byte, 0, entryBody+3+2*len(slots)), holdEntry, stamp)
	b = binary.AppendUvarint(b, uint64(len(slots)))
	for _, s := range slots {
		b = binary.LittleEndian.AppendUint16(b, s)
	}
	return b
}

// CutoverEntry is an entry that makes versions of policies effective from its
// group time on, at policies of which this group knows an older version. Of
// others there is no bucket here, and they are ignored. At most
// MaxEntryRequests rules; the limits must be valid.
func CutoverEntry(stamp int64, rules []Rule) []byte {
	b := appendHeader(make([]byte, 0, entryBody+3+40*len(rules)), cutoverEntry, stamp)
	b = binary.AppendUvarint(b, uint64(len(rules)))
	for i := range rules {
		b = appendRule(b, &rules[i])
	}
	return b
}

// EntryStamp reads the stamp of an encoded entry and nothing else. Not ok: no
// entry of a version known here.
func EntryStamp(entry []byte) (stamp int64, ok bool) {
	if len(entry) < entryBody || entry[0] < entryVersion || entry[0] > leaseEntryVersion {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(entry[entryStamp:])), true
}
