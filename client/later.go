package client

import (
	"context"
	"errors"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// Refund gives back what the decision under r.RequestID took: at most cost from
// each limit, or all of it if cost is 0. r is the request as it was decided; its
// attributes say where that was. refunded is false if nothing was taken under
// the id, or it was given back before, be it by an earlier copy of this very
// call; either way no later copy of the request will take anything. limits are
// what each bucket holds now.
//
// Refund, Release and Renew do no more if done twice, so they are retried until
// the deadline, and after each kind of error that may pass.
func (c *Client) Refund(ctx context.Context, r Request, cost int64) (refunded bool, limits []Answer, err error) {
	q := &pb.RefundRequest{Subject: r.subject(), RequestId: r.RequestID, Cost: cost}
	if err := wire.CheckRefund(q); err != nil {
		return false, nil, err
	}
	got, err := unary(ctx, c, &r, func(ctx context.Context, l pb.LimiterClient) (*pb.RefundResponse, error) {
		return l.Refund(ctx, q)
	})
	c.denials.forget()
	return got.GetRefunded(), answers(got.GetLimits()), err
}

// Release frees the permit of a concurrency limit that r was granted before its
// time is up. held is false if it had ended already; nobody else's is freed then. A
// release whose answer is lost is sent again, and then held is false for what the
// first copy freed.
func (c *Client) Release(ctx context.Context, r Request, permitID string) (held bool, err error) {
	q := &pb.PermitRequest{Subject: r.subject(), PermitId: permitID}
	if err := wire.CheckPermit(q); err != nil {
		return false, err
	}
	got, err := unary(ctx, c, &r, func(ctx context.Context, l pb.LimiterClient) (*pb.PermitResponse, error) {
		return l.Release(ctx, q)
	})
	return got.GetHeld(), err
}

// Renew gives a permit its full time again, from now: it ends after left. held
// is false if it had ended already: whoever relied on it must stop.
func (c *Client) Renew(ctx context.Context, r Request, permitID string) (left time.Duration, held bool, err error) {
	q := &pb.PermitRequest{Subject: r.subject(), PermitId: permitID}
	if err := wire.CheckPermit(q); err != nil {
		return 0, false, err
	}
	got, err := unary(ctx, c, &r, func(ctx context.Context, l pb.LimiterClient) (*pb.PermitResponse, error) {
		return l.Renew(ctx, q)
	})
	return time.Duration(got.GetExpiresAfterNs()), got.GetHeld(), err
}

// subject is who asks for what, as a message.
func (r *Request) subject() *pb.Subject {
	s := &pb.Subject{Tenant: r.Tenant, Route: r.Route, Plan: r.Plan, Region: r.Region}
	for _, p := range r.Principals {
		s.Principals = append(s.Principals, &pb.Principal{Type: p.Type, Id: p.ID})
	}
	for name, value := range r.Attributes {
		s.Attributes = append(s.Attributes, &pb.Attribute{Name: name, Value: value})
	}
	return s
}

// How copies of a unary call are spaced, and how long one node may take for its.
const (
	unaryTimeout = time.Second
	unaryPause   = 20 * time.Millisecond
	unaryMost    = 200 * time.Millisecond
)

// unary makes a call that may be made twice, first at the leader of r's home,
// then at one node after the other, until one answers or the time is up.
func unary[R any](ctx context.Context, c *Client, r *Request, call func(context.Context, pb.LimiterClient) (R, error)) (R, error) {
	var none R
	if field, bad := r.badText(); bad {
		return none, fault.Field(field, "must be valid UTF-8")
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.options.timeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(errClosed) })()
	c.counts.requests.Add(1)
	c.budget.earn(1)
	var cause error
	unknown := false // of an earlier copy
	hint := ""
	for attempt := 0; ; attempt++ {
		switch err := reason(ctx); {
		case errors.Is(context.Cause(ctx), errClosed):
			return none, honest(unknown, errClosed)
		case err != nil:
			return none, c.gaveUp(err, attempt > 0, cause)
		}
		one, stop := context.WithTimeout(ctx, unaryTimeout)
		got, err := call(one, pb.NewLimiterClient(c.pick(r, hint, attempt).conn))
		stop()
		if err == nil {
			return got, nil
		}
		if ctx.Err() != nil && cause != nil {
			continue
		}
		cause = fault.FromStatus(err)
		var again bool
		if hint, again = c.again(cause); !again {
			return none, honest(unknown, cause)
		}
		unknown = unknown || mayHaveHappened(cause)
		c.counts.retries.Add(1)
		if hint == "" || attempt >= freeRedirects {
			sleep(ctx, time.Duration(jitter(min(int64(unaryPause)<<min(attempt, 4), int64(unaryMost)))))
		}
	}
}

// again says whether an error may pass, and who knows better, if that is known.
func (c *Client) again(err error) (hint string, again bool) {
	var e *fault.Error
	if !errors.As(err, &e) {
		return "", false
	}
	switch e.Kind {
	case fault.NotLeader:
		return e.Leader.GetGrpc(), true
	case fault.Busy:
		return "", c.budget.spend()
	case fault.NoLeader, fault.NotReady, fault.Unavailable, fault.OutcomeUnknown, fault.Deadline, fault.NotHeld, fault.PolicyStale:
		return "", true
	default:
		return "", false
	}
}

// pick chooses the node for an attempt: the one that was named, else at first
// the leader of r's home, else those that are up in turn, else any.
func (c *Client) pick(r *Request, hint string, attempt int) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if hint != "" {
		if n, err := c.node(hint, false); err == nil {
			return n
		}
	}
	if t := c.table.Load(); t != nil && attempt == 0 {
		if slot, ok := r.slot(t.hash, t.home); ok {
			if n := c.nodes[t.slots[slot].leader]; n != nil && n.isUp() {
				return n
			}
		}
	}
	for i := range c.order {
		if n := c.order[(c.turn+attempt+i)%len(c.order)]; n.isUp() {
			return n
		}
	}
	return c.order[(c.turn+attempt)%len(c.order)]
}
