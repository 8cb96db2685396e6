package grpclimit

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/client"
)

// pass is a call that may go on.
type pass struct {
	ctx  context.Context // of the handler
	held *holding        // nil: it holds no permit
}

// admit returns when a call may go on, with a pass that must be ended, or how it ends.
// trail sets its trailer.
func (l *limiter) admit(ctx context.Context, c Call, trail func(metadata.MD)) (*pass, error) {
	r := l.request(ctx, c)
	asked := time.Now()
	d, err := l.decider.Decide(ctx, r)
	switch {
	case err != nil:
		if err := l.failed(ctx, err); err != nil {
			return nil, err
		}
		return &pass{ctx: ctx}, nil
	case !d.Allowed && ctx.Err() != nil:
		return nil, gone(ctx.Err())
	case !d.Allowed:
		return nil, l.deny(ctx, c, &r, d, trail)
	}
	p := &pass{ctx: context.WithValue(ctx, decisionKey{}, &d)}
	if ids := permits(&d); len(ids) > 0 {
		p.hold(l.decider, r, ids, firstRenewal(&d, asked))
	}
	if err := p.wait(d.Delay); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// failed is how a call ends that was not decided; nil: it may go on.
func (l *limiter) failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return gone(ctx.Err())
	case errors.Is(err, fault.InvalidArgument):
		l.complaints.once(fieldOf(err), "ringlimit: a call has attributes that no node takes, and is refused", "error", err)
		return status.Errorf(codes.Internal, "the rate limiter cannot judge this call: %v", err)
	case errors.Is(err, fault.IDReused):
		return status.Error(codes.AlreadyExists, fault.IDReused.Error())
	case l.failOpen:
		l.undecided.open()
		return nil
	}
	l.undecided.unavailable()
	return withDetails(status.New(codes.Unavailable, unavailableText), info(reasonUnavailable, nil)).Err()
}

// fieldOf is the kind of an invalid request.
func fieldOf(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Field
	}
	return ""
}

// gone is the status of a context that has ended with err.
func gone(err error) error { return status.FromContextError(err).Err() }

// wait holds the call for as long as leaky buckets say, or until its context ends; not at
// all if that would be sooner.
func (p *pass) wait(delay time.Duration) error {
	if end, ok := p.ctx.Deadline(); ok && delay > 0 && time.Until(end) < delay {
		return gone(context.DeadlineExceeded)
	}
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.ctx.Done():
		}
	}
	if p.ctx.Err() == nil {
		return nil
	}
	return p.result(gone(p.ctx.Err()))
}

// end gives back what the call holds.
func (p *pass) end() {
	if p.held != nil {
		p.held.end()
	}
}

// lost is how the call ends if it has lost a permit, else nil.
func (p *pass) lost() error {
	if p.held == nil || !errors.Is(context.Cause(p.ctx), ErrPermitLost) {
		return nil
	}
	return withDetails(status.New(codes.Aborted, ErrPermitLost.Error()), info(reasonLost, nil)).Err()
}

// result is how the call ends whose handler returned err: one that stopped because the
// permit was lost says so, since its caller has not cancelled anything.
func (p *pass) result(err error) error {
	stopped := errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled
	if err == nil || !stopped {
		return err
	}
	if lost := p.lost(); lost != nil {
		return lost
	}
	return err
}

// permits are the ids of all permits that a request was granted, each once; those of
// policies in shadow mode too, which count what is given back as others do.
func permits(d *client.Decision) (ids []string) {
	if d.PermitID != "" {
		ids = append(ids, d.PermitID)
	}
	for i := range d.Limits {
		if id := d.Limits[i].PermitID; id != "" && id != d.PermitID {
			ids = append(ids, id)
		}
	}
	return ids
}
