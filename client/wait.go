package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
)

var (
	// ErrWaitTooLong is returned by Wait when the request can not be admitted before the
	// context's deadline. It comes at once, and is context.DeadlineExceeded too.
	ErrWaitTooLong = errors.New("the wait would outlast the deadline")
	// ErrNoWaitHelps is returned by Wait for a request that is denied however long it waits:
	// it costs more than its limit ever holds, nothing is allowed, or the denial is final for
	// its RequestID.
	ErrNoWaitHelps = errors.New("no wait helps")
)

// How those who wait are spread out. Each waits for as long as it was told and then for a
// random part of the spread, which doubles with every denial: many that wait for one bucket
// do not ask in one instant, and the more often they are denied the more seldom they ask.
const (
	leastSpread = time.Millisecond // of the first wait; a quarter of what was told, if that is more
	mostSpread  = time.Minute
	doublings   = 6
)

// giveBackTimeout is how long Wait takes to give back what it was granted and cannot use.
const giveBackTimeout = time.Second

// Wait decides r, and for as long as it is denied waits and asks again: for jobs in the
// background, which may be late. It waits for the time that each denial says, or a little
// longer, never less; where a leaky bucket admits it for later, until then. So a Decision
// without an error is admitted now.
//
// It ends early, with the last Decision beside the error, if no wait helps
// (ErrNoWaitHelps), if the wait cannot end before ctx's deadline (ErrWaitTooLong, at once),
// or when ctx ends. Errors of Decide that say that nothing was charged and may pass, as
// that of a busy cluster, are waited out; so are all that may pass where asking again cannot
// charge twice, because r has a RequestID or is a look. Others are returned.
//
// What was granted for a moment that comes too late is given back: permits, and the turn in
// a leaky bucket if r has a RequestID, which is used up by that: later takes under it are
// denied. Without one the turn stays taken.
func (c *Client) Wait(ctx context.Context, r Request) (Decision, error) {
	var pause pause
	for denials := 0; ; {
		d, err := c.Decide(ctx, r)
		switch {
		case err != nil:
			if !mayAskAgain(ctx, &r, err) {
				return d, err
			}
			pause.more()
			if slept := c.idle(ctx, time.Duration(pause.until), 0); slept != nil {
				return d, errors.Join(slept, err)
			}
			continue
		case d.Allowed:
			return d, c.awaitTurn(ctx, &r, &d)
		case final(&r, &d):
			return d, fmt.Errorf("%w: %s, policy %q", ErrNoWaitHelps, d.Reason, d.PolicyID)
		}
		wait, spread := d.RetryAfter, spreadOf(d.RetryAfter, denials)
		if denials++; wait == 0 { // another copy of it may pass at once, and may not
			pause.more()
			wait = time.Duration(pause.until)
		}
		if err := c.idle(ctx, wait, spread); err != nil {
			return d, fmt.Errorf("%w: denied by policy %q", err, d.PolicyID)
		}
	}
}

// more makes a pause the next longer one, as a time from now.
func (p *pause) more() {
	if p.length == 0 {
		p.begin(0)
	} else {
		p.next(0)
	}
}

// spreadOf is how much longer than wait somebody may wait who was denied so often before.
func spreadOf(wait time.Duration, denials int) time.Duration {
	first := min(max(wait/4, leastSpread), mostSpread)
	return min(first<<min(denials, doublings), mostSpread)
}

// final says whether a denial stands however long its caller waits.
func final(r *Request, d *Decision) bool {
	return d.RetryAfter < 0 || r.RequestID != "" && (d.Reason == "denied_by_another_limit" || d.Reason == "refunded")
}

// mayAskAgain says whether a request without a decision may be asked once more: it may get
// one, and is not charged twice by that.
func mayAskAgain(ctx context.Context, r *Request, err error) bool {
	var e *fault.Error
	if ctx.Err() != nil || errors.Is(err, errClosed) {
		return false
	}
	free := r.RequestID != "" || r.Look
	if late := (*deadlineError)(nil); errors.As(err, &late) {
		return free || !late.sent
	}
	if !errors.As(err, &e) {
		return false
	}
	switch e.Kind {
	case fault.Busy, fault.NoLeader, fault.NotReady, fault.Unavailable, fault.StoreFull, fault.NotHeld, fault.PolicyStale:
		return true
	case fault.OutcomeUnknown, fault.Deadline:
		return free
	}
	return false
}

// idle returns after at least wait, and at most spread more. It is an error if that cannot
// be before ctx ends: at once if its deadline says so.
func (c *Client) idle(ctx context.Context, wait, spread time.Duration) error {
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		if wait >= left {
			return fmt.Errorf("%w (%w): %v to wait, %v left", ErrWaitTooLong, context.DeadlineExceeded, wait, max(left, 0))
		}
		spread = min(spread, (left-wait)/2)
	}
	if spread = rand.N(spread + 1); wait <= math.MaxInt64-spread {
		wait += spread
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return reason(ctx)
	case <-c.ctx.Done():
		return errClosed
	}
}

// awaitTurn returns when a request that was admitted may go on, or gives back what it got.
func (c *Client) awaitTurn(ctx context.Context, r *Request, d *Decision) error {
	if d.Delay <= 0 {
		return nil
	}
	err := c.idle(ctx, d.Delay, 0)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w: admitted by policy %q in %v", err, d.PolicyID, d.Delay)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	for _, id := range d.PermitIDs() {
		if _, failed := c.Release(ctx, *r, id); failed != nil {
			err = errors.Join(err, fmt.Errorf("permit %s: %w", id, failed))
		}
	}
	if r.RequestID != "" && !d.Degraded {
		if _, _, failed := c.Refund(ctx, *r, 0); failed != nil {
			err = errors.Join(err, fmt.Errorf("the turn stays taken: %w", failed))
		}
	}
	return err
}
