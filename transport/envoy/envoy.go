// Package envoy is Envoy's rate limit service, envoy.service.ratelimit.v3, over the
// service that a node has for all its callers: each descriptor of a request is one
// decision of its own, whose attributes are what package policy/descriptor makes of
// it.
//
// A denial is an answer, and so is what a policy's failure mode says while the
// cluster cannot be asked. A call fails only where there is nothing to answer: the
// request is wrong, or the node knows no policies. docs/envoy.md tells operators all of
// it.
package envoy

import (
	"context"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// Service is what decides: the gRPC server of a node is one. It is called by many
// goroutines at once.
type Service interface {
	// Decide answers the requests of q, which have passed wire.CheckDecide: exactly one
	// result each, in order, soon after ctx is done at the latest. q is the callee's
	// until it returns, no longer; strings in it may be kept.
	Decide(ctx context.Context, q *wire.Requests) []*pb.Result
}

// Options are what a node adds. Service and Fallback must be set.
type Options struct {
	Service Service
	// Fallback tells the policies in force, as a node tells them to clients: by them a
	// limit has a unit, and a request that cannot be decided a failure mode.
	Fallback func(ctx context.Context, r *pb.GetFallbackRequest) (*pb.GetFallbackResponse, error)
	// Nodes is how many nodes there are: among so many the limits are divided while the
	// cluster does not decide. nil: one.
	Nodes func() int
	// Go starts a function that whoever stops the node waits for; nil: a goroutine of
	// its own. It is called while a call is being answered, never later.
	Go func(func())
	// Timeout is how long a call without a deadline may take; 0: 15 ms, which is
	// three quarters of what Envoy waits by default.
	Timeout time.Duration
}

// defaultTimeout is Options.Timeout.
const defaultTimeout = 15 * time.Millisecond

// Server answers ShouldRateLimit, called by many goroutines at once.
type Server struct {
	service Service
	timeout time.Duration
	known   *known
	outages outages
	share   share
	counts  *counts
}

// New returns a server.
func New(o Options) *Server {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Go == nil {
		o.Go = func(f func()) { go f() }
	}
	if o.Nodes == nil {
		o.Nodes = func() int { return 1 }
	}
	return &Server{
		service: o.Service, timeout: o.Timeout, known: newKnown(o.Fallback, o.Go), share: share{nodes: o.Nodes, born: time.Now()},
		counts: newCounts(),
	}
}

// Register makes r serve s. The handler takes bytes, as those of all services of a
// node do: see wire.Codec.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	d := rls.RateLimitService_ServiceDesc
	d.HandlerType = (*any)(nil)
	d.Methods = []grpc.MethodDesc{{
		MethodName: "ShouldRateLimit",
		Handler: func(_ any, ctx context.Context, dec func(any) error, guard grpc.UnaryServerInterceptor) (any, error) {
			raw := new(wire.Raw)
			if err := dec(raw); err != nil {
				return nil, err // grpc's own: bytes always decode
			}
			if guard == nil {
				return s.serve(ctx, raw)
			}
			return guard(ctx, raw, &grpc.UnaryServerInfo{Server: s, FullMethod: rls.RateLimitService_ShouldRateLimit_FullMethodName}, s.serve)
		},
	}}
	r.RegisterService(&d, s)
}

// serve answers a request in bytes.
func (s *Server) serve(ctx context.Context, in any) (any, error) {
	raw := in.(*wire.Raw)
	if err := raw.Check(); err != nil {
		return nil, err
	}
	request, err := decode(raw.B)
	if err != nil {
		return nil, err
	}
	return s.ShouldRateLimit(ctx, request)
}

// decode reads a request, also one with text that is not UTF-8.
func decode(b []byte) (*rls.RateLimitRequest, error) {
	in := new(rls.RateLimitRequest)
	err := proto.Unmarshal(b, in)
	if err == nil {
		return in, nil
	}
	if mended, ok := requestTexts.mend(nil, b); ok {
		in.Reset()
		err = proto.Unmarshal(mended, in)
	}
	if err != nil {
		return nil, fault.New(fault.InvalidArgument, "malformed message: %v", err)
	}
	return in, nil
}

// ShouldRateLimit answers a request. Errors are of a fault kind: InvalidArgument for
// a request that is wrong, and what Server.nothing says where there is no answer.
func (s *Server) ShouldRateLimit(ctx context.Context, in *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	began := time.Now()
	q, err := read(in)
	if err != nil {
		return nil, err
	}
	decideCtx, cancel := s.withDeadline(ctx)
	defer cancel()
	out, err := s.answer(decideCtx, q, s.service.Decide(decideCtx, &q.requests))
	if err == nil {
		s.counts.answered(began)
	}
	return out, err
}

// withDeadline ends the time for a decision early enough for the answer to reach the
// caller: after three quarters of what the caller gives.
func (s *Server) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := s.timeout
	if end, ok := ctx.Deadline(); ok {
		timeout = time.Until(end) / 4 * 3
	}
	return context.WithTimeout(ctx, timeout)
}
