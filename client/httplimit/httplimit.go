// Package httplimit is middleware for net/http that asks a ringlimit cluster before it
// lets a request through:
//
//	limit := httplimit.New(c, httplimit.APIKey("X-API-Key"), httplimit.ClientIP())
//	http.ListenAndServe(":8080", limit(mux))
//
// c is a *client.Client. Options say who asks, which is what policies match and count
// by. The route is that of the pattern which the request meets in an http.ServeMux,
// written as METHOD:/path, never its path: a path that anybody can make up would be a
// bucket of its own. So wrap the mux, or each handler in it, or give a function
// with Route.
//
// Every response that a limit had a say in carries RateLimit and RateLimit-Policy. What
// else there is:
//
//	denied by a limit        429, with Retry-After unless no wait helps
//	no limiter within reach  503 limiter_unavailable, with Retry-After: where the
//	                         failure mode of the policy is closed, or where there is an
//	                         error and no decision; see FailOpen for the latter
//	a value that is no key   400 invalid_request: a tenant of more than 64 bytes, a key
//	                         that is not UTF-8. FailOpen lets none of these through, or
//	                         garbage would be a way around every limit
//	IdempotencyKey reused    409 request_id_reused or request_id_too_old
//
// All of them are problem documents (RFC 9457) that caches may not keep; see Denial
// and OnDeny. A request whose client has gone while it was waiting gets a bare 503,
// which nobody reads.
//
// A leaky bucket's delay is waited for, within the request's context: one that cannot wait
// is refused, though its turn is taken, so a burst should drain within the shortest
// deadline. A permit of a
// concurrency limit is held until the handler returns or panics, or the connection it
// hijacked is closed, and is renewed meanwhile. One that is lost all the same ends the
// context of the handler, with client.ErrPermitLost as its cause, and OnError is told; what
// the handler then answers is its own affair. Who hijacks a connection and returns is
// told by OnError alone.
package httplimit

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

// Decider is whom the middleware asks; *client.Client is one. Its methods are called by
// many goroutines at once. Those of Permits are called for permits alone, from goroutines
// that outlive their request by 5 s at most. One that has Scope too, as *client.Client, is
// asked what the policy counts by that denied, for Denial.Scope.
type Decider interface {
	Decide(ctx context.Context, r client.Request) (client.Decision, error)
	client.Permits
}

var _ Decider = (*client.Client)(nil)

// New returns middleware that asks d for every request. It may wrap any number of
// handlers, and nothing of it needs to be closed.
func New(d Decider, opts ...Option) func(http.Handler) http.Handler {
	o := defaults()
	for _, option := range opts {
		option(&o)
	}
	return func(next http.Handler) http.Handler {
		h := &handler{options: o, decider: d, next: next}
		h.mux, _ = next.(router)
		return h
	}
}

// handler is one handler behind the limiter. It never changes.
type handler struct {
	options
	decider Decider
	next    http.Handler
	mux     router // next, if it knows the patterns of requests; nil: it does not
}

// ServeHTTP asks, and lets the request through or answers it.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.skip != nil && h.skip(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	began := time.Now()
	q, err := h.request(r)
	var d client.Decision
	if err == nil {
		d, err = h.decider.Decide(r.Context(), q)
	}
	switch {
	case err != nil:
		h.failed(w, r, &q, err)
	case !d.Allowed:
		h.tell(w, &d)
		h.refuse(w, r, h.denied(&q, &d))
	default:
		h.tell(w, &d)
		h.admit(w, r, &q, &d, began)
	}
}

// admit holds what the decision granted for as long as the request is served.
func (h *handler) admit(w http.ResponseWriter, r *http.Request, q *client.Request, d *client.Decision, began time.Time) {
	ctx, p := h.hold(r, q, d, began)
	returned := false
	defer func() { p.handlerEnded(returned) }()
	if err := h.delay(ctx, d.Delay); err != nil {
		h.tooLong(w, r, q, d, err)
	} else {
		h.serve(context.WithValue(ctx, decisionKey{}, d), p.wrap(w), r)
	}
	returned = true
}

// serve calls the handler behind with ctx, which has the decision. The pattern goes
// back into r, where a mux would have put it: whoever logs around us looks there.
func (h *handler) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	inner := r.WithContext(ctx)
	defer func() { r.Pattern = inner.Pattern }()
	h.next.ServeHTTP(w, inner)
}

type decisionKey struct{}

// DecisionFrom returns the decision that let a request through, from the request's
// context: how much remains, whether it was made without the cluster, the fencing
// token of its permit. ok is false where no decision was made: skipped, or FailOpen.
func DecisionFrom(ctx context.Context) (d client.Decision, ok bool) {
	if p, ok := ctx.Value(decisionKey{}).(*client.Decision); ok {
		return *p, true
	}
	return client.Decision{}, false
}

// failed answers where there is no decision, or lets the request through.
func (h *handler) failed(w http.ResponseWriter, r *http.Request, q *client.Request, err error) {
	if gone(r) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	h.onError(r, err)
	d := failure(q, err)
	if h.failOpen && d.Status == http.StatusServiceUnavailable {
		h.next.ServeHTTP(w, r)
		return
	}
	h.refuse(w, r, d)
}

// gone says whether a request was cancelled: mostly because its client has gone, but it
// may be a server that ends. Hence a status, without which the answer would be 200.
func gone(r *http.Request) bool { return errors.Is(r.Context().Err(), context.Canceled) }

// delay waits, if the context lasts that long; it does not begin if it cannot.
func (h *handler) delay(ctx context.Context, d time.Duration) error {
	if d <= 0 || h.ignoreDelay {
		return nil
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tooLong answers a request whose turn comes later than it may wait.
func (h *handler) tooLong(w http.ResponseWriter, r *http.Request, q *client.Request, d *client.Decision, err error) {
	switch {
	case gone(r):
		w.WriteHeader(http.StatusServiceUnavailable)
	case errors.Is(err, client.ErrPermitLost):
		h.refuse(w, r, failure(q, err))
	default:
		h.refuse(w, r, h.overdue(q, d))
	}
}
