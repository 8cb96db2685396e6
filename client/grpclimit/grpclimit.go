// Package grpclimit puts a ringlimit cluster in front of a gRPC server.
//
//	c, err := client.New([]string{"10.0.0.1:7600", "10.0.0.2:7600"})
//	…
//	tenant := grpclimit.Tenant(grpclimit.Metadata("x-tenant"))
//	s := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(authenticate, grpclimit.UnaryServer(c, tenant)),
//		grpc.ChainStreamInterceptor(authenticateStream, grpclimit.StreamServer(c, tenant)),
//	)
//
// Each call is one take of cost 1, with the route GRPC:/package.Service/Method and the
// address of the peer as the principal ip (of IPv6 its /64); options say who calls and
// what it costs. A stream is one take when it opens, and one more for each message with
// PerMessage.
//
// What callers see instead of their answer:
//
//	RESOURCE_EXHAUSTED  denied. Details: RetryInfo with the exact wait, absent when no wait helps;
//	                    QuotaFailure with one violation for each policy that denies; ErrorInfo with
//	                    reason RATE_LIMIT_EXCEEDED, domain "ringlimit" and the metadata policy_id,
//	                    policy_version, limit, remaining and reason. Trailer grpc-retry-pushback-ms.
//	UNAVAILABLE         the limiter is out of reach, and the policy says closed or nobody knows what
//	                    the policies say; see FailOpen. ErrorInfo with reason LIMITER_UNAVAILABLE;
//	                    with closed also RetryInfo and the trailer.
//	INTERNAL            this server asks with attributes that no node takes: a fault of its options,
//	                    or of metadata that they pass on unchecked.
//	ALREADY_EXISTS      a request id set by Refine was used before, with other content.
//	ABORTED             the permit has ended while the handler ran. ErrorInfo with reason PERMIT_LOST.
//
// A call whose caller has gone, or whose deadline has passed, ends with its context's
// status. Clients of gRPC with a retry policy heed the trailer by themselves, if their
// policy names RESOURCE_EXHAUSTED.
//
// A leaky bucket's delay is waited before the handler runs: a call that cannot wait is
// refused, though its turn is taken, so a burst should drain within the shortest deadline.
// The permits of concurrency
// limits are held while it runs, renewed meanwhile, and released when it has returned or
// panicked. The answer waits for that for at most 100 ms, so that a caller who
// has it finds the permit free; the release itself is tried for 5 s, or until the Client
// is closed. A permit that is lost all the same ends the context of the handler, with
// client.ErrPermitLost as its cause.
package grpclimit

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/internal/clientip"
)

// Decider is what the interceptors ask; *client.Client is one. Its methods are called from
// many goroutines at once and return soon after their context has ended.
type Decider interface {
	// Decide is called once for each take.
	Decide(ctx context.Context, r client.Request) (client.Decision, error)
	client.Permits
}

// UnaryServer limits unary calls. It panics if an option is out of its range.
func UnaryServer(d Decider, opts ...Option) grpc.UnaryServerInterceptor {
	l := newLimiter(d, opts)
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		c := Call{Method: info.FullMethod, Message: request}
		if l.skip(ctx, c) {
			return handler(ctx, request)
		}
		trail := func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) } // fails only where there is no call
		p, err := l.admit(ctx, c, trail)
		if err != nil {
			return nil, err
		}
		defer p.end()
		answer, err := handler(p.ctx, request)
		return answer, p.result(err)
	}
}

// StreamServer limits streams. It panics if an option is out of its range.
func StreamServer(d Decider, opts ...Option) grpc.StreamServerInterceptor {
	l := newLimiter(d, opts)
	return func(server any, s grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		c := Call{Method: info.FullMethod, Stream: true}
		if l.skip(s.Context(), c) {
			return handler(server, s)
		}
		p, err := l.admit(s.Context(), c, s.SetTrailer)
		if err != nil {
			return err
		}
		defer p.end()
		limited := &stream{ServerStream: s, limiter: l, method: info.FullMethod, pass: p, each: l.perMessage && info.IsClientStream}
		defer limited.end()
		return p.result(handler(server, limited))
	}
}

// limiter is what all calls of one interceptor share.
type limiter struct {
	options
	decider    Decider
	complaints *complaints
	undecided  *meters
}

func newLimiter(d Decider, opts []Option) *limiter {
	l := &limiter{options: defaults(), decider: d}
	for _, o := range opts {
		o(&l.options)
	}
	if !(l.jitter >= 0 && l.jitter <= 1) { // so that it is no NaN
		panic(fmt.Sprintf("grpclimit: a jitter of %v, want 0 … 1", l.jitter))
	}
	if err := clientip.CheckBits(l.ipv6Bits); err != nil {
		panic("grpclimit: " + err.Error())
	}
	l.complaints = &complaints{log: l.logger}
	l.undecided = newMeters(l.meterProvider, l.logger)
	return l
}
