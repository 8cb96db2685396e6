package client

import (
	"context"
	"errors"
	"time"
)

// keep renews one permit until ctx is done or it is lost. It ends at until if it is not
// renewed; zero: that is not known yet.
func (h *Held) keep(ctx context.Context, id string, until time.Time) {
	timer := time.NewTimer(untilRenewal(until, renewAfterGrant))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.closed():
			h.lose(errClosed)
			return
		case <-timer.C:
		}
		asked := time.Now()
		left, held, err := h.renew(ctx, id, until)
		passed := !until.IsZero() && !time.Now().Before(until)
		soonest := renewAfterGrant
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && held:
			until = asked.Add(left)
		case err == nil, passed, errors.Is(err, errClosed):
			h.lose(err)
			return
		default:
			h.told(err)
			soonest = renewAfterError
		}
		timer.Reset(untilRenewal(until, soonest))
	}
}

// closed is closed with the client that holds; nil where somebody else does.
func (h *Held) closed() <-chan struct{} {
	if c, ok := h.by.(*Client); ok {
		return c.ctx.Done()
	}
	return nil
}

// renew makes one renewal, within the time that the permit has.
func (h *Held) renew(ctx context.Context, id string, until time.Time) (left time.Duration, held bool, err error) {
	end := time.Now().Add(renewTimeout)
	if !until.IsZero() && until.Before(end) {
		end = until
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	return h.by.Renew(ctx, h.request, id)
}

// untilRenewal is how long to wait for the next one: half of the time that is left, but at
// least soonest, and never past the end.
func untilRenewal(until time.Time, soonest time.Duration) time.Duration {
	if until.IsZero() {
		return renewUnknown
	}
	left := time.Until(until)
	return min(max(left/2, soonest), max(left, 0))
}
