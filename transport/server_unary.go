package transport

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// limiterDesc is the generated description of Limiter with handlers that decode
// by themselves: grpc would answer INTERNAL where the caller's bytes are wrong.
func limiterDesc() *grpc.ServiceDesc {
	d := pb.Limiter_ServiceDesc
	d.HandlerType = (*any)(nil)
	d.Methods = []grpc.MethodDesc{
		rawMethod(pb.Limiter_Decide_FullMethodName, "Decide", (*Server).decideOne),
		rawMethod(pb.Limiter_DecideBatch_FullMethodName, "DecideBatch", (*Server).decideBatch),
		method(pb.Limiter_GetRouting_FullMethodName, "GetRouting", (*Server).getRouting),
		method(pb.Limiter_Refund_FullMethodName, "Refund", (*Server).refund),
		method(pb.Limiter_Release_FullMethodName, "Release", (*Server).release),
		method(pb.Limiter_Renew_FullMethodName, "Renew", (*Server).renew),
		rawMethod(pb.Limiter_Explain_FullMethodName, "Explain", (*Server).explain),
		method(pb.Limiter_GetFallback_FullMethodName, "GetFallback", (*Server).getFallback),
	}
	d.Streams = []grpc.StreamDesc{{
		StreamName: "Stream", ServerStreams: true, ClientStreams: true,
		Handler: func(srv any, g grpc.ServerStream) error { return srv.(*Server).serveStream(g) },
	}}
	return &d
}

func clusterDesc() *grpc.ServiceDesc {
	d := pb.Cluster_ServiceDesc
	d.HandlerType = (*any)(nil)
	d.Methods = []grpc.MethodDesc{
		method(pb.Cluster_Join_FullMethodName, "Join", func(s *Server, ctx context.Context, r *pb.JoinRequest) (*pb.JoinResponse, error) {
			return s.backend.Join(ctx, r)
		}),
		method(pb.Cluster_Status_FullMethodName, "Status", func(s *Server, ctx context.Context, r *pb.StatusRequest) (*pb.StatusResponse, error) {
			return s.backend.Status(ctx, r)
		}),
		method(pb.Cluster_Members_FullMethodName, "Members", func(s *Server, ctx context.Context, r *pb.MembersRequest) (*pb.MembersResponse, error) {
			return s.backend.Members(ctx, r)
		}),
		method(pb.Cluster_Remove_FullMethodName, "Remove", func(s *Server, ctx context.Context, r *pb.RemoveRequest) (*pb.RemoveResponse, error) {
			return s.backend.Remove(ctx, r)
		}),
		method(pb.Cluster_Drain_FullMethodName, "Drain", func(s *Server, ctx context.Context, r *pb.DrainRequest) (*pb.DrainResponse, error) {
			return s.backend.Drain(ctx, r)
		}),
		method(pb.Cluster_Undrain_FullMethodName, "Undrain", func(s *Server, ctx context.Context, r *pb.UndrainRequest) (*pb.UndrainResponse, error) {
			return s.backend.Undrain(ctx, r)
		}),
	}
	d.Streams = []grpc.StreamDesc{backupStream()}
	return &d
}

// method is a unary method that protobuf decodes.
func method[Req, Resp any](full, name string, f func(*Server, context.Context, *Req) (*Resp, error)) grpc.MethodDesc {
	return rawMethod(full, name, func(s *Server, ctx context.Context, raw *wire.Raw) (*Resp, error) {
		in := new(Req)
		if err := proto.Unmarshal(raw.B, any(in).(proto.Message)); err != nil {
			return nil, fault.New(fault.InvalidArgument, "malformed message: %v", err)
		}
		return f(s, ctx, in)
	})
}

// rawMethod is a unary method that takes bytes, and returns bytes or a message.
func rawMethod[Resp any](full, name string, f func(*Server, context.Context, *wire.Raw) (*Resp, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, dec func(any) error, guard grpc.UnaryServerInterceptor) (any, error) {
		raw := new(wire.Raw)
		if err := dec(raw); err != nil {
			return nil, err // grpc's own: bytes always decode
		}
		call := func(ctx context.Context, _ any) (any, error) {
			if err := raw.Check(); err != nil {
				return nil, err
			}
			return f(srv.(*Server), ctx, raw)
		}
		return guard(ctx, raw, &grpc.UnaryServerInfo{Server: srv, FullMethod: full}, call)
	}}
}

func (s *Server) decideOne(ctx context.Context, in *wire.Raw) (*wire.Raw, error) {
	q := requestsPool.Get().(*wire.Requests)
	defer requestsPool.Put(q)
	if err := q.Decide(in.B); err != nil {
		return nil, err
	}
	r := s.timed(ctx, q)[0]
	if r.GetDecision() == nil {
		return nil, errorOf(r)
	}
	withLimits(r.GetDecision())
	return &wire.Raw{B: wire.AppendDecideResponse(nil, r.GetDecision())}, nil
}

// timed decides, and tells how long it took to answer BUSY.
func (s *Server) timed(ctx context.Context, q *wire.Requests) []*pb.Result {
	read := s.clock()
	results := s.decide(ctx, q, read, nil)
	if anyBusy(results) {
		s.options.Busy(time.Duration(s.clock() - read))
	}
	return results
}

// errorOf is the error of a result that is no decision.
func errorOf(r *pb.Result) error {
	if r.GetError() == nil {
		return fault.New(fault.OutcomeUnknown, "neither decision nor error")
	}
	return fault.FromProto(r.GetError())
}

func (s *Server) decideBatch(ctx context.Context, in *wire.Raw) (*wire.Raw, error) {
	q := requestsPool.Get().(*wire.Requests)
	defer requestsPool.Put(q)
	if err := q.Batch(in.B); err != nil {
		return nil, err
	}
	results := s.timed(ctx, q)
	for _, r := range results {
		withLimits(r.GetDecision())
	}
	return &wire.Raw{B: wire.AppendBatchResponse(nil, results)}, nil
}

func (s *Server) getRouting(context.Context, *pb.GetRoutingRequest) (*pb.Routing, error) {
	return s.backend.Routing(), nil
}

func (s *Server) getFallback(ctx context.Context, r *pb.GetFallbackRequest) (*pb.GetFallbackResponse, error) {
	return bounded(ctx, s, s.options.Timeout, func(ctx context.Context) (*pb.GetFallbackResponse, error) {
		return s.backend.GetFallback(ctx, r)
	})
}
