package bucket

import "math"

// The bounds of a chunk. One that is made for less than MinChunkBytes may be longer
// than asked for.
const (
	MinChunkBytes = 32 << 10
	MaxChunkBytes = 256 << 10
)

const (
	maxChanged  = 1 << 18 // keys remembered; with more the copy starts over
	maxRestarts = 2       // of Next; then all is left to Final
	scanCells   = 4096    // cells looked at in one step
	scanRecords = 16 << 10
	longList    = 400 // entries; a cell with more is not copied ahead
	exactThaws  = 128 // rules; see thawItem
	fewChanges  = 400 // cells; Next leaves so many to Final
	maxRounds   = 8   // of Next sending again what changed
)

// Export reads a slot for a move, chunk by chunk, while the table goes on. It
// changes nothing, so only the leader has one. Its methods are called under the
// serialisation of the table's, and each does at most about 1 ms of work.
//
// The way of a move: Next until there is no more, which copies ahead; SealEntry;
// Final until it says last. What changes behind Next is remembered by key and is
// sent again: by Next, in rounds, as long as each leaves less to do than the one
// before, and what is left then by Final. An Export that begins in a sealed slot
// needs no Next.
//
// Cells go in order of their keys, each priced to the newest version of its
// policy. A cut-over therefore changes cells that nobody touches: a scan that one
// interrupts is followed by another, which sends only the cells it concerns.
type Export struct {
	t       *Table
	slot    uint16
	pass    uint64
	number  uint32 // of the next chunk
	salvage bool
	restore bool
	anew    bool // the next chunk starts over
	w       chunkWriter

	at       Key // a scan has passed the cells of keys below
	scanning bool
	copied   bool  // a scan of all cells is over
	since    int64 // group time at which the scan, or the newest one, began
	from     int64 // a scan after the first sends what was cut over since this group time
	cuts     uint64
	restarts int

	changes map[Key]struct{}
	order   []Key // of changes
	again   []Key // what is left of the round that Next sends again
	rounds  int   // begun
	last    int   // cells of the newest round
	whole   bool  // too many changes to remember

	stage  stage
	long   uint32 // the record at which the list that is written goes on
	looks  int    // records that this step may still look at
	record uint32 // the own result that is next, or the session
	queue  uint32 // the result of that session that is next
	stored []stored
	thaws  map[Rule]struct{} // rules of pinned buckets
	late   []Rule            // thaws to be sent
}

// stage is how far Final is.
type stage uint8

const (
	cellStage stage = iota
	ownStage
	sessionStage
	thawStage
	doneStage
)

// Export begins to read a slot that is held or sealed. pass goes into the chunks:
// whoever starts a copy of the same move over takes a higher one. A slot has one
// Export at a time: a second one ends the first. Close it.
func (t *Table) Export(slot uint16, pass uint64) *Export {
	e := newExport(t, slot, pass)
	if int(slot) < len(t.slots) {
		if sl := &t.slots[slot]; sl.state == SlotHeld || sl.state == SlotSealed {
			sl.export = e
		}
	}
	return e
}

// Salvage begins to read what is left of a slot for a new epoch, in a table that
// is restored and that nothing is applied to. The slot is held, sealed or
// complete, and Final may be called at once; it leaves out buckets whose rule's
// Loss is not LossSalvage. Where such chunks are adopted, the slot is born, at the
// slot time that it had here.
func (t *Table) Salvage(slot uint16, pass uint64) *Export {
	e := newExport(t, slot, pass)
	e.salvage = true
	if int(slot) < len(t.slots) {
		if sl := &t.slots[slot]; sl.state != SlotAbsent && sl.state != SlotIncoming {
			sl.export = e
		}
	}
	return e
}

// Restore says that the slot is read from a backup: takes that its table admitted
// later are not known, and the fencing tokens that they got are not given again
// where the chunks are adopted.
func (e *Export) Restore() { e.restore = true }

