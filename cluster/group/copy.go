package group

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"weak"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/bucket"
)

// Look is where the slots of a replica stood at one moment.
type Look struct {
	Index, Term uint64 // of what was applied
	Time        int64  // group time, ns
	Slots       []bucket.SlotInfo
	changes     []uint64
	table       weak.Pointer[bucket.Table] // a dump that takes the table's place makes all of it new
}

// Look tells where the slots stand, as of what is applied here. It holds the table
// for some ns per slot.
func (r *Replica) Look() Look {
	r.fsm.mu.Lock()
	defer r.fsm.mu.Unlock()
	return r.fsm.look()
}

// look is Look; mu is held.
func (f *fsm) look() Look {
	l := Look{
		Index: f.index, Term: f.term, Time: f.table.Time(), table: weak.Make(f.table),
		Slots: make([]bucket.SlotInfo, f.table.Slots()), changes: make([]uint64, f.table.Slots()),
	}
	for i := range l.Slots {
		l.Slots[i], l.changes[i] = f.table.Slot(uint16(i)), f.table.Changes(uint16(i))
	}
	return l
}

// Same says whether no bucket of a slot was changed from o to l, two looks at one
// replica. Time that passed does not count.
func (l *Look) Same(o *Look, slot int) bool {
	return l.table == o.table && slot < len(l.Slots) && slot < len(o.Slots) && l.changes[slot] == o.changes[slot] &&
		l.Slots[slot].Revision == o.Slots[slot].Revision && l.Slots[slot].State == o.Slots[slot].State
}

// Copy is a table of its own with slots to be read: a replica's as it was at one
// moment, or one put together from files. One goroutine at a time uses it.
type Copy struct {
	Look  Look // at the replica, when it was copied
	table *bucket.Table
	loads uint64 // revisions given out by Load and Whole
}

// Copy copies the table: any replica's, also a follower's or that of an epoch that
// was given up. While it is made and kept, the state is in memory twice.
//
// With tail, the entries of the log are applied to the copy too that are not known
// to be committed. They may be: the majority that knows is gone. A take that was
// not is then charged for nothing, and none that was is lost.
func (r *Replica) Copy(tail bool) (*Copy, error) {
	f := r.fsm
	f.mu.Lock()
	if f.err != nil {
		f.mu.Unlock()
		return nil, f.err
	}
	c := &Copy{Look: f.look(), table: bucket.NewTable(r.cfg.Slots)}
	d := f.table.BeginDump()
	f.mu.Unlock()
	defer d.Close()
	in, out := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		w := bufio.NewWriterSize(out, 256<<10)
		_, err := d.WriteTo(w)
		if err == nil {
			err = w.Flush()
		}
		out.CloseWithError(err)
	}()
	err := c.table.Restore(bufio.NewReaderSize(in, 256<<10))
	in.CloseWithError(err)
	<-written
	if err != nil {
		return nil, fmt.Errorf("copy the table: %w", err)
	}
	if tail {
		err = c.catchUp(r)
	}
	return c, err
}

// catchUp applies what the log has beyond the copy.
func (c *Copy) catchUp(r *Replica) error {
	last, _ := r.store.Last()
	for i := c.Look.Index + 1; i <= last; i++ {
		var l raft.Log
		if r.store.GetLog(i, &l) != nil {
			break // it was taken back meanwhile
		}
		if l.Type == raft.LogCommand {
			if err := c.table.Apply(l.Index, l.Data, nil); err != nil {
				return fmt.Errorf("apply entry %d of term %d to a copy: %w", l.Index, l.Term, err)
			}
		}
		c.Look.Index, c.Look.Term = l.Index, l.Term
	}
	c.Look.Time = c.table.Time()
	for i := range c.Look.Slots {
		c.Look.Slots[i] = c.table.Slot(uint16(i))
	}
	return nil
}

// NewCopy is an empty one, to Load slots into.
func NewCopy(slots int) *Copy { return &Copy{table: bucket.NewTable(slots)} }

// Slot is where a slot of the copy stands.
func (c *Copy) Slot(slot uint16) bucket.SlotInfo { return c.table.Slot(slot) }

