package transport

import (
	"context"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/api/fault"
)

// guardUnary maps errors to statuses and contains panics, after which it is not
// known what was done.
func (s *Server) guardUnary(ctx context.Context, in any, info *grpc.UnaryServerInfo, call grpc.UnaryHandler) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(info.FullMethod, p)
			out, err = nil, fault.ToStatus(fault.New(fault.OutcomeUnknown, "the node failed on this call"))
		}
	}()
	out, err = call(ctx, in)
	return out, fault.ToStatus(err)
}

// guardStream does the same for streams.
func (s *Server) guardStream(srv any, g grpc.ServerStream, info *grpc.StreamServerInfo, serve grpc.StreamHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(info.FullMethod, p)
			err = fault.ToStatus(errFailed)
		}
	}()
	return fault.ToStatus(serve(srv, g))
}
