package transport_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
	"github.com/ringlimit/ringlimit/transport"
	"github.com/ringlimit/ringlimit/transport/rest"
)

var _ rest.Service = (*transport.Server)(nil)

// TestLocalCallersHaveTheSameGuards as those over gRPC.
func TestLocalCallersHaveTheSameGuards(t *testing.T) {
	var busy []time.Duration
	o := transport.ServerOptions{Timeout: 3 * time.Second, Busy: func(after time.Duration) { busy = append(busy, after) }}
	serve(t, o, func(t *testing.T, s *served) {
		ask := func(n int, bad ...wire.Bad) []*pb.Result {
			q := &wire.Requests{Bad: bad}
			q.Message.Requests = requests(n)
			return s.server.Decide(t.Context(), q)
		}
		wrong := fault.Field("cost", "so")
		r := ask(2, wire.Bad{Index: 1, Err: wrong})
		if len(r) != 3 || r[0].GetDecision() == nil || r[1].GetError().GetField() != "cost" || r[2].GetDecision() == nil {
			t.Errorf("got %v", r)
		}
		s.b.decide = func(context.Context, *pb.StreamRequest) []*pb.Result { panic("boom") }
		if r := ask(1); r[0].GetError().GetCode() != pb.Code_CODE_OUTCOME_UNKNOWN {
			t.Errorf("a panic became %v", r)
		}
		s.b.decide = refuse(fault.Busy)
		if ask(1); len(busy) != 1 {
			t.Errorf("busy was told %d times", len(busy))
		}
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			<-ctx.Done()
			return refuse(ctx.Err())(ctx, m)
		}
		began := time.Now()
		if r := ask(1); r[0].GetError().GetCode() != pb.Code_CODE_DEADLINE || time.Since(began) != 3*time.Second {
			t.Errorf("got %v after %v", r, time.Since(began))
		}
		s.b.status = func() (*pb.StatusResponse, error) { return &pb.StatusResponse{ClusterId: "c"}, nil }
		if st, err := s.server.Status(t.Context(), nil); err != nil || st.GetClusterId() != "c" {
			t.Errorf("status %v, %v", st, err)
		}
		if _, err := s.server.Release(t.Context(), &pb.PermitRequest{}); !errors.Is(err, fault.InvalidArgument) {
			t.Errorf("release without a permit: %v", err)
		}
		s.server.Shutdown(t.Context())
		s.b.decide = admit
		if r := ask(1); r[0].GetError().GetCode() != pb.Code_CODE_UNAVAILABLE {
			t.Errorf("while stopping: %v", r)
		}
		for name, do := range map[string]func() error{
			"status": func() error { _, err := s.server.Status(t.Context(), nil); return err },
			"renew":  func() error { _, err := s.server.Renew(t.Context(), &pb.PermitRequest{PermitId: "p"}); return err },
		} {
			if err := do(); !errors.Is(err, fault.Unavailable) {
				t.Errorf("%s while stopping: %v", name, err)
			}
		}
	})
}
