package transport_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
	"github.com/ringlimit/ringlimit/transport"
)

var force = grpc.ForceCodecV2(wire.Codec{})

// rawStream opens a stream that takes bytes, and reads the routing.
func (s *served) rawStream() grpc.ClientStream {
	g, err := s.conn.NewStream(s.t.Context(), &pb.Limiter_ServiceDesc.Streams[0], pb.Limiter_Stream_FullMethodName, force)
	if err != nil {
		s.t.Fatal(err)
	}
	s.rawRecv(g)
	return g
}

func (s *served) rawRecv(g grpc.ClientStream) *pb.StreamResponse {
	s.t.Helper()
	var in wire.Raw
	if err := g.RecvMsg(&in); err != nil {
		s.t.Fatal(err)
	}
	r := new(pb.StreamResponse)
	if err := proto.Unmarshal(in.B, r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func TestStreamAnswersByID(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			if m.Id == 1 {
				time.Sleep(time.Second) // a stuck group
			}
			if m.Session != 7 || m.Acked != 3 || m.Revision != 4 || m.Requests[0].GetSent().GetSession() != 7 {
				t.Errorf("the backend got %v", m)
			}
			return admit(ctx, m)
		}
		g := s.stream()
		for id := range uint64(3) {
			m := &pb.StreamRequest{Id: id + 1, Session: 7, Acked: 3, Revision: 4, Requests: requests(2)}
			m.Requests[0].Sent = &pb.Sent{Sequence: 1, Attempt: 1}
			s.send(g, m)
			if id > 0 {
				if r := s.recv(g); r.GetId() != id+1 || len(r.GetResults()) != 2 {
					t.Errorf("got %v", r)
				}
			}
		}
		if r := s.recv(g); r.GetId() != 1 {
			t.Errorf("got %v", r)
		}
		if err := g.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if r, err := g.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v, %v", r, err)
		}
	})
}

func TestHalfClosedStreamIsAnsweredToTheEnd(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			time.Sleep(time.Second)
			return admit(ctx, m)
		}
		g := s.stream()
		s.send(g, &pb.StreamRequest{Id: 1, Requests: requests(1)})
		_ = g.CloseSend()
		if r := s.recv(g); r.GetId() != 1 || r.GetResults()[0].GetDecision() == nil {
			t.Errorf("got %v", r)
		}
	})
}

func TestTooManyMessagesInFlightAreBusy(t *testing.T) {
	serve(t, transport.ServerOptions{Inflight: 4}, func(t *testing.T, s *served) {
		release := make(chan struct{})
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			<-release
			return admit(ctx, m)
		}
		g := s.stream()
		for id := range uint64(5) {
			s.send(g, &pb.StreamRequest{Id: id + 1, Requests: requests(2)})
		}
		r := s.recv(g)
		if r.GetId() != 5 || len(r.GetResults()) != 2 || r.GetResults()[1].GetError().GetCode() != pb.Code_CODE_BUSY {
			t.Errorf("got %v", r)
		}
		close(release)
		for range 4 {
			if r := s.recv(g); r.GetResults()[0].GetDecision() == nil {
				t.Errorf("got %v", r)
			}
		}
		synctest.Wait()
		s.send(g, &pb.StreamRequest{Id: 6, Requests: requests(1)})
		if r := s.recv(g); r.GetId() != 6 || r.GetResults()[0].GetDecision() == nil {
			t.Errorf("afterwards: %v", r)
		}
	})
}

