package group

import (
	"context"
	"math"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

// A slot moves through the logs of two groups, see cluster/move.go. Each step is an
// entry here, committed by the driver between two batches. Every step may be
// repeated: an outcome that is unknown is settled by asking again.

// Seal makes the group take nothing more for the slots of moves, which it holds.
// done says of each whether it is sealed now; those that are not were in another
// state, or a later move of the slot is known. The error kinds are those of Take.
func (r *Replica) Seal(ctx context.Context, moves []bucket.Move) (done []bool, err error) {
	return r.moved(ctx, moves, bucket.SealEntry)
}

// Unseal ends Seal after a cancelled move: the slots are held again.
func (r *Replica) Unseal(ctx context.Context, moves []bucket.Move) (done []bool, err error) {
	return r.moved(ctx, moves, bucket.UnsealEntry)
}

// Own makes slots held that have been adopted completely.
func (r *Replica) Own(ctx context.Context, moves []bucket.Move) (done []bool, err error) {
	return r.moved(ctx, moves, bucket.OwnEntry)
}

// Forget drops sealed slots: another group owns them.
func (r *Replica) Forget(ctx context.Context, moves []bucket.Move) (done []bool, err error) {
	return r.moved(ctx, moves, bucket.ForgetEntry)
}

// Drop gives up what was adopted of slots whose move was cancelled, and what may
// still arrive of them.
func (r *Replica) Drop(ctx context.Context, moves []bucket.Move) (done []bool, err error) {
	return r.moved(ctx, moves, bucket.DropEntry)
}

// maxMoves is how many moves one entry names.
const maxMoves = 1024

// moved commits entries of one kind for moves.
func (r *Replica) moved(ctx context.Context, moves []bucket.Move, entry func(int64, []bucket.Move) []byte) ([]bool, error) {
	var done []bool
	for len(moves) > 0 {
		some := moves[:min(len(moves), maxMoves)]
		moves = moves[len(some):]
		got, _, err := r.commit(ctx, 0, func(stamp int64) []byte { return entry(stamp, some) })
		if err != nil {
			return nil, err
		}
		done = append(done, got...)
	}
	return done, nil
}

// steps is what one entry about slots did.
type steps struct {
	done  []bool // of each of its items: it is obeyed, now or before
	again bool   // a part is done; the entry must be proposed again
	info  bucket.SlotInfo
}

// commit proposes an entry about slots until it needs no repetition, letting takes
// in between. info is what the table says of slot afterwards.
func (r *Replica) commit(ctx context.Context, slot uint16, entry func(stamp int64) []byte) (done []bool, info bucket.SlotInfo, err error) {
	for {
		answer := make(chan steps, 1) // the driver may be left behind
		err = r.ask(ctx, func(ctx context.Context, d *driver, gen uint64) error {
			got, err := d.step(ctx, gen, slot, entry)
			answer <- got
			return err
		})
		if err != nil {
			return nil, bucket.SlotInfo{}, err
		}
		if got := <-answer; !got.again {
			return got.done, got.info, nil
		}
	}
}

// step commits one entry about slots.
func (d *driver) step(ctx context.Context, gen uint64, slot uint16, entry func(stamp int64) []byte) (got steps, err error) {
	var out applied
	if err := d.propose(ctx, gen, proposal{entry: entry}, &out); err != nil {
		return got, d.r.outcome(err)
	}
	return d.r.result(slot, &out), nil
}

// result is what an entry about slots did, and where one of them stands.
func (r *Replica) result(slot uint16, out *applied) (got steps) {
	for i := range out.results.Items {
		code := out.results.Items[i].Code
		got.done = append(got.done, code == bucket.Moved)
		got.again = got.again || code == bucket.MoveAgain
	}
	got.info = r.fsm.slot(slot)
	return got
}

// slot is what the table says of a slot now.
func (f *fsm) slot(slot uint16) bucket.SlotInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.table.Slot(slot)
}