// Load puts a slot into an empty place of the copy, from all its chunks, in order,
// at slotTime or the time that its last chunk says, if that is later.
func (c *Copy) Load(slot uint16, slotTime int64, chunks [][]byte) error {
	c.loads++
	m := bucket.Move{Slot: slot, Revision: c.loads}
	for i, chunk := range chunks {
		info, err := bucket.ParseChunk(chunk)
		if err != nil {
			return fmt.Errorf("chunk %d of slot %d: %w", i, slot, err)
		}
		if info.Slot != slot {
			return fmt.Errorf("chunk %d of slot %d is of slot %d", i, slot, info.Slot)
		}
		if err := c.apply(bucket.AdoptEntry(c.table.Time(), m, slotTime, chunk)); err != nil {
			return fmt.Errorf("chunk %d of slot %d, which has to follow the one before it: %w", i, slot, err)
		}
	}
	if st := c.table.Slot(slot).State; st != bucket.SlotComplete {
		return fmt.Errorf("the chunks of slot %d are not all there: it is %s after %d", slot, st, len(chunks))
	}
	return nil
}

// errRefusedHere is why a table did not obey an entry about a slot.
var errRefusedHere = errors.New("the table refuses it")

// apply has an entry of one item obeyed.
func (c *Copy) apply(entry []byte) error {
	for {
		var out bucket.Results
		if err := c.table.Apply(c.table.Index()+1, entry, &out); err != nil {
			return err
		}
		switch out.Items[0].Code {
		case bucket.Moved:
			return nil
		case bucket.MoveAgain:
		default:
			return errRefusedHere
		}
	}
}

// Drop makes the place of a loaded slot empty again.
func (c *Copy) Drop(slot uint16) {
	info := c.table.Slot(slot)
	m := []bucket.Move{{Slot: slot, Revision: info.Revision}}
	if c.apply(bucket.DropEntry(c.table.Time(), m)) != nil { // it was read by Whole, and is sealed
		_ = c.apply(bucket.ForgetEntry(c.table.Time(), m))
	}
	c.loads = max(c.loads, info.Revision)
}

// Reading is a slot of a copy being read, once, from its first chunk to its last.
type Reading struct{ export *bucket.Export }

// Salvage begins to read what a new epoch takes over of a slot: the buckets whose
// policies say so, and the results of requests. pass is of the chunks.
func (c *Copy) Salvage(slot uint16, pass uint64) *Reading {
	return &Reading{c.table.Salvage(slot, pass)}
}

// Whole begins to read all of a slot, of which the copy is no use afterwards except
// for Drop.
func (c *Copy) Whole(slot uint16, pass uint64) (*Reading, error) {
	info := c.table.Slot(slot)
	now, m := c.table.Time(), []bucket.Move{{Slot: slot, Revision: info.Revision}}
	if info.State == bucket.SlotComplete {
		if err := c.apply(bucket.OwnEntry(now, m)); err != nil {
			return nil, fmt.Errorf("own slot %d in a copy: %w", slot, err)
		}
	}
	if info = c.table.Slot(slot); info.State == bucket.SlotHeld {
		m[0].Revision = info.Revision + 1
		if err := c.apply(bucket.SealEntry(now, m)); err != nil {
			return nil, fmt.Errorf("seal slot %d in a copy: %w", slot, err)
		}
	} else if info.State != bucket.SlotSealed {
		return nil, fmt.Errorf("slot %d is %s", slot, info.State)
	}
	e := c.table.Export(slot, pass)
	e.Restore()
	return &Reading{e}, nil
}

// Next is the next chunk, valid until the next call, of about maxBytes. It may
// take some ms: nothing waits for it but its caller.
func (d *Reading) Next(maxBytes int) (chunk []byte, last bool, err error) {
	for {
		if d.export.Ended() {
			return nil, false, errReplaced
		}
		if chunk, last = d.export.Final(maxBytes); chunk != nil || last {
			return chunk, last, nil
		}
	}
}

// Close ends the reading.
func (d *Reading) Close() { d.export.Close() }
