package transport_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
	"github.com/ringlimit/ringlimit/transport"
)

func encode(t *testing.T, m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// badInputs are requests that no node may judge, with the field that is wrong.
func badInputs(t *testing.T) map[string][]byte {
	tooMany, tooBig, tooLong := &pb.Subject{}, int64(1_000_000_001), strings.Repeat("x", 65)
	for range 9 {
		tooMany.Principals = append(tooMany.Principals, &pb.Principal{Type: "user", Id: "u"})
	}
	return map[string][]byte{
		"cost":                     encode(t, &pb.DecideRequest{Cost: &tooBig}),
		"request_id":               encode(t, &pb.DecideRequest{RequestId: tooLong}),
		"sent.sequence":            encode(t, &pb.DecideRequest{Sent: &pb.Sent{Session: 7}}),
		"subject.principals":       encode(t, &pb.DecideRequest{Subject: tooMany}),
		"subject.tenant":           []byte("\x0a\x03\x0a\x01\xff"),
		"subject.principals[0].id": []byte("\x0a\x05\x12\x03\x12\x01\xff"),
	}
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.InvalidArgument || e.Field != field {
		t.Errorf("got %v, want an error about %s", err, field)
	}
}

func TestBadInputNamesTheField(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		g := s.rawStream()
		good := encode(t, requests(1)[0])
		for field, bad := range badInputs(t) {
			wantField(t, s.raw(pb.Limiter_Decide_FullMethodName, bad), field)

			batch := wire.AppendString(wire.AppendString(wire.AppendString(nil, 1, string(good)), 1, string(bad)), 1, string(good))
			var out wire.Raw
			var got pb.DecideBatchResponse
			if err := s.conn.Invoke(t.Context(), pb.Limiter_DecideBatch_FullMethodName, &wire.Raw{B: batch}, &out, force); err != nil {
				t.Errorf("%s: batch: %v", field, err)
				continue
			}
			if err := proto.Unmarshal(out.B, &got); err != nil {
				t.Fatal(err)
			}
			wantOneBad(t, got.Results, field)

			message := wire.AppendString(wire.AppendString(wire.AppendString(wire.AppendUint(nil, 1, 5), 5, string(good)), 5, string(bad)), 5, string(good))
			if err := g.SendMsg(&wire.Raw{B: message}); err != nil {
				t.Fatal(err)
			}
			wantOneBad(t, s.rawRecv(g).Results, field)
		}
	})
}

func wantOneBad(t *testing.T, results []*pb.Result, field string) {
	t.Helper()
	if len(results) != 3 || results[0].GetDecision() == nil || results[2].GetDecision() == nil {
		t.Errorf("%s: results %v", field, results)
		return
	}
	wantField(t, fault.FromProto(results[1].GetError()), "requests[1]."+field)
}

func TestWholeMessagesThatAreRefused(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		s.b.decide = func(context.Context, *pb.StreamRequest) []*pb.Result {
			t.Error("the backend was asked")
			return nil
		}
		wantField(t, s.raw(pb.Limiter_DecideBatch_FullMethodName, []byte(strings.Repeat("\x0a\x00", 1001))), "requests")
		wantField(t, s.raw(pb.Limiter_DecideBatch_FullMethodName, []byte(strings.Repeat("\x0a\x00", 300_000))), "requests")
		wantField(t, s.raw(pb.Limiter_Decide_FullMethodName, []byte("\x0a\xff")), "")
		wantField(t, s.raw(pb.Limiter_GetRouting_FullMethodName, []byte("\xff")), "")
		wantField(t, s.raw(pb.Cluster_Remove_FullMethodName, []byte("\x0a\x01\xff")), "") // not UTF-8
		large := make([]byte, wire.MaxMessage+1)
		err := s.raw(pb.Limiter_Decide_FullMethodName, large)
		wantField(t, err, "")
		if !strings.Contains(err.Error(), "1048577 bytes is longer than 1048576") {
			t.Error(err)
		}
		if err := s.raw(pb.Limiter_Decide_FullMethodName, make([]byte, 5<<20)); !errors.Is(err, fault.OutcomeUnknown) { // grpc's own, which could be about the answer
			t.Error(err)
		}
		for field, m := range map[string][]byte{
			"requests": append([]byte("\x08\x01"), strings.Repeat("\x2a\x00", 1001)...),
			"id":       []byte("\x2a\x00"),
			"":         large,
		} {
			g := s.rawStream()
			if err := g.SendMsg(&wire.Raw{B: m}); err != nil {
				t.Fatal(err)
			}
			wantField(t, fault.FromStatus(g.RecvMsg(new(wire.Raw))), field)
		}
	})
}

