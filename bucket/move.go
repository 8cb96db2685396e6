package bucket

import "encoding/binary"

// SlotState says what a table has of a slot.
type SlotState uint8

// The states of a slot. Only a held one is judged; requests on any other answer
// NotHeld. The sweep leaves sealed, incoming and complete ones alone.
const (
	SlotAbsent   SlotState = iota // nothing, but perhaps remains that are being cleared away
	SlotHeld                      // it serves
	SlotSealed                    // it takes nothing more, and leaves or serves again
	SlotIncoming                  // some of its chunks have arrived
	SlotComplete                  // all of them have; it serves from OwnEntry on
)

var slotStates = [...]string{"absent", "held", "sealed", "incoming", "complete"}

// String is the state in one word.
func (s SlotState) String() string {
	if int(s) < len(slotStates) {
		return slotStates[s]
	}
	return "unknown"
}

// SlotInfo is where a slot stands.
type SlotInfo struct {
	State    SlotState
	Revision uint64 // the highest of a move that this table has seen; 0: none
	Pass     uint64 // of the chunks that arrive, or arrived
	Next     uint32 // the number of the chunk that is expected; chunks are numbered from 0
	Buckets  int    // also of one that is incoming; in an absent slot what is left to clear away
	Time     int64  // slot time now, in ns; of a sealed slot that of the seal; 0 while absent or incoming
	Running  int64  // of a sealed slot: what Time would be now without the seal; else as Time
	Born     bool   // its state was lost: see BirthEntry and Table.Salvage
}

// Slot says where a slot stands.
func (t *Table) Slot(slot uint16) SlotInfo {
	if int(slot) >= len(t.slots) {
		return SlotInfo{}
	}
	sl := &t.slots[slot]
	i := SlotInfo{
		State: sl.state, Revision: sl.revision, Pass: sl.pass, Next: sl.next, Buckets: sl.count,
		Time: t.slotTime(slot), Born: sl.born != notBorn,
	}
	switch i.Running = i.Time; sl.state {
	case SlotAbsent, SlotIncoming:
		i.Time, i.Running = 0, 0
	case SlotSealed:
		i.Running = sl.time(t.time)
	}
	return i
}

// Move is one step of one move: revisions are given by the control state, begin
// with 1 and are never used again. A table keeps the highest it has seen of each
// slot for ever; what names a lower one is refused.
//
// The entries below have one Result for each move, in order, with a Code and the
// slot time:
//
//	Moved        the slot is now as the entry asks, also if it was before
//	MoveAgain    the slot has to be cleared first, and one bounded part of that
//	             is done: send the same again (AdoptEntry and BirthEntry only)
//	MoveRefused  the state, revision, pass or number does not fit, or the chunk
//	             is no good: nothing has changed
//
// Whoever resumes asks Table.Slot where it stands.
type Move struct {
	Slot     uint16
	Revision uint64
}

// SealEntry stops held slots: they take nothing more, and their slot time stands
// still. Of a revision that was unsealed before, it is refused.
func SealEntry(stamp int64, moves []Move) []byte { return moveEntry(sealEntry, stamp, moves) }

// UnsealEntry lets sealed slots serve again, at the slot time at which they would
// be without the seal. A held slot stays so, and a late SealEntry of the same
// revision is refused from then on. An Export of the slot ends.
func UnsealEntry(stamp int64, moves []Move) []byte { return moveEntry(unsealEntry, stamp, moves) }

// OwnEntry lets complete slots serve.
func OwnEntry(stamp int64, moves []Move) []byte { return moveEntry(ownEntry, stamp, moves) }

// ForgetEntry drops sealed slots. Their memory is given back step by step, by the
// entries that follow.
func ForgetEntry(stamp int64, moves []Move) []byte { return moveEntry(forgetEntry, stamp, moves) }

// DropEntry drops what has arrived of slots. An absent slot stays so, and a late
// AdoptEntry of the same revision is refused from then on.
func DropEntry(stamp int64, moves []Move) []byte { return moveEntry(dropEntry, stamp, moves) }

// BirthEntry lets slots serve that nothing is left of, and whose slot time begins
// with 0. Absent, incoming and complete ones can be born, the latter two without
// what has arrived, also of a revision that was dropped.
//
// What a bucket is that is absent in a born slot, its rule's Loss says; see there.
// A request whose id is older than the birth is TooOld, unless it is known.
func BirthEntry(stamp int64, moves []Move) []byte { return moveEntry(birthEntry, stamp, moves) }

// AdoptEntry brings one chunk of an Export. slotTime is the slot time at stamp,
// in ns; it counts only with the last chunk, and is never less than that of the
// seal: slotTime = ChunkInfo.SlotTime + what passed since. Chunks are adopted in
// order of their numbers; one that was adopted before is Moved. The first of a
// higher pass, or of a higher revision, starts over. Check chunks with
// ParseChunk before they are logged.
func AdoptEntry(stamp int64, m Move, slotTime int64, chunk []byte) []byte {
	b := appendHeader(make([]byte, 0, entryBody+adoptFixed+len(chunk)), adoptEntry, stamp)
	b = binary.LittleEndian.AppendUint16(b, m.Slot)
	b = binary.LittleEndian.AppendUint64(b, m.Revision)
	b = binary.LittleEndian.AppendUint64(b, uint64(slotTime))
	return append(b, chunk...)
}

// adoptFixed is the length of an adopt entry's body without its chunk.
const adoptFixed = 18

// moveBytes is the length of a move in an entry.
const moveBytes = 10

func moveEntry(kind entryKind, stamp int64, moves []Move) []byte {
	b := appendHeader(make([]byte, 0, entryBody+3+moveBytes*len(moves)), kind, stamp)
	b = binary.AppendUvarint(b, uint64(len(moves)))
	for _, m := range moves {
		b = binary.LittleEndian.AppendUint16(b, m.Slot)
		b = binary.LittleEndian.AppendUint64(b, m.Revision)
	}
	return b
}
