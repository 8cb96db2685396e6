package transport

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// requestsPool keeps decoded messages, which are large and short-lived.
var requestsPool = sync.Pool{New: func() any { return new(wire.Requests) }}

// timeout is how long a caller waits who says this, 0 for nothing.
func (s *Server) timeout(ns uint64) time.Duration {
	if ns > 0 && ns < uint64(s.options.Timeout) {
		return time.Duration(ns)
	}
	return s.options.Timeout
}

// decide answers all requests of q, which was read at that time of clock, bad ones
// with what is wrong with them. It never fails, and it waits no longer than the
// message allows. seats are those of its requests, if they were let in before.
func (s *Server) decide(ctx context.Context, q *wire.Requests, read int64, seats Seats) []*pb.Result {
	if s.isStopping() {
		return failAll(q.Len(), fault.New(fault.Unavailable, "node is stopping"))
	}
	if len(q.Message.Requests) == 0 {
		return merge(nil, q.Bad)
	}
	left := s.timeout(q.Message.TimeoutNs) - time.Duration(s.clock()-read)
	if left <= 0 {
		return failAll(q.Len(), errLate)
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	results := s.ask(ctx, &q.Message, seats)
	if len(q.Bad) > 0 {
		return merge(results, q.Bad)
	}
	return results
}

var errLate = fault.New(fault.Deadline, "before the request was looked at; nothing was charged")

// ask calls the backend and holds it to its contract. If it panics, or answers
// another number of requests, they may have been charged by then.
func (s *Server) ask(ctx context.Context, m *pb.StreamRequest, seats Seats) (results []*pb.Result) {
	n := len(m.Requests)
	defer func() {
		if p := recover(); p != nil {
			s.logPanic("Decide", p)
			results = failAll(n, fault.New(fault.OutcomeUnknown, "the node failed on this message"))
		}
	}()
	results = s.backend.Decide(ctx, m, seats)
	if len(results) != n {
		s.options.Logger.Error("backend answered the wrong number of requests", "requests", n, "results", len(results))
		return failAll(n, fault.New(fault.OutcomeUnknown, "%d results for %d requests", len(results), n))
	}
	return results
}

func (s *Server) logPanic(method string, p any) {
	s.options.Logger.Error("panic in a handler", "method", method, "panic", p, "stack", string(debug.Stack()))
}

// withLimits gives a decision of a single policy its one entry in limits, which
// only streams leave out. Where no policy applied there is none.
func withLimits(d *pb.Decision) {
	if len(d.GetLimits()) > 0 || d.GetPolicyId() == "" && d.GetPolicyVersion() == 0 {
		return
	}
	d.Limits = []*pb.LimitDecision{{
		Allowed: d.Allowed, Limit: d.Limit, Remaining: d.Remaining,
		ResetAfterNs: d.ResetAfterNs, RetryAfterNs: d.RetryAfterNs, DelayNs: d.DelayNs,
		PolicyId: d.PolicyId, PolicyVersion: d.PolicyVersion, Reason: d.Reason,
		PermitId: d.PermitId, FencingToken: d.FencingToken,
	}}
}

// merge puts the errors of bad requests between the results of the others.
func merge(good []*pb.Result, bad []wire.Bad) []*pb.Result {
	all := make([]*pb.Result, 0, len(good)+len(bad))
	for _, b := range bad {
		n := b.Index - len(all)
		all = append(all, good[:n]...)
		all = append(all, &pb.Result{Error: fault.ToProto(b.Err)})
		good = good[n:]
	}
	return append(all, good...)
}

func failAll(n int, err error) []*pb.Result {
	r := &pb.Result{Error: fault.ToProto(err)}
	all := make([]*pb.Result, n)
	for i := range all {
		all[i] = r
	}
	return all
}
