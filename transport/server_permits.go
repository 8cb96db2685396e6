package transport

import (
	"context"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// bounded calls f unless the node is stopping, with at most limit of time.
func bounded[Resp any](ctx context.Context, s *Server, limit time.Duration, f func(context.Context) (*Resp, error)) (*Resp, error) {
	if s.isStopping() {
		return nil, errStopping
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return f(ctx)
}

func (s *Server) refund(ctx context.Context, r *pb.RefundRequest) (*pb.RefundResponse, error) {
	if err := wire.CheckRefund(r); err != nil {
		return nil, err
	}
	return bounded(ctx, s, s.options.Timeout, func(ctx context.Context) (*pb.RefundResponse, error) {
		return s.backend.Refund(ctx, r)
	})
}

func (s *Server) release(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error) {
	if err := wire.CheckPermit(r); err != nil {
		return nil, err
	}
	return bounded(ctx, s, s.options.Timeout, func(ctx context.Context) (*pb.PermitResponse, error) {
		return s.backend.Release(ctx, r)
	})
}

func (s *Server) renew(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error) {
	if err := wire.CheckPermit(r); err != nil {
		return nil, err
	}
	return bounded(ctx, s, s.options.Timeout, func(ctx context.Context) (*pb.PermitResponse, error) {
		return s.backend.Renew(ctx, r)
	})
}

// explain takes what Decide takes, and refuses what Decide refuses.
func (s *Server) explain(ctx context.Context, in *wire.Raw) (*pb.ExplainResponse, error) {
	q := requestsPool.Get().(*wire.Requests)
	defer requestsPool.Put(q)
	if err := q.Decide(in.B); err != nil {
		return nil, err
	}
	return bounded(ctx, s, s.options.Timeout, func(ctx context.Context) (*pb.ExplainResponse, error) {
		return s.backend.Explain(ctx, q.Message.Requests[0])
	})
}
