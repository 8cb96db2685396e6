package client

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/client/internal/fallback"
	"github.com/ringlimit/ringlimit/policy"
)

// FailureMode says how a decision was made that no bucket of the cluster made.
type FailureMode string

// The failure modes, as policy files have them.
const (
	ModeLocal    FailureMode = "local"     // by this client's share of the limit
	ModeClosed   FailureMode = "closed"    // denied, with Reason limiter_unavailable
	ModeOpen     FailureMode = "open"      // allowed
	ModeNoPolicy FailureMode = "no_policy" // no policy that may deny applies: by the set's no_match
)

// Why a call is decided here, for the metric.
type because int

const (
	becauseUnreached because = iota // every node refuses connections
	becauseOverdue                  // the policies' after has passed
	becauseDeadline                 // the caller's deadline has
	becauseBusy                     // the cluster is overloaded
	becauseFull                     // the cluster has no room for another bucket
	becauseTooOld                   // the cluster has lost what it knew of the call
	reasons
)

var becauseText = [reasons]string{"unreached", "overdue", "deadline", "busy", "store_full", "too_old"}

var (
	errUnreached = fault.New(fault.Unavailable, "every node refuses connections")
	errOverdue   = fault.New(fault.Deadline, "no answer within the time that the policies wait")
)

// instead answers a request that the cluster has not decided, by the failure modes of
// its policies. The error stays where no mode has a say: in what the request itself
// did wrong, for a caller that has gone away, and while the policies are not known.
func (c *Client) instead(k *call) (Decision, error) {
	rules := c.rules.Load()
	why, ok := k.whyInstead()
	if rules == nil || !ok {
		return Decision{}, k.err
	}
	q := k.request.policyRequest()
	if invalid := q.Validate(); invalid != nil {
		return Decision{}, invalid // as a node would say
	}
	if why == becauseBusy && rules.After(q) == policy.AfterDeadline {
		return Decision{}, k.err
	}
	now := time.Now()
	lasted := time.Duration(math.MaxInt64) // where there is no room, nodes decide open until it is over, and all modes but local
	if why != becauseFull {
		lasted = c.outageOf(k.group, c.outOfReach(k, why, rules.After(q)), now)
	}
	d := decisionOf(c.decider.Decide(rules, q, *c.share.Load(), lasted, now, now))
	c.countDegraded(d.FailureMode, why)
	return d, nil
}

// whyInstead says whether a call ended in a way that failure modes are for.
func (k *call) whyInstead() (because, bool) {
	err := k.err
	if k.refused != nil {
		err = k.refused
	}
	var e *fault.Error
	switch {
	case errors.Is(err, errUnreached):
		return becauseUnreached, true
	case errors.Is(err, errOverdue):
		return becauseOverdue, true
	case errors.Is(err, context.DeadlineExceeded):
		return becauseDeadline, true
	case errors.Is(err, fault.Busy):
		return becauseBusy, true
	case errors.Is(err, fault.TooOld) && k.request.RequestID == "":
		return becauseTooOld, true
	case errors.As(err, &e) && e.Kind == fault.StoreFull && e.Mode == string(ModeLocal):
		return becauseFull, true
	}
	return 0, false
}

// outOfReach says whether a call that is decided here tells that its group is out of
// reach: nothing came from there since it began, for as long as its policies wait. A
// caller with less patience, and a cluster that is slow with one call among others, or
// busy, are no outage.
func (c *Client) outOfReach(k *call, why because, after time.Duration) bool {
	if after == policy.AfterDeadline {
		after = policy.DefaultAfter
	}
	switch why {
	case becauseUnreached:
		return true
	case becauseOverdue, becauseDeadline:
		return c.now()-k.began >= int64(after) && k.group.answered.Load() < k.began
	}
	return false
}

// outageOf returns for how long a group has been out of reach, of which a call that is
// decided here is a sign or not.
func (c *Client) outageOf(g *group, sign bool, now time.Time) time.Duration {
	var since time.Time
	if at := c.unreachedSince.Load(); at > 0 {
		since = c.start.Add(time.Duration(at))
	}
	c.outageMu.Lock()
	defer c.outageMu.Unlock()
	if !sign {
		return g.outage.SoFar(now)
	}
	g.failing.Store(true)
	return g.outage.Lasted(since, now)
}

// answeredAgain notes that a group has decided.
func (c *Client) answeredAgain(g *group) {
	c.outageMu.Lock()
	defer c.outageMu.Unlock()
	g.failing.Store(false)
	g.outage.Answered()
}

// tooLate counts a decision of the cluster that came when its call had been given up:
// it stands in the cluster's books beside whatever the caller was told.
func (c *Client) tooLate(k *call, allowed bool) {
	if k.state.Load() != abandoned || !k.late.CompareAndSwap(false, true) {
		return
	}
	c.counts.late.Add(1)
	if allowed {
		c.counts.lateAllowed.Add(1)
	}
	c.meters.late(allowed)
}

func (c *Client) countDegraded(m FailureMode, why because) {
	c.counts.degraded.Add(1)
	c.meters.degraded(m, why)
}

// decisionOf tells the caller what the fallback says.
func decisionOf(f fallback.Decision) Decision {
	d := Decision{Degraded: true, FailureMode: ModeNoPolicy}
	if len(f.Limits) > 1 || f.Head < 0 && len(f.Limits) > 0 {
		d.Limits = make([]Answer, len(f.Limits))
		for i := range f.Limits {
			d.Limits[i] = answerOf(&f.Limits[i])
		}
	}
	if f.Head >= 0 {
		d.Answer = answerOf(&f.Limits[f.Head])
		d.FailureMode = FailureMode(f.Limits[f.Head].Mode.String())
		d.Delay = f.Delay
	} else {
		d.Allowed, d.Reason = f.Allowed, fallback.NoPolicy
		if !f.Allowed {
			d.RetryAfter = Never
		}
	}
	return d
}

func answerOf(l *fallback.Limit) Answer {
	return Answer{
		Allowed: l.Allowed, Limit: l.Capacity, Remaining: l.Remaining, ResetAfter: l.ResetAfter, RetryAfter: l.RetryAfter,
		Delay: l.Delay, PolicyID: l.Policy.ID, PolicyVersion: l.Version, Reason: l.Reason, Shadow: l.Shadow,
	}
}

// policyRequest is r in the words of package policy, as a node reads it.
func (r *Request) policyRequest() *policy.Request {
	q := &policy.Request{Tenant: r.Tenant, Route: r.Route, Plan: r.Plan, Region: r.Region, Cost: uint64(max(r.Cost, 1))}
	if r.Look {
		q.Cost = 0
	}
	for _, p := range r.Principals {
		q.Principals = append(q.Principals, policy.Principal{Type: p.Type, ID: p.ID})
	}
	for name, value := range r.Attributes {
		q.Attributes = append(q.Attributes, policy.Attribute{Name: name, Value: value})
	}
	for id, cost := range r.Costs {
		q.Costs = append(q.Costs, policy.PolicyCost{Policy: id, Cost: uint64(cost)})
	}
	return q
}