func TestBusyIsTimedFromReading(t *testing.T) {
	told := make(chan time.Duration, 8)
	busy := func(after time.Duration) { told <- after }
	serve(t, transport.ServerOptions{Busy: busy}, func(t *testing.T, s *served) {
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			results := admit(ctx, m)
			if m.Id > 1 {
				time.Sleep(time.Duration(m.Id) * time.Second)
				results[1] = &pb.Result{Error: fault.ToProto(fault.Busy)}
			}
			return results
		}
		g := s.stream()
		for id := range uint64(2) {
			s.send(g, &pb.StreamRequest{Id: id + 1, Requests: requests(2)})
			s.recv(g)
		}
		if after := <-told; after != 2*time.Second || len(told) != 0 {
			t.Errorf("told %v and %d more; want 2 s alone", after, len(told))
		}
		s.b.decide = refuse(fault.Busy)
		if _, err := pb.NewLimiterClient(s.conn).Decide(s.t.Context(), requests(1)[0]); err == nil {
			t.Error("a unary call was not refused")
		}
		if after := <-told; after != 0 {
			t.Errorf("of a unary call told %v; want 0", after)
		}
	})
}

func TestRoutingIsSentWhenItChangedAndOnlyThen(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		g := s.stream()
		time.Sleep(time.Hour) // nothing for an hour
		s.send(g, &pb.StreamRequest{Id: 1, Requests: requests(1)})
		if r := s.recv(g); r.GetRouting() != nil || r.GetId() != 1 {
			t.Errorf("got %v", r)
		}
		for revision := uint64(2); revision < 5; revision++ {
			r := proto.Clone(s.b.Routing()).(*pb.Routing)
			r.Revision = revision
			s.b.route(r)
			if got := s.recv(g); got.GetId() != 0 || !proto.Equal(got.GetRouting(), r) {
				t.Errorf("got %v", got)
			}
		}
	})
}

func TestShutdownFinishesWhatItBegan(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			time.Sleep(time.Second)
			return admit(ctx, m)
		}
		idle, g := s.stream(), s.stream()
		s.send(g, &pb.StreamRequest{Id: 1, Requests: requests(1)})
		unary := make(chan error, 1)
		go func() {
			_, err := s.Decide(t.Context(), requests(1)[0])
			unary <- err
		}()
		synctest.Wait()
		done := make(chan time.Duration, 1)
		go func() {
			began := time.Now()
			s.server.Shutdown(t.Context())
			done <- time.Since(began)
		}()
		synctest.Wait()
		s.send(g, &pb.StreamRequest{Id: 2, Requests: requests(1)})
		if r := s.recv(g); r.GetId() != 2 || r.GetResults()[0].GetError().GetCode() != pb.Code_CODE_UNAVAILABLE {
			t.Errorf("while stopping: %v", r)
		}
		if r := s.recv(g); r.GetId() != 1 || r.GetResults()[0].GetDecision() == nil {
			t.Errorf("what was begun: %v", r)
		}
		for _, g := range []pb.Limiter_StreamClient{idle, g} {
			if _, err := g.Recv(); !errors.Is(fault.FromStatus(err), fault.Unavailable) {
				t.Errorf("the stream ends with %v", err)
			}
		}
		if err := <-unary; err != nil {
			t.Errorf("a unary call that was begun: %v", err)
		}
		if took := <-done; took != time.Second {
			t.Errorf("Shutdown took %v", took)
		}
	})
}

func TestStopWaitsForWhatStreamsStarted(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		running := 0
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			running++
			<-ctx.Done()
			time.Sleep(time.Second) // soon after ctx is done
			running--               // unsynchronised: Stop is what orders it
			return admit(ctx, m)
		}
		g := s.stream()
		s.send(g, &pb.StreamRequest{Id: 1, Requests: requests(1)})
		synctest.Wait()
		s.server.Stop()
		if running != 0 {
			t.Error("a worker outlives Stop")
		}
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			<-ctx.Done()
			return admit(ctx, m)
		}
		g := s.stream()
		s.send(g, &pb.StreamRequest{Id: 1, Requests: requests(1)})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		s.server.Shutdown(ctx)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("Shutdown took %v", took)
		}
		if _, err := g.Recv(); err == nil {
			t.Error("the stream goes on")
		}
	})
}