func newExport(t *Table, slot uint16, pass uint64) *Export {
	return &Export{t: t, slot: slot, pass: pass, anew: true, from: math.MinInt64, changes: map[Key]struct{}{}, thaws: map[Rule]struct{}{}}
}

// Next is the next chunk of a copy ahead, of at most maxBytes (see MinChunkBytes;
// it is bounded to MaxChunkBytes). A nil chunk with more is a step without
// anything to send: call again. No more: it is time for the seal.
func (e *Export) Next(maxBytes int) (chunk []byte, more bool) {
	if e.Ended() || e.stage != cellStage {
		return nil, false
	}
	if e.whole && e.restarts < maxRestarts {
		e.restarts++
		e.restart()
	}
	if e.whole {
		return nil, false
	}
	e.w.begin(maxBytes)
	done := e.scan(false) && e.resend()
	return e.chunk(false), !done
}

// Changed is how many cells changed since they were copied. Final sends them again.
func (e *Export) Changed() int {
	if e.whole && !e.Ended() {
		return e.sl().count
	}
	return len(e.order) + len(e.again)
}

// Final is the next chunk of the rest: what Next has not reached, what changed,
// results, sessions and counters. It gives nothing while the slot is not sealed.
// A nil chunk that is not last is a step without anything to send: call again,
// unless Ended.
func (e *Export) Final(maxBytes int) (chunk []byte, last bool) {
	if e.Ended() || e.stage == doneStage || e.sl().state != SlotSealed && !e.salvage {
		return nil, false
	}
	for ; len(e.again) > 0; e.again = e.again[1:] {
		e.remember(e.again[0])
	}
	if e.whole {
		e.restart()
	}
	e.w.begin(maxBytes)
	e.looks = scanRecords
	for e.final() {
	}
	last = e.stage == doneStage
	return e.chunk(last), last
}

// Ended says that e gives nothing more, because it was closed, another one began,
// the slot was unsealed or forgotten, or the table was restored.
func (e *Export) Ended() bool {
	return int(e.slot) >= len(e.t.slots) || e.t.slots[e.slot].export != e
}

// Close ends e. It may be called again.
func (e *Export) Close() {
	if !e.Ended() {
		e.sl().export = nil
	}
	e.changes, e.order, e.again, e.late, e.stored, e.w = nil, nil, nil, nil, nil, chunkWriter{}
}

func (e *Export) sl() *slot { return &e.t.slots[e.slot] }

// chunk is what was written, nil if that is nothing.
func (e *Export) chunk(last bool) []byte {
	if e.w.empty() {
		return nil
	}
	b := e.w.finish(&ChunkInfo{
		Slot: e.slot, Pass: e.pass, Number: e.number, First: e.anew, Last: last, Salvage: e.salvage, Restore: e.restore, SlotTime: e.t.slotTime(e.slot),
	})
	e.number++
	e.anew = false
	return b
}

// restart begins the copy over; the next chunk says so.
func (e *Export) restart() {
	e.anew, e.at, e.scanning, e.copied, e.whole = true, Key{}, false, false, false
	e.changes, e.order, e.again, e.long = map[Key]struct{}{}, nil, nil, noRecord
}

// note remembers that the cell of a key changes. The table calls it.
func (e *Export) note(k Key) {
	if e.copied || k.less(e.at) {
		e.remember(k)
	}
}

// remember lets Final send the cell of a key again.
func (e *Export) remember(k Key) {
	if e.whole {
		return
	}
	if _, known := e.changes[k]; known {
		return
	}
	if len(e.order) == maxChanged {
		e.changes, e.order, e.whole = nil, nil, true
		return
	}
	e.changes[k] = struct{}{}
	e.order = append(e.order, k)
}

func (k Key) less(o Key) bool { return k.Hi < o.Hi || k.Hi == o.Hi && k.Lo < o.Lo }