func TestAnswersOfUnaryCalls(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		r, err := s.Decide(t.Context(), requests(1)[0])
		if err != nil || !r.GetDecision().GetAllowed() || r.GetDecision().GetPolicyId() != "acme" {
			t.Errorf("got %v, %v", r, err)
		}
		b, err := s.DecideBatch(t.Context(), &pb.DecideBatchRequest{Requests: requests(1000)})
		if err != nil || len(b.GetResults()) != 1000 {
			t.Errorf("got %d results, %v", len(b.GetResults()), err)
		}
		if b, err = s.DecideBatch(t.Context(), &pb.DecideBatchRequest{}); err != nil || len(b.GetResults()) != 0 {
			t.Errorf("an empty batch: %v, %v", b, err)
		}
		if r, err := s.GetRouting(t.Context(), nil); err != nil || r.GetClusterId() != "quick" {
			t.Errorf("routing %v, %v", r, err)
		}
	})
}

// TestUnaryAnswersNameEveryLimit also where exactly one policy applied, which a
// stream leaves to the headline.
func TestUnaryAnswersNameEveryLimit(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		one := &pb.LimitDecision{Limit: 5, Remaining: 4, ResetAfterNs: 3, RetryAfterNs: 2, DelayNs: 1, PolicyId: "p", PolicyVersion: 7, Reason: "rate_limited"}
		two := []*pb.LimitDecision{one, {Allowed: true, PolicyId: "q"}}
		s.b.decide = func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
			var all []*pb.Result
			for _, limits := range [][]*pb.LimitDecision{nil, two} {
				all = append(all, &pb.Result{Decision: &pb.Decision{
					Limit: 5, Remaining: 4, ResetAfterNs: 3, RetryAfterNs: 2, DelayNs: 1, PolicyId: "p", PolicyVersion: 7, Reason: "rate_limited", Limits: limits,
				}})
			}
			all = append(all, &pb.Result{Decision: &pb.Decision{Allowed: true, Reason: "no_policy"}}, &pb.Result{Error: fault.ToProto(fault.Busy)})
			return all[:len(m.Requests)]
		}
		r, err := s.Decide(t.Context(), requests(1)[0])
		if err != nil || len(r.GetDecision().GetLimits()) != 1 || !proto.Equal(r.GetDecision().GetLimits()[0], one) {
			t.Errorf("got %v, %v", r, err)
		}
		b, err := s.DecideBatch(t.Context(), &pb.DecideBatchRequest{Requests: requests(4)})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{1, 2, 0, 0} {
			if l := b.GetResults()[i].GetDecision().GetLimits(); len(l) != want || want > 0 && !proto.Equal(l[0], one) {
				t.Errorf("result %d has limits %v, want %d", i, l, want)
			}
		}
		g := s.stream()
		s.send(g, &pb.StreamRequest{Id: 1, Requests: requests(1)})
		if l := s.recv(g).GetResults()[0].GetDecision().GetLimits(); len(l) != 0 {
			t.Errorf("on a stream: %v", l)
		}
	})
}

func TestErrorsCarryTheirParticulars(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		hint := &pb.LeaderHint{Group: 3, Epoch: 2, Node: "b", Grpc: "b:1"}
		s.b.decide = refuse(fault.Leader(hint))
		_, err := s.Decide(t.Context(), requests(1)[0])
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("status %v", err)
		}
		var e *fault.Error
		if !errors.As(fault.FromStatus(err), &e) || e.Kind != fault.NotLeader || !proto.Equal(e.Leader, hint) {
			t.Errorf("got %v", err)
		}
		cluster := pb.NewClusterClient(s.conn)
		if _, err := cluster.Remove(t.Context(), &pb.RemoveRequest{Node: "z"}); !errors.Is(fault.FromStatus(err), fault.NotFound) || status.Code(err) != codes.NotFound {
			t.Errorf("got %v", err)
		}
		if m, err := cluster.Members(t.Context(), nil); err != nil || len(m.GetNodes()) != 1 {
			t.Errorf("got %v, %v", m, err)
		}
	})
}

