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
	held *client.Held    // nil: it holds no permit
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
	p.ctx, p.held = client.Hold(p.ctx, l.decider, r, &d, client.AskedAt(asked), client.UntilReleased())
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

// releaseWait is how long an answer waits for its permits to be given back, so that a
// caller who has it finds them free: a limiter that hangs must not be the slow part.
const releaseWait = 100 * time.Millisecond

// end gives back what the call holds.
func (p *pass) end() {
	if p.held == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseWait)
	defer cancel()
	_ = p.held.Release(ctx) // a permit that is not given back ends by itself
}

// lost is how the call ends if it has lost a permit, else nil.
func (p *pass) lost() error {
	if !errors.Is(context.Cause(p.ctx), client.ErrPermitLost) {
		return nil
	}
	return withDetails(status.New(codes.Aborted, client.ErrPermitLost.Error()), info(reasonLost, nil)).Err()
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
