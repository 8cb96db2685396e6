package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/control"
)

const (
	copyTries  = 16                     // attempts before a move is cancelled …
	copyLimit  = 2 * time.Minute        // … or how long they may take
	copyPause  = 50 * time.Millisecond  // after a failed attempt, doubled up to …
	copyMost   = 2 * time.Second        // … this
	sealedFor  = 700 * time.Millisecond // a slot is sealed for, before its move is cancelled: less than callers wait …
	perChange  = 4 * time.Microsecond   // … but for a slot that changes faster than it is copied, as long as its changes take …
	sealedMost = 5 * time.Second        // … up to this: else it could never move
	chunkWait  = 2 * time.Second        // for a chunk to be adopted, copied ahead …
	turnWait   = time.Second            // … of that for its turn at the target, which comes after those of others
	sendTries  = 4                      // of one chunk in one attempt
	turnTries  = 30                     // of these that found its turn far off
	sendPause  = 10 * time.Millisecond
	slotCost   = 512 << 10              // bytes that a slot counts for beside its own: what its entries cost two groups and the control group
	cancelWait = 200 * time.Millisecond // between two proposals to cancel
)

var (
	errRefused = fault.New(fault.Conflict, "the table refused")
	errOver    = fault.New(fault.Conflict, "the move is over")
	// errAgain is why a chunk may have arrived or not, and is to be sent again.
	errAgain = errors.New("the chunk was not acknowledged")
	// errTurn is what the target says of a chunk whose turn is far off.
	errTurn = fault.New(fault.Busy, "other slots come before this one")
	// errComplete says that the target has the whole slot already.
	errComplete = errors.New("the target has the whole slot")
)

// transfer copies one slot to its new group and has the move flipped.
type transfer struct {
	m      *mover
	move   control.Move
	term   uint64 // of the leadership
	cancel context.CancelFunc
	sealed time.Time // when it was seen to be sealed; zero: it is not yet

	changed int // buckets to send again then
}

// run tries until the move is flipped, or too much has failed: then it is
// cancelled. ctx ends when the move is not copying any more, or this replica does
// not lead.
func (t *transfer) run(ctx context.Context) {
	begun, pause := time.Now(), copyPause
	for try := 1; ; try++ {
		err := t.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			break
		}
		t.m.n.log.Info("a slot is not copied yet", "slot", t.move.Slot, "from", t.move.From, "to", t.move.To, "try", try, "error", err)
		if try == copyTries || time.Since(begun) > copyLimit || t.late() {
			t.giveUp(ctx, err)
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		if pause = min(2*pause, copyMost); !t.sealed.IsZero() {
			pause = sendPause
		}
	}
	<-ctx.Done() // until this node has the flip too
}

// late says whether the slot has been sealed for too long.
func (t *transfer) late() bool { return !t.sealed.IsZero() && time.Now().After(t.due()) }

// due is until when the slot may be sealed.
func (t *transfer) due() time.Time {
	return t.sealed.Add(min(sealedFor+time.Duration(t.changed)*perChange, sealedMost))
}

// giveUp has the move cancelled, unless it is flipped before.
func (t *transfer) giveUp(ctx context.Context, why error) {
	for {
		err := t.m.n.propose(ctx, control.CancelMoves{Moves: []control.MoveID{t.move.ID()}, Reason: why.Error()})
		if ctx.Err() != nil {
			return
		}
		t.m.n.log.Warn("the move of a slot is cancelled", "slot", t.move.Slot, "from", t.move.From, "to", t.move.To, "because", why, "error", err)
		select {
		case <-time.After(cancelWait):
		case <-ctx.Done():
			return
		}
	}
}

func (t *transfer) key() bucket.Move {
	return bucket.Move{Slot: t.move.Slot, Revision: t.move.Revision}
}

