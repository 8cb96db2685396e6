package grpclimit

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ringlimit/ringlimit/client"
)

// What the statuses say, for programs and for people.
const (
	domain            = "ringlimit"
	reasonExceeded    = "RATE_LIMIT_EXCEEDED"
	reasonUnavailable = "LIMITER_UNAVAILABLE"
	reasonLost        = "PERMIT_LOST"
	unavailableText   = "the rate limiter is out of reach"
)

// pushback is the trailer that tells a client of gRPC when to retry: milliseconds, or -1
// for never.
const pushback = "grpc-retry-pushback-ms"

// The reasons of decisions that mean more here than their text.
const (
	limiterUnavailable = "limiter_unavailable"     // by a policy whose failure mode is closed
	deniedElsewhere    = "denied_by_another_limit" // final for this request id, …
	refunded           = "refunded"                // … as is this
)

// deny is how a denied call ends.
func (l *limiter) deny(ctx context.Context, c Call, r *client.Request, d client.Decision, trail func(metadata.MD)) error {
	wait, curable := cure(r, &d)
	ms := int64(-1)
	if curable {
		ms = pushbackMs(wait, l.jitter, rand.Float64())
	}
	trail(metadata.Pairs(pushback, strconv.FormatInt(ms, 10)))
	st := denial(r, &d, wait, curable)
	if l.onDeny != nil {
		if err := l.onDeny(ctx, c, d, st); err != nil {
			return err
		}
	}
	return st.Err()
}

// cure is the wait after which the same call may pass; curable is false if there is none.
// What is final for a request id is so for a retry that carries it again, as gRPC's own do;
// without an id of the caller's own, the next call has another and may come at once.
func cure(r *client.Request, d *client.Decision) (wait time.Duration, curable bool) {
	final := d.Reason == deniedElsewhere || d.Reason == refunded
	if d.RetryAfter < 0 || final && r.RequestID != "" {
		return 0, false
	}
	return d.RetryAfter, true
}

// pushbackMs is a wait in ms, rounded up, with the part by, 0 … 1, of its jitter. A wait
// that some clients cannot read, of more than 24 days, is -1.
func pushbackMs(wait time.Duration, jitter, by float64) int64 {
	longer := wait + time.Duration(float64(wait)*jitter*by)
	ms := int64(longer / time.Millisecond)
	if longer%time.Millisecond > 0 {
		ms++
	}
	if longer < wait || ms > math.MaxInt32 {
		return -1
	}
	return ms
}

// denial is the status of a denied call.
func denial(r *client.Request, d *client.Decision, wait time.Duration, curable bool) *status.Status {
	details := []protoadapt.MessageV1{}
	if curable {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	}
	if d.Reason == limiterUnavailable {
		details = append(details, info(reasonUnavailable, d))
		return withDetails(status.New(codes.Unavailable, unavailableText), details...)
	}
	if q := quota(r, d); len(q.Violations) > 0 {
		details = append(details, q)
	}
	details = append(details, info(reasonExceeded, d))
	return withDetails(status.New(codes.ResourceExhausted, text(d, wait, curable)), details...)
}

// text is for people.
func text(d *client.Decision, wait time.Duration, curable bool) string {
	var b strings.Builder
	b.WriteString("rate limit exceeded")
	if d.PolicyID != "" {
		fmt.Fprintf(&b, ": policy %s", d.PolicyID)
	}
	if curable {
		fmt.Fprintf(&b, ", retry in %v", wait)
	} else {
		fmt.Fprintf(&b, ", a retry will not help (%s)", d.Reason)
	}
	return b.String()
}

// quota has a violation for each policy that denies because of what was spent.
func quota(r *client.Request, d *client.Decision) *errdetails.QuotaFailure {
	q := &errdetails.QuotaFailure{}
	for _, a := range d.All() {
		if a.Allowed || a.Shadow || a.Reason == limiterUnavailable || a.Reason == deniedElsewhere {
			continue
		}
		q.Violations = append(q.Violations, &errdetails.QuotaFailure_Violation{
			Subject:     subject(r, a.PolicyID),
			Description: fmt.Sprintf("policy %s: %s, %d of %d left", a.PolicyID, a.Reason, a.Remaining, a.Limit),
			QuotaId:     a.PolicyID,
			QuotaValue:  int64(min(a.Limit, math.MaxInt64)),
		})
	}
	return q
}

// subject is whose quota it is: the tenant, else the first principal that is not a secret,
// else all that one policy counts.
func subject(r *client.Request, policyID string) string {
	if r.Tenant != "" {
		return strings.ToValidUTF8("tenant:"+r.Tenant, "\uFFFD")
	}
	for _, p := range r.Principals {
		if p.Type != "api_key" && p.Type != "oauth_token" {
			return strings.ToValidUTF8(p.Type+":"+p.ID, "\uFFFD")
		}
	}
	return "policy:" + policyID
}

// info is what programs act on; d is nil where nothing was decided.
func info(reason string, d *client.Decision) *errdetails.ErrorInfo {
	e := &errdetails.ErrorInfo{Reason: reason, Domain: domain}
	if d == nil {
		return e
	}
	e.Metadata = map[string]string{"reason": d.Reason}
	if d.PolicyID != "" {
		e.Metadata["policy_id"] = d.PolicyID
		e.Metadata["policy_version"] = strconv.FormatUint(d.PolicyVersion, 10)
		e.Metadata["limit"] = strconv.FormatUint(d.Limit, 10)
		e.Metadata["remaining"] = strconv.FormatUint(d.Remaining, 10)
	}
	if d.Degraded {
		e.Metadata["failure_mode"] = string(d.FailureMode)
	}
	return e
}

// withDetails adds details; without them if they cannot be encoded, because a call must
// end with its code in any case.
func withDetails(st *status.Status, details ...protoadapt.MessageV1) *status.Status {
	if with, err := st.WithDetails(details...); err == nil {
		return with
	}
	return st
}
