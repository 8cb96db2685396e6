package envoy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/policy"
)

// outages are since when requests of policies that open for a time cannot be decided.
type outages struct {
	going atomic.Bool // whether there is any
	mu    sync.Mutex  // guards since
	since map[string]time.Time
}

// lasted is how long requests of a policy could not be decided, with this one.
func (o *outages) lasted(policy string, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	begun, ok := o.since[policy]
	if !ok {
		if o.since == nil {
			o.since = map[string]time.Time{}
		}
		o.since[policy], begun = now, now
		o.going.Store(true)
	}
	return now.Sub(begun)
}

// end is told of each decision: the policies that made it can be asked.
func (o *outages) end(d *pb.Decision) {
	if !o.going.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, d.GetPolicyId())
	for _, l := range d.GetLimits() {
		delete(o.since, l.GetPolicyId())
	}
	o.going.Store(len(o.since) > 0)
}

// failure is what is answered to a request that could not be decided: what its policies
// say, the strictest of them: closed, then local, then open. Where none can deny it is
// as the set's no_match has it. Without any knowledge of them it is none.
func (s *Server) failure(ctx context.Context, q *pb.DecideRequest) outcome {
	ix := s.known.index(ctx)
	if ix == nil {
		return none
	}
	now, mode, applies := time.Now(), policy.Open, false
	hits := ix.Match(requestOf(q), nil)
	locals := hits[:0]
	for _, h := range hits {
		if h.Policy.Mode == policy.Shadow {
			continue
		}
		applies = true
		u := h.Policy.OnUnavailable
		lasted := time.Duration(0)
		if u.Mode == policy.Open {
			lasted = s.outages.lasted(h.Policy.ID, now)
		}
		m := u.At(lasted)
		mode = stricter(mode, m)
		if m == policy.Local {
			locals = append(locals, h)
		}
	}
	switch {
	case !applies && ix.Set().NoMatch == policy.Deny, mode == policy.Closed:
		return closed
	case mode == policy.Open:
		return opened
	}
	switch admitted, known := s.share.decide(locals, now); {
	case !known:
		return none
	case admitted:
		return shared
	}
	return exhausted
}

func stricter(a, b policy.FailureMode) policy.FailureMode {
	for _, m := range []policy.FailureMode{policy.Closed, policy.Local} {
		if a == m || b == m {
			return m
		}
	}
	return policy.Open
}

// requestOf is a request as policies match it.
func requestOf(q *pb.DecideRequest) *policy.Request {
	s := q.GetSubject()
	r := &policy.Request{Tenant: s.GetTenant(), Plan: s.GetPlan(), Region: s.GetRegion(), Cost: uint64(q.GetCost())}
	for _, a := range s.GetAttributes() {
		r.Attributes = append(r.Attributes, policy.Attribute{Name: a.GetName(), Value: a.GetValue()})
	}
	return r
}
