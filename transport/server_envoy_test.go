package transport_test

import (
	"context"
	"errors"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/transport"
)

// fromEnvoy is a request of two descriptors.
func fromEnvoy() *rls.RateLimitRequest {
	d := func(value string) *common.RateLimitDescriptor {
		return &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{{Key: "tenant", Value: value}}}
	}
	return &rls.RateLimitRequest{Domain: "edge", Descriptors: []*common.RateLimitDescriptor{d("acme"), d("other")}}
}

func TestEnvoyIsServedBesideAllElse(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		c := rls.NewRateLimitServiceClient(s.conn)
		ctx := metadata.AppendToOutgoingContext(t.Context(), "ringlimit-headers", "ratelimit")
		got, err := c.ShouldRateLimit(ctx, fromEnvoy())
		if err != nil || got.GetOverallCode() != rls.RateLimitResponse_OK || len(got.GetStatuses()) != 2 ||
			got.GetStatuses()[1].GetCurrentLimit().GetName() != "other" || len(got.GetResponseHeadersToAdd()) != 2 {
			t.Errorf("%v, %v", got, err)
		}
		s.b.decide = func(context.Context, *pb.StreamRequest) []*pb.Result {
			return []*pb.Result{{Decision: &pb.Decision{PolicyId: "p"}}, {Decision: &pb.Decision{Allowed: true}}}
		}
		got, err = c.ShouldRateLimit(t.Context(), fromEnvoy())
		if err != nil || got.GetOverallCode() != rls.RateLimitResponse_OVER_LIMIT || got.GetStatuses()[1].GetCode() != rls.RateLimitResponse_OK {
			t.Errorf("a denial: %v, %v", got, err)
		}
		s.b.decide = refuse(fault.New(fault.NoLeader, "none"))
		if _, err = c.ShouldRateLimit(t.Context(), fromEnvoy()); status.Code(err) != codes.Unavailable {
			t.Errorf("nobody to ask: %v", err)
		}
		if _, err = c.ShouldRateLimit(t.Context(), new(rls.RateLimitRequest)); status.Code(err) != codes.InvalidArgument {
			t.Errorf("an empty request: %v", err)
		}
	})
}

// TestEnvoyIsAnsweredBeforeItStopsWaiting: what Envoy waits travels with each call.
func TestEnvoyIsAnsweredBeforeItStopsWaiting(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			<-ctx.Done()
			return refuse(ctx.Err())(ctx, m)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := rls.NewRateLimitServiceClient(s.conn).ShouldRateLimit(ctx, fromEnvoy())
		if took := time.Since(start); took > 16*time.Millisecond || !errors.Is(fault.FromStatus(err), fault.Deadline) {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
