package cluster

import (
	"bufio"
	"errors"
	"io"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/internal/slotfile"
)

// keptFor is in how many checkpoints a slot is carried along that its group has no
// more: until its new group has surely written its own.
const keptFor = 3

func newBuffered(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 256<<10) }

// checkpointWriter writes one checkpoint of one replica.
type checkpointWriter struct {
	out   *slotsWriter
	look  *group.Look
	copy  *group.Copy         // nil if nothing has changed
	stale func(slot int) bool // whether what the last checkpoint has of a slot is not so any more
	last  *slotsFile          // nil: none, or it is of no use
	each  func()              // called between slots
}

// has says whether a group has something of a slot to lose.
func has(i bucket.SlotInfo) bool {
	return i.State == bucket.SlotHeld || i.State == bucket.SlotSealed || i.State == bucket.SlotComplete
}

// write writes all slots: those that have changed from the copy, the others from the
// last checkpoint, as of now: their buckets are the same, and their time runs on.
func (w *checkpointWriter) write() error {
	for slot, info := range w.look.Slots {
		var err error
		before, known := section{}, false
		if w.last != nil {
			before, known = w.last.at[uint16(slot)]
		}
		head := slotHead{
			Slot: uint16(slot), Revision: info.Revision, Index: w.look.Index, Term: w.look.Term, Time: info.Time, Buckets: info.Buckets,
		}
		switch {
		case has(info) && known && !w.stale(slot):
			head.Time = max(head.Time, before.Time)
			err = w.again(head, before)
		case has(info):
			err = w.fresh(head)
		case known && before.Kept < keptFor:
			head = before.slotHead
			head.Kept++
			err = w.again(head, before)
		}
		if err != nil {
			return err
		}
		w.each()
	}
	return w.out.End()
}

// errNoCopy is returned when a slot has to be read from a copy and there is none.
var errNoCopy = errors.New("there is no copy of the table")

// fresh writes a slot from the copy.
func (w *checkpointWriter) fresh(head slotHead) error {
	if w.copy == nil {
		return errNoCopy
	}
	if err := w.out.json(slotfile.Slot, head); err != nil {
		return err
	}
	d := w.copy.Salvage(head.Slot, 1)
	defer d.Close()
	for {
		chunk, last, err := d.Next(chunkBytes)
		if err == nil && chunk != nil {
			err = w.out.Write(slotfile.Chunk, chunk)
		}
		if err != nil || last {
			return err
		}
	}
}

// again writes a slot as the last checkpoint has it.
func (w *checkpointWriter) again(head slotHead, x section) error {
	if err := w.out.json(slotfile.Slot, head); err != nil {
		return err
	}
	return w.last.each(x, func(chunk []byte) error { return w.out.Write(slotfile.Chunk, chunk) })
}

// commitCheckpoint writes a checkpoint to its place and returns its size in bytes.
func commitCheckpoint(path string, head fileHead, w checkpointWriter) (int64, error) {
	f, err := slotfile.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Abort()
	head.Kind, head.Format, head.Made = checkpointFile, slotsFormat, time.Now().UTC().Format(time.RFC3339)
	if w.out, err = newSlotsWriter(f, head); err != nil {
		return 0, err
	}
	if err := w.write(); err != nil {
		return 0, err
	}
	return w.out.Bytes(), f.Commit()
}