// attempt copies the slot under a pass of its own, and flips.
func (t *transfer) attempt(ctx context.Context) (err error) {
	info, ok := t.m.x.replica.Slot(t.move.Slot)
	switch {
	case !ok:
		return fault.NotLeader
	case info.Revision > t.move.Revision:
		return errOver
	}
	e := t.m.x.replica.Export(t.move.Slot, t.m.pass(t.term))
	defer e.Close()
	times := t.m.n.metrics.moves
	if info.State != bucket.SlotSealed {
		begun := time.Now()
		if err := t.copyAhead(ctx, e); err != nil {
			return err
		}
		times.took(partCopy, begun)
		begun = time.Now()
		through, err := t.seal(ctx)
		defer through()
		if err != nil {
			return err
		}
		times.took(partSeal, begun)
	}
	if t.sealed.IsZero() {
		t.sealed = time.Now()
		if t.changed, err = e.Changed(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithDeadline(ctx, t.due())
	defer cancel()
	begun := time.Now()
	if err := t.finish(ctx, e); err != nil {
		return err
	}
	times.took(partRest, begun)
	begun = time.Now()
	if err := t.m.flips.ask(ctx, t.move.ID()); err != nil {
		return err
	}
	times.took(partFlip, begun)
	times.took(partSealed, t.sealed)
	return nil
}

// copyAhead sends all buckets while the group serves them.
func (t *transfer) copyAhead(ctx context.Context, e *group.Export) error {
	select {
	case t.m.copies <- struct{}{}:
		defer func() { <-t.m.copies }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := t.m.n.chunks.wait(ctx, slotCost); err != nil {
		return err
	}
	for more := true; more; runtime.Gosched() {
		chunk, next, err := e.Next(chunkBytes)
		if err != nil {
			return err
		}
		if more = next; chunk == nil {
			continue
		}
		if err := t.m.n.chunks.wait(ctx, len(chunk)); err != nil {
			return err
		}
		if err := t.send(ctx, chunk, 0); err != nil {
			return err
		}
	}
	return nil
}

// seal stops the slot, where what comes after it is likely to succeed, together
// with others that are ready. The caller calls through when it has the flip, or not.
func (t *transfer) seal(ctx context.Context) (through func(), err error) {
	if !t.m.n.controlInReach() {
		return func() {}, fault.New(fault.NoLeader, "the control group has no leader within reach")
	}
	return t.m.seals.join(ctx, t.key())
}

// finish sends what is left of the sealed slot. It is done also when an earlier
// transfer of the same move has come to its end meanwhile.
func (t *transfer) finish(ctx context.Context, e *group.Export) error {
	for ; ; runtime.Gosched() {
		chunk, last, err := e.Final(chunkBytes)
		if err != nil {
			return err
		}
		if chunk != nil {
			// At each chunk, because the last one is not known before.
			err = t.send(ctx, chunk, t.m.x.replica.SlotClock(t.move.Slot))
		}
		switch {
		case errors.Is(err, errComplete):
			return nil
		case err != nil || last:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// send has a chunk adopted by the leader of the target, whoever that is; it is
// sent again while the outcome is not known, which does no harm, and as long as its
// turn has not come.
func (t *transfer) send(ctx context.Context, chunk []byte, slotTime int64) (err error) {
	for try, later := 1, 0; ; try++ {
		if err = t.sendOnce(ctx, chunk, slotTime); err == nil || try == sendTries || !errors.Is(err, errAgain) {
			return err
		}
		if errors.Is(err, fault.Busy) && later < turnTries {
			try, later = 0, later+1
		}
		select {
		case <-time.After(sendPause * time.Duration(try*try)):
		case <-ctx.Done():
			return err
		}
	}
}

func (t *transfer) sendOnce(ctx context.Context, chunk []byte, slotTime int64) error {
	n, to := t.m.n, t.move.To
	c, ok := n.table.leader(to)
	if !ok {
		return fmt.Errorf("%w: group %d has no leader", errAgain, to)
	}
	ctx, cancel := context.WithTimeout(ctx, chunkWait)
	defer cancel()
	body := adoptCall{group: to, epoch: c.epoch, move: t.key(), slotTime: slotTime, chunk: chunk}.encode()
	body, err := n.peers.CallBulk(ctx, c.node, methodAdopt, body)
	switch {
	case errors.Is(err, fault.InvalidArgument) || errors.Is(err, fault.Conflict):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errAgain, err)
	}
	a, err := parseAdopted(body)
	switch {
	case err != nil:
		return err
	case a.done:
		return nil
	case a.state == bucket.SlotComplete || a.state == bucket.SlotHeld:
		return errComplete
	}
	return fmt.Errorf("%w: the target's slot is %s, pass %d, chunk %d is next", errRefused, a.state, a.pass, a.next)
}
