package main

import (
	"context"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestEnvoyAsksAnyNode: nodes of a cluster share the limits that Envoy asks about, and
// those are the limits of everybody else, too.
func TestEnvoyAsksAnyNode(t *testing.T) {
	addrs := devCluster(t, "--policies", "../../examples/envoy/policies.yaml")
	login := &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{
		{Key: "action", Value: "login"}, {Key: "remote_address", Value: "192.0.2.1"},
	}}
	allowed := 0
	for i := range 9 {
		addr := strings.Split(addrs, ",")[i%3]
		c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r, err := rls.NewRateLimitServiceClient(c).ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "edge", Descriptors: []*common.RateLimitDescriptor{login}})
		if err != nil {
			t.Fatal(err)
		}
		if r.GetOverallCode() == rls.RateLimitResponse_OK {
			allowed++
		}
		if name := r.GetStatuses()[0].GetCurrentLimit().GetName(); name != "login" {
			t.Errorf("%s answers %v", addr, r)
		}
	}
	if allowed != 5 {
		t.Errorf("%d of 9 allowed, want 5", allowed)
	}
	c := &terminal{t, addrs}
	c.says(3, "login", "check", "--attr", "domain=edge", "--attr", "action=login", "--attr", "remote_address=192.0.2.1")
}
