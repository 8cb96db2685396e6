package envoy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/transport/envoy"
)

// wanted reads a message of a test.
func wanted[M proto.Message](t *testing.T, text string, m M) M {
	t.Helper()
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDescriptorsBecomeRequests(t *testing.T) {
	override := entries("path", "/")
	override.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 100, Unit: typev3.RateLimitUnit_MINUTE}
	often := entries("path", "/")
	often.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 5, Unit: typev3.RateLimitUnit_HOUR, UnitMultiplier: wrapperspb.UInt32(2)}
	refund := withHits(entries("path", "/"), 3)
	refund.IsNegativeHits = true
	const path = `attributes{name:"domain" value:"edge"} attributes{name:"descriptor" value:"path"} attributes{name:"path" value:"/"}`
	for _, c := range []struct {
		name string
		in   *common.RateLimitDescriptor
		hits uint32 // of the request
		want string
	}{
		{"one entry", entries("path", "/"), 0, `subject{` + path + `} cost: 1`},
		{"hits of the request", entries("path", "/"), 5, `subject{` + path + `} cost: 5`},
		{"its own hits", withHits(entries("path", "/"), 3), 5, `subject{` + path + `} cost: 3`},
		{"no hits", withHits(entries("path", "/"), 0), 5, `subject{` + path + `} cost: 0`},
		{"more hits than can be counted", withHits(entries("path", "/"), 1e9+1), 0, `subject{` + path + `} cost: 1000000000`},
		{"as many hits as can be", withHits(entries("path", "/"), 1e9), 0, `subject{` + path + `} cost: 1000000000`},
		{"hits given back", refund, 0, `subject{` + path + `} cost: 0`},
		{"a limit of its own", override, 0, `subject{` + path + ` attributes{name:"limit" value:"100/minute"}} cost: 1`},
		{"in another unit", often, 0, `subject{` + path + ` attributes{name:"limit" value:"5/2hour"}} cost: 1`},
		{
			"fields of requests", entries("tenant", "acme", "plan", "gold", "region", "eu", "user", "ann"), 0,
			`subject{tenant: "acme" plan: "gold" region: "eu" attributes{name:"domain" value:"edge"} attributes{name:"descriptor" value:"tenant/plan/region/user"} attributes{name:"user" value:"ann"}} cost: 1`,
		},
		{
			"keys that are taken or come twice", entries("method", "GET", "generic_key", "a", "generic_key", "b"), 0,
			`subject{attributes{name:"domain" value:"edge"} attributes{name:"descriptor" value:"method/generic_key/generic_key"} ` +
				`attributes{name:"entry.method" value:"GET"} attributes{name:"generic_key" value:"a"} attributes{name:"generic_key#2" value:"b"}} cost: 1`,
		},
		{"an empty value is there", entries("path", ""), 0, `subject{` + strings.Replace(path, `"/"`, `"\000"`, 1) + `} cost: 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{results: []*pb.Result{decided(allowed(9))}}
			in := of(c.in)
			in.HitsAddend = c.hits
			f.serve(t, func(t *testing.T, s *envoy.Server) {
				if _, err := s.ShouldRateLimit(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			})
			if diff := cmp.Diff(wanted(t, c.want, new(pb.DecideRequest)), f.asked[0], protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWrongRequestsAreErrors(t *testing.T) {
	many := make([]string, 28)
	for i := range many {
		many[i] = "k"
	}
	for field, in := range map[string]*rls.RateLimitRequest{
		"domain":                 {Descriptors: []*common.RateLimitDescriptor{entries("path", "/")}},
		"descriptors":            of(),
		"descriptors[1].entries": of(entries("path", "/"), entries(many...)),
	} {
		f := &fake{results: []*pb.Result{decided(allowed(9))}}
		f.serve(t, func(t *testing.T, s *envoy.Server) {
			_, err := s.ShouldRateLimit(t.Context(), in)
			var e *fault.Error
			if !errors.As(err, &e) || e.Kind != fault.InvalidArgument || e.Field != field {
				t.Errorf("%s: %v", field, err)
			}
			if f.asked != nil {
				t.Errorf("%s: the node was asked", field)
			}
		})
	}
}

// TestStatuses: one for each descriptor, in order.
func TestStatuses(t *testing.T) {
	shadow := &pb.Decision{Allowed: true, Limits: []*pb.LimitDecision{{Limit: 10, Shadow: true, PolicyId: "per-address", PolicyVersion: 7, ResetAfterNs: 5e9}}}
	overridden := allowed(29)
	overridden.Limit = 30
	old := allowed(9)
	old.PolicyVersion = 6
	const limit = `current_limit{name:"per-address" requests_per_unit:10 unit:MINUTE}`
	for _, c := range []struct {
		name string
		d    *pb.Decision
		hits uint64
		want string
	}{
		{"allowed", allowed(9), 1, `code: OK limit_remaining: 9 duration_until_reset{seconds:31}` + limit},
		{"denied", denied(1.5e9), 1, `code: OVER_LIMIT duration_until_reset{seconds:31}` + limit},
		{"no policy", &pb.Decision{Allowed: true, Reason: "no_policy"}, 1, `code: OK`},
		{"no policy, which denies", &pb.Decision{Reason: "no_policy"}, 1, `code: OVER_LIMIT`},
		{"shadow", shadow, 1, `code: OK duration_until_reset{seconds:5}` + limit},
		{"override", overridden, 1, `code: OK limit_remaining: 29 duration_until_reset{seconds:31} current_limit{name:"per-address" requests_per_unit:30}`},
		{"another version", old, 1, `code: OK limit_remaining: 9 duration_until_reset{seconds:31} current_limit{name:"per-address" requests_per_unit:10}`},
		{"a look", allowed(9), 0, `code: OK limit_remaining: 9 duration_until_reset{seconds:31}` + limit},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{set: perAddress, results: []*pb.Result{decided(c.d), decided(allowed(3))}}
			f.serve(t, func(t *testing.T, s *envoy.Server) {
				got, err := s.ShouldRateLimit(t.Context(), of(withHits(entries("remote_address", "a"), c.hits), entries("remote_address", "b")))
				if err != nil {
					t.Fatal(err)
				}
				code := "OK"
				if strings.Contains(c.want, "OVER_LIMIT") {
					code = "OVER_LIMIT"
				}
				want := wanted(t, `overall_code: `+code+` statuses{`+c.want+`} statuses{code: OK limit_remaining: 3 duration_until_reset{seconds:31} `+limit+`}`, new(rls.RateLimitResponse))
				if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestLimitOfUnknownPolicies(t *testing.T) {
	f := &fake{results: []*pb.Result{decided(allowed(9))}}
	f.serve(t, func(t *testing.T, s *envoy.Server) {
		ask := func(unit string) {
			t.Helper()
			got, err := s.ShouldRateLimit(t.Context(), of(entries("remote_address", "a")))
			if err != nil || got.GetStatuses()[0].GetCurrentLimit().GetUnit().String() != unit {
				t.Errorf("%v, %v, want the unit %s", got, err, unit)
			}
		}
		ask("UNKNOWN")
		f.set = perAddress
		time.Sleep(2 * time.Second)
		ask("UNKNOWN") // and lets it be asked for
		time.Sleep(time.Second)
		ask("MINUTE")
		f.set = strings.Replace(perAddress, "1m", "24h", 1)
		time.Sleep(2 * time.Second)
		ask("MINUTE")
		time.Sleep(time.Millisecond)
		ask("DAY")
	})
}

// TestAnswersInTimeOrNotAtAll: a node that cannot decide says so in three quarters of
// what its caller waits, 15 ms if that is not known.
func TestAnswersInTimeOrNotAtAll(t *testing.T) {
	for _, c := range []struct{ deadline, want time.Duration }{{0, 15 * time.Millisecond}, {20 * time.Millisecond, 15 * time.Millisecond}, {time.Second, 750 * time.Millisecond}} {
		f := &fake{set: perAddress, silent: true, results: []*pb.Result{failed(fault.New(fault.Deadline, "late"))}}
		f.serve(t, func(t *testing.T, s *envoy.Server) {
			ctx := t.Context()
			if c.deadline > 0 {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, c.deadline)
				defer cancel()
			}
			start := time.Now()
			_, err := s.ShouldRateLimit(ctx, of(entries("remote_address", "a")))
			if took := time.Since(start); took != c.want || !errors.Is(err, fault.Deadline) {
				t.Errorf("%v: %v after %v, want a deadline after %v", c.deadline, err, took, c.want)
			}
		})
	}
}

// TestTimeOfAnswersIsCounted: of those that there are, whoever decided them.
func TestTimeOfAnswersIsCounted(t *testing.T) {
	f := &fake{set: perAddress, results: []*pb.Result{decided(allowed(9))}}
	f.serve(t, func(t *testing.T, s *envoy.Server) {
		ask := func() { _, _ = s.ShouldRateLimit(t.Context(), of(entries("remote_address", "a"))) }
		ask()
		f.silent = true // until its time is over: then the node's share is asked
		f.results = []*pb.Result{failed(fault.New(fault.NoLeader, "none"))}
		ask()
		if _, err := s.ShouldRateLimit(t.Context(), of()); err == nil {
			t.Error("a request without descriptors was answered")
		}
		r := prometheus.NewRegistry()
		r.MustRegister(s)
		families, err := r.Gather()
		if err != nil || families[0].GetName() != "ringlimit_envoy_answer_seconds" {
			t.Fatalf("%v, %v", families, err)
		}
		h := families[0].GetMetric()[0].GetHistogram()
		if h.GetSampleCount() != 2 || h.GetBucket()[0].GetCumulativeCount() != 1 || h.GetSampleSum() < 0.0149 || h.GetSampleSum() > 0.0151 {
			t.Errorf("%v", h)
		}
	})
}

func TestHeadersThatAreAskedFor(t *testing.T) {
	never := denied(-1)
	for _, c := range []struct {
		words string
		d     *pb.Decision
		want  map[string]string
	}{
		{"", allowed(9), nil},
		{"something-else", allowed(9), nil},
		{"ratelimit, retry-after", allowed(9), map[string]string{"ratelimit": `"per-address";r=9;t=31`, "ratelimit-policy": `"per-address";q=10`}},
		{"legacy", allowed(9), map[string]string{"ratelimit-limit": "10", "ratelimit-remaining": "9", "ratelimit-reset": "31"}},
		{"x-ratelimit", allowed(9), map[string]string{"x-ratelimit-limit": "10", "x-ratelimit-remaining": "9", "x-ratelimit-reset": "946684831"}},
		{"retry-after", denied(0.2e9), map[string]string{"retry-after": "1 2"}},
		{"retry-after", never, nil},
		{"ratelimit", &pb.Decision{Allowed: true, Reason: "no_policy"}, map[string]string{"ratelimit": `"per-address";r=10;t=31`, "ratelimit-policy": `"per-address";q=10`}},
	} {
		f := &fake{results: []*pb.Result{decided(c.d), decided(allowed(10))}}
		f.serve(t, func(t *testing.T, s *envoy.Server) {
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(envoy.HeadersKey, c.words))
			got, err := s.ShouldRateLimit(ctx, of(entries("remote_address", "a"), entries("remote_address", "b")))
			if err != nil {
				t.Fatal(err)
			}
			have := map[string]string{}
			for _, h := range got.GetResponseHeadersToAdd() {
				have[h.GetKey()] = h.GetValue()
			}
			if got := have["retry-after"]; got != "" && strings.Contains(c.want["retry-after"], got) {
				have["retry-after"] = c.want["retry-after"] // with or without jitter
			}
			if diff := cmp.Diff(c.want, have); diff != "" && len(c.want)+len(have) > 0 {
				t.Errorf("%q: %s", c.words, diff)
			}
		})
	}
}
