package transport

import (
	"context"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// What follows is the service for callers in this process, such as HTTP: with the
// bounds and guards that it has for those over gRPC.

// Decide answers the requests of q, bad ones with what is wrong with them: exactly one
// result each, in order. The others must have passed wire.CheckDecide. A decision of
// one policy may leave Limits out.
func (s *Server) Decide(ctx context.Context, q *wire.Requests) []*pb.Result {
	return s.timed(ctx, q)
}

// Refund gives back what a decision under the caller's own id took.
func (s *Server) Refund(ctx context.Context, r *pb.RefundRequest) (*pb.RefundResponse, error) {
	return s.refund(ctx, r)
}

// Release frees a permit before its time.
func (s *Server) Release(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error) {
	return s.release(ctx, r)
}

// Renew gives a permit its full time again, from now.
func (s *Server) Renew(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error) {
	return s.renew(ctx, r)
}

// Status tells about the cluster.
func (s *Server) Status(ctx context.Context, r *pb.StatusRequest) (*pb.StatusResponse, error) {
	return bounded(ctx, s, s.options.Timeout, func(ctx context.Context) (*pb.StatusResponse, error) {
		return s.backend.Status(ctx, r)
	})
}
