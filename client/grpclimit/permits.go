package grpclimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

// ErrPermitLost is the cause (context.Cause) of a handler's context that was cancelled because
// the permit of its call has ended while it ran: somebody else may hold it now. It happens
// if a renewal could not reach the cluster in time, or came after a restart that lost the
// bucket; never only because the cluster is out of reach, since then nobody knows.
var ErrPermitLost = errors.New("the permit of this call has ended")

// How permits are given back and kept.
const (
	releaseWait = 50 * time.Millisecond // of the answer, for the release
	permitCall  = 2 * time.Second       // of one release or renewal
	renewLeast  = time.Millisecond      // between two renewals
	// After a renewal that failed the next one is a quarter of the last wait later, within these.
	renewSoonest, renewLatest = 10 * time.Millisecond, time.Second
)

// holding is the permits of a call while its handler runs.
type holding struct {
	decider Decider
	request client.Request
	ids     []string
	ctx     context.Context         // of the calls about them: with the values of the handler's, without its end
	stop    context.CancelFunc      // ends the renewals
	lose    context.CancelCauseFunc // ends the handler's context
	running sync.WaitGroup          // the renewals
}

// hold keeps permits until end; the handler's context ends if one is lost. The first
// renewal is at first.
func (p *pass) hold(d Decider, r client.Request, ids []string, first time.Time) {
	h := &holding{decider: d, request: r, ids: ids, ctx: context.WithoutCancel(p.ctx)}
	p.ctx, h.lose = context.WithCancelCause(p.ctx)
	renewals, stop := context.WithCancel(h.ctx)
	h.stop = stop
	h.running.Go(func() { h.renew(renewals, time.Until(first)) })
	p.held = h
}

// firstRenewal is when half of the time of the permits is over, counted from before they
// were asked for. A bucket that has just granted one is fresh again when that ends.
func firstRenewal(d *client.Decision, asked time.Time) time.Time {
	shortest := time.Duration(-1)
	for _, a := range d.All() {
		if a.PermitID != "" && (shortest < 0 || a.ResetAfter < shortest) {
			shortest = a.ResetAfter
		}
	}
	return asked.Add(max(shortest, 0) / 2)
}

// renew gives the permits their full time again, for as long as ctx lasts and all are
// held: first after half of their time.
func (h *holding) renew(ctx context.Context, half time.Duration) {
	timer := time.NewTimer(half)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next, held := h.renewAll(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case !held:
			h.lose(ErrPermitLost)
			return
		case next > 0:
			half = next
			timer.Reset(half)
		default:
			timer.Reset(min(max(half/4, renewSoonest), renewLatest))
		}
	}
}

// renewAll renews each permit once. next is when half of the time of the first to end will
// be over, at least renewLeast; 0 if one could not be renewed, and may be held or not.
func (h *holding) renewAll(ctx context.Context) (next time.Duration, held bool) {
	failed := false
	for _, id := range h.ids {
		sent := time.Now()
		one, cancel := context.WithTimeout(ctx, permitCall)
		left, held, err := h.decider.Renew(one, h.request, id)
		cancel()
		if err == nil && !held {
			return 0, false
		}
		half := max(left/2-time.Since(sent), renewLeast)
		if failed = failed || err != nil; next == 0 || half < next {
			next = half
		}
	}
	if failed {
		return 0, true
	}
	return next, true
}

// end stops the renewals and releases the permits. It returns when that is done, or after
// releaseWait: a limiter that hangs must not be the slow part of a call.
func (h *holding) end() {
	h.stop()
	h.running.Wait()
	h.lose(nil)
	released := make(chan struct{}, len(h.ids))
	for _, id := range h.ids {
		go h.release(id, released) // ends by itself within permitCall, or when the Client is closed
	}
	timer := time.NewTimer(releaseWait)
	defer timer.Stop()
	for range h.ids {
		select {
		case <-released:
		case <-timer.C:
			return
		}
	}
}

// release gives one permit back; one that fails ends at its time.
func (h *holding) release(id string, released chan<- struct{}) {
	ctx, cancel := context.WithTimeout(h.ctx, permitCall)
	defer cancel()
	_, _ = h.decider.Release(ctx, h.request, id)
	released <- struct{}{}
}