func TestPanicsAreContained(t *testing.T) {
	var log bytes.Buffer
	serve(t, transport.ServerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, s *served) {
		s.b.decide = func(context.Context, *pb.StreamRequest) []*pb.Result { panic("boom") }
		s.b.status = func() (*pb.StatusResponse, error) { panic("bang") }
		if _, err := s.Decide(t.Context(), requests(1)[0]); !errors.Is(fault.FromStatus(err), fault.OutcomeUnknown) {
			t.Errorf("got %v", err)
		}
		if _, err := pb.NewClusterClient(s.conn).Status(t.Context(), nil); !errors.Is(fault.FromStatus(err), fault.OutcomeUnknown) {
			t.Errorf("got %v", err)
		}
		g := s.stream()
		for id := range uint64(2) {
			s.send(g, &pb.StreamRequest{Id: id + 1, Requests: requests(2)})
			r := s.recv(g)
			if r.GetId() != id+1 || len(r.GetResults()) != 2 || r.GetResults()[1].GetError().GetCode() != pb.Code_CODE_OUTCOME_UNKNOWN {
				t.Errorf("got %v", r)
			}
		}
	})
	if n := strings.Count(log.String(), "panic in a handler"); n != 4 {
		t.Errorf("%d lines in the log, want 4", n)
	}
}

func TestWrongNumberOfResultsIsOutcomeUnknown(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		s.b.decide = func(context.Context, *pb.StreamRequest) []*pb.Result { return make([]*pb.Result, 1) }
		b, err := s.DecideBatch(t.Context(), &pb.DecideBatchRequest{Requests: requests(2)})
		if err != nil || len(b.GetResults()) != 2 || b.GetResults()[0].GetError().GetCode() != pb.Code_CODE_OUTCOME_UNKNOWN {
			t.Errorf("got %v, %v", b, err)
		}
		if _, err := s.Decide(t.Context(), requests(1)[0]); !errors.Is(fault.FromStatus(err), fault.OutcomeUnknown) {
			t.Errorf("an empty result became %v", err)
		}
	})
}

func TestDecisionsAreBoundedInTime(t *testing.T) {
	serve(t, transport.ServerOptions{Timeout: 3 * time.Second}, func(t *testing.T, s *served) {
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			<-ctx.Done()
			return refuse(ctx.Err())(ctx, m)
		}
		began := time.Now()
		if _, err := s.Decide(t.Context(), requests(1)[0]); !errors.Is(fault.FromStatus(err), fault.Deadline) || time.Since(began) != 3*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		g := s.stream()
		began = time.Now()
		s.send(g, &pb.StreamRequest{Id: 1, TimeoutNs: uint64(20 * time.Millisecond), Requests: requests(1)})
		if r := s.recv(g); r.GetResults()[0].GetError().GetCode() != pb.Code_CODE_DEADLINE || time.Since(began) != 20*time.Millisecond {
			t.Errorf("got %v after %v", r, time.Since(began))
		}
	})
}

func TestHealthAndReflection(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		health := healthpb.NewHealthClient(s.conn)
		for _, serving := range []bool{false, true, false} {
			s.server.SetServing(serving)
			for _, service := range []string{"", "ringlimit.v1.Limiter"} {
				r, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
				if err != nil || (r.GetStatus() == healthpb.HealthCheckResponse_SERVING) != serving {
					t.Errorf("%q: %v, %v", service, r, err)
				}
			}
		}
		g, err := reflectionpb.NewServerReflectionClient(s.conn).ServerReflectionInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ask := &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "ringlimit.v1.Limiter"}}
		if err := g.Send(ask); err != nil {
			t.Fatal(err)
		}
		if r, err := g.Recv(); err != nil || len(r.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Errorf("reflection: %v, %v", r, err)
		}
		_ = g.CloseSend()
		if _, err := g.Recv(); err == nil {
			t.Error("reflection goes on")
		}
	})
}
