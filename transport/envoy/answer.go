package envoy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/policy"
)

// verdict is what became of one descriptor.
type verdict struct {
	outcome  outcome
	decision *pb.Decision // nil: no bucket was asked
	err      error        // of outcome none: why not
	charged  bool         // it has been charged, or may have been
}

// answer makes one status of each result, in order.
func (s *Server) answer(ctx context.Context, q *question, results []*pb.Result) (*rls.RateLimitResponse, error) {
	out := &rls.RateLimitResponse{
		OverallCode: rls.RateLimitResponse_OK, Statuses: make([]*rls.RateLimitResponse_DescriptorStatus, len(results)),
	}
	verdicts := make([]verdict, len(results))
	for i, r := range results {
		v := s.judge(ctx, q, i, r)
		if errors.Is(v.err, fault.InvalidArgument) {
			return nil, fmt.Errorf("descriptors[%d]: %w", i, v.err)
		}
		verdicts[i] = v
		s.counts.descriptors[v.outcome].Inc()
		out.Statuses[i] = s.status(ctx, &v)
		if out.Statuses[i].Code == rls.RateLimitResponse_OVER_LIMIT {
			out.OverallCode = rls.RateLimitResponse_OVER_LIMIT
		}
	}
	if out.OverallCode == rls.RateLimitResponse_OK {
		if err := nothing(verdicts); err != nil {
			return nil, err
		}
	}
	out.DynamicMetadata = degraded(verdicts)
	out.ResponseHeadersToAdd = headers(ctx, verdicts)
	return out, nil
}

// judge says what a result means.
func (s *Server) judge(ctx context.Context, q *question, i int, r *pb.Result) verdict {
	d := r.GetDecision()
	if d == nil {
		return s.undecided(ctx, q, i, r.GetError())
	}
	s.outages.end(d)
	v := verdict{outcome: over, decision: d, charged: d.GetAllowed() && !d.GetDegraded() && q.hits[i] == spend}
	switch {
	case d.GetDegraded() && d.GetAllowed():
		v.outcome, v.decision = opened, nil
	case d.GetDegraded():
		v.outcome, v.decision = closed, nil
	case q.hits[i] == refund:
		v.outcome = ok
	case d.GetAllowed():
		v.outcome = ok
	}
	return v
}

// undecided is the verdict on a descriptor that no bucket was asked for in time: that
// of its policies' failure mode.
func (s *Server) undecided(ctx context.Context, q *question, i int, e *pb.Error) verdict {
	err := fault.FromProto(e)
	if err == nil {
		err = fault.New(fault.OutcomeUnknown, "neither decision nor error")
	}
	v := verdict{outcome: none, err: err, charged: perhapsCharged(err)}
	switch {
	case errors.Is(err, fault.InvalidArgument):
	case q.hits[i] == refund:
		v.outcome = opened
	default:
		v.outcome = s.failure(ctx, q.requests.Message.Requests[i])
	}
	return v
}

func perhapsCharged(err error) bool {
	return errors.Is(err, fault.OutcomeUnknown) || errors.Is(err, fault.Deadline) || errors.Is(err, fault.Internal)
}

// nothing is the error of a call of which something could not be decided and nothing
// was denied: Envoy then goes by its failure_mode_deny. The code UNKNOWN instead would
// be let through whatever that says. UNAVAILABLE means that no descriptor was charged,
// so that a retry is harmless.
func nothing(verdicts []verdict) error {
	var first error
	charged := false
	for i := range verdicts {
		v := &verdicts[i]
		charged = charged || v.charged
		if v.outcome == none && first == nil {
			first = fmt.Errorf("descriptors[%d]: %w", i, v.err)
		}
	}
	switch {
	case first == nil:
		return nil
	case errors.Is(first, fault.Deadline):
		return first
	case charged:
		return fault.New(fault.OutcomeUnknown, "some descriptors may have been charged: %v", first)
	case errors.Is(first, fault.Busy):
		return first
	}
	return fault.New(fault.Unavailable, "%v", first)
}