// Birth lets slots begin in a group of a new epoch, without what they held before.
func (r *Replica) Birth(ctx context.Context, births []bucket.Move) (done []bool, err error) {
	for len(births) > 0 {
		some := births[:min(len(births), maxMoves)]
		births = births[len(some):]
		got, _, err := r.commit(ctx, some[0].Slot, func(stamp int64) []byte { return bucket.BirthEntry(stamp, some) })
		if err != nil {
			return nil, err
		}
		done = append(done, got...)
	}
	return done, nil
}

// Slot is the state of a slot as of what is applied here; not ok if this replica
// does not serve, and others may know more.
func (r *Replica) Slot(slot uint16) (info bucket.SlotInfo, ok bool) {
	ok = r.servesNow()
	return r.fsm.slot(slot), ok
}

// SlotClock is the slot time of a slot as it would be now if it were not sealed, by
// this leader's clock: what the slot goes on with elsewhere.
func (r *Replica) SlotClock(slot uint16) int64 {
	now := r.lead.clock.Load().now()
	r.fsm.mu.Lock()
	defer r.fsm.mu.Unlock()
	return add(r.fsm.table.Slot(slot).Running, max(now-r.fsm.table.Time(), 0))
}

// Untouched returns those of slots that this group has never held nor seen a move
// of, as of what is applied here.
func (r *Replica) Untouched(slots []uint16) []uint16 {
	var out []uint16
	r.fsm.mu.Lock()
	defer r.fsm.mu.Unlock()
	for _, s := range slots {
		if i := r.fsm.table.Slot(s); i.State == bucket.SlotAbsent && i.Revision == 0 {
			out = append(out, s)
		}
	}
	return out
}

// when is the group time at a moment, also one before the clock was set.
func (c clock) when(at time.Time) int64 { return add(c.stamp, int64(at.Sub(c.at))) }

// add is a+b, saturated.
func add(a, b int64) int64 {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// errReplaced is why an export cannot go on: another one began, the slot was unsealed
// or forgotten, or a dump took the table's place.
var errReplaced = fault.New(fault.Conflict, "the reading of the slot has ended")

// Export reads a slot for a move, step by step; each step holds the table for
// about a millisecond at most, and the caller lets others in between. It may be
// used by one goroutine at a time. What it returns is valid until the next step.
type Export struct {
	r      *Replica
	table  *bucket.Table
	export *bucket.Export
}

// Export begins to read a slot; it ends an earlier reading of it. pass must be
// greater than that of any earlier one of the same move, see Pass.
func (r *Replica) Export(slot uint16, pass uint64) *Export {
	r.fsm.mu.Lock()
	defer r.fsm.mu.Unlock()
	return &Export{r: r, table: r.fsm.table, export: r.fsm.table.Export(slot, pass)}
}

// step runs f with the table, if it is still the one that is read.
func (e *Export) step(f func()) error {
	e.r.fsm.mu.Lock()
	defer e.r.fsm.mu.Unlock()
	if e.r.fsm.table != e.table || e.export.Ended() {
		return errReplaced
	}
	f()
	return nil
}

// Next returns the next chunk of the copy ahead, and whether more follows. A nil
// chunk was a step of looking.
func (e *Export) Next(maxBytes int) (chunk []byte, more bool, err error) {
	err = e.step(func() { chunk, more = e.export.Next(maxBytes) })
	return chunk, more, err
}

// Changed is how many cells must be sent again.
func (e *Export) Changed() (n int, err error) {
	err = e.step(func() { n = e.export.Changed() })
	return n, err
}

// Final returns the next chunk of what is left, once the slot is sealed. A nil
// chunk that is not the last was a step of looking.
func (e *Export) Final(maxBytes int) (chunk []byte, last bool, err error) {
	err = e.step(func() { chunk, last = e.export.Final(maxBytes) })
	return chunk, last, err
}

// Close ends the reading; writes to the slot then cost nothing more.
func (e *Export) Close() {
	e.r.fsm.mu.Lock()
	defer e.r.fsm.mu.Unlock()
	e.export.Close()
}
