package envoy_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/transport/envoy"
)

// fake is a node made of values: it answers the i-th descriptor with the i-th result,
// the last again and again, and keeps what it was asked.
type fake struct {
	results []*pb.Result
	silent  bool   // answers when ctx is done
	set     string // the policies, as a file; "": it knows none yet
	nodes   int    // how many there are

	asked  []*pb.DecideRequest
	waited time.Duration
}

func (f *fake) Decide(ctx context.Context, q *wire.Requests) []*pb.Result {
	f.asked = q.Message.Requests
	end, _ := ctx.Deadline()
	f.waited = time.Until(end)
	if f.silent {
		<-ctx.Done()
	}
	out := make([]*pb.Result, q.Len())
	for i := range out {
		out[i] = f.results[min(i, len(f.results)-1)]
	}
	return out
}

// fallback tells the policies in pieces of few bytes.
func (f *fake) fallback(_ context.Context, r *pb.GetFallbackRequest) (*pb.GetFallbackResponse, error) {
	if f.set == "" {
		return nil, errors.New("knows none")
	}
	set, err := policy.Parse("set.yaml", []byte(f.set))
	if err != nil {
		return nil, err
	}
	for _, p := range set.Policies {
		p.Version = 7
	}
	data := set.Encode()
	digest := uint64(len(f.set)) // the files of a test differ in length
	out := &pb.GetFallbackResponse{Digest: digest, Total: uint64(len(data))}
	if r.GetDigest() == digest && r.GetOffset() == 0 {
		return out, nil
	}
	if r.GetDigest() == digest {
		out.Offset = r.GetOffset()
	}
	out.Data = data[out.Offset:min(out.Total, out.Offset+50)]
	return out, nil
}

// serve runs a test in a bubble, over a server of f.
func (f *fake) serve(t *testing.T, test func(t *testing.T, s *envoy.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, envoy.New(envoy.Options{Service: f, Fallback: f.fallback, Nodes: func() int { return f.nodes }}))
	})
}

// of makes a request of domain edge from descriptors.
func of(descriptors ...*common.RateLimitDescriptor) *rls.RateLimitRequest {
	return &rls.RateLimitRequest{Domain: "edge", Descriptors: descriptors}
}

// entries makes a descriptor of key, value, key, value ….
func entries(pairs ...string) *common.RateLimitDescriptor {
	d := new(common.RateLimitDescriptor)
	for i := 0; i+1 < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

func withHits(d *common.RateLimitDescriptor, n uint64) *common.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

func decided(d *pb.Decision) *pb.Result { return &pb.Result{Decision: d} }

func failed(err error) *pb.Result { return &pb.Result{Error: fault.ToProto(err)} }

// allowed is an answer of the policy per-address: 10 per minute.
func allowed(remaining uint64) *pb.Decision {
	return &pb.Decision{Allowed: true, Limit: 10, Remaining: remaining, ResetAfterNs: 30e9 + 1, PolicyId: "per-address", PolicyVersion: 7}
}

func denied(retry int64) *pb.Decision {
	d := allowed(0)
	d.Allowed, d.RetryAfterNs, d.Reason = false, retry, "rate_limited"
	return d
}

const perAddress = `
policies:
  - id: per-address
    match: {domain: edge}
    scope: [remote_address]
    algorithm: sliding_window
    amount: 10
    window: 1m
`