// status is a verdict as Envoy reads it.
func (s *Server) status(ctx context.Context, v *verdict) *rls.RateLimitResponse_DescriptorStatus {
	out := &rls.RateLimitResponse_DescriptorStatus{Code: codes[v.outcome]}
	head := headline(v.decision)
	if head == nil {
		return out
	}
	out.CurrentLimit = limitOf(s.known.index(ctx), head)
	out.LimitRemaining = uint32(min(head.GetRemaining(), math.MaxUint32))
	out.DurationUntilReset = durationpb.New(wholeSeconds(head.GetResetAfterNs()))
	return out
}

var codes = [...]rls.RateLimitResponse_Code{
	ok: rls.RateLimitResponse_OK, over: rls.RateLimitResponse_OVER_LIMIT, opened: rls.RateLimitResponse_OK,
	closed: rls.RateLimitResponse_OVER_LIMIT, shared: rls.RateLimitResponse_OK, exhausted: rls.RateLimitResponse_OVER_LIMIT,
	none: rls.RateLimitResponse_UNKNOWN,
}

// answerOf is what a decision and the answer of one of its policies have in common.
type answerOf interface {
	GetAllowed() bool
	GetLimit() uint64
	GetRemaining() uint64
	GetResetAfterNs() int64
	GetRetryAfterNs() int64
	GetPolicyId() string
	GetPolicyVersion() uint64
}

// headline is the limit that a status tells: the decision's strictest or, where only
// policies in shadow mode applied, the first of those. nil: there is none.
func headline(d *pb.Decision) answerOf {
	switch {
	case d.GetPolicyId() != "":
		return d
	case len(d.GetLimits()) > 0:
		return d.Limits[0]
	}
	return nil
}

// units are the windows that Envoy has a word for.
var units = map[time.Duration]rls.RateLimitResponse_RateLimit_Unit{
	time.Second: rls.RateLimitResponse_RateLimit_SECOND, time.Minute: rls.RateLimitResponse_RateLimit_MINUTE,
	time.Hour: rls.RateLimitResponse_RateLimit_HOUR, 24 * time.Hour: rls.RateLimitResponse_RateLimit_DAY,
	7 * 24 * time.Hour: rls.RateLimitResponse_RateLimit_WEEK, 30 * 24 * time.Hour: rls.RateLimitResponse_RateLimit_MONTH,
	365 * 24 * time.Hour: rls.RateLimitResponse_RateLimit_YEAR,
}

// limitOf is a limit in the words of Envoy: the amount per unit where its window is
// one and nothing but the policy gave it, else the capacity without a unit.
func limitOf(ix *policy.Index, l answerOf) *rls.RateLimitResponse_RateLimit {
	out := &rls.RateLimitResponse_RateLimit{Name: l.GetPolicyId(), RequestsPerUnit: uint32(min(l.GetLimit(), math.MaxUint32))}
	if ix == nil {
		return out
	}
	p, ok := ix.Set().Find(l.GetPolicyId())
	if !ok || p.Version != l.GetPolicyVersion() || p.Limit.Burst != l.GetLimit() {
		return out // another version, or an override
	}
	if unit := units[time.Duration(p.Limit.Window)]; unit != 0 {
		out.RequestsPerUnit, out.Unit = uint32(p.Limit.Amount), unit
	}
	return out
}

// wholeSeconds rounds up: Envoy tells seconds, cut off.
func wholeSeconds(ns int64) time.Duration {
	d := time.Duration(max(0, ns))
	return (d + time.Second - 1).Truncate(time.Second)
}

// degraded is metadata for access logs, where an answer is that of a failure mode:
// which one, the strictest.
func degraded(verdicts []verdict) *structpb.Struct {
	mode, is := policy.Open, false
	for i := range verdicts {
		if m, ok := modes[verdicts[i].outcome]; ok {
			mode, is = stricter(mode, m), true
		}
	}
	if !is {
		return nil
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{"degraded": structpb.NewStringValue(mode.String())}}
}

// modes are the failure modes behind outcomes.
var modes = map[outcome]policy.FailureMode{
	opened: policy.Open, closed: policy.Closed, shared: policy.Local, exhausted: policy.Local,
}
