package envoy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/transport/envoy"
)

const (
	ok   = rls.RateLimitResponse_OK
	over = rls.RateLimitResponse_OVER_LIMIT
	none = rls.RateLimitResponse_UNKNOWN
)

// modes are policies with failure modes, each for one value of the entry m.
const modes = `
no_match: deny
policies:
  - {id: open, match: {m: "open*"}, scope: [m], amount: 1, window: 1m, on_unavailable: {mode: open, for: 1m, then: closed}}
  - {id: closed, match: {m: "closed*"}, scope: [m], amount: 1, window: 1m, on_unavailable: closed}
  - {id: local, match: {m: "local*"}, scope: [m], amount: 1, window: 1m}
  - {id: also, match: {also: "closed"}, scope: [also], amount: 1, window: 1m, on_unavailable: closed}
  - {id: shadow, match: {m: "*"}, scope: [m], amount: 1, window: 1m, on_unavailable: closed, mode: shadow}
`

// TestFailureModesAreAnswers: what cannot be decided is answered as the strictest of
// its policies says.
func TestFailureModesAreAnswers(t *testing.T) {
	gone := failed(fault.New(fault.NoLeader, "none"))
	for _, c := range []struct {
		name    string
		set     string
		values  []string // of m, one for each descriptor; with a + also of also=closed, with a - hits given back
		results []*pb.Result
		codes   []rls.RateLimitResponse_Code // of each, and of the whole at the end; nil: an error …
		kind    error                        // … of this kind
		mode    string                       // told in the metadata
	}{
		{"open", modes, []string{"open"}, []*pb.Result{gone}, []rls.RateLimitResponse_Code{ok, ok}, nil, "open"},
		{"closed", modes, []string{"closed"}, []*pb.Result{gone}, []rls.RateLimitResponse_Code{over, over}, nil, "closed"},
		{"open beside closed", modes, []string{"open+"}, []*pb.Result{gone}, []rls.RateLimitResponse_Code{over, over}, nil, "closed"},
		{"local beside closed", modes, []string{"local+"}, []*pb.Result{gone}, []rls.RateLimitResponse_Code{over, over}, nil, "closed"},
		{"local", modes, []string{"local", "local", "localother"}, []*pb.Result{gone}, []rls.RateLimitResponse_Code{ok, over, ok, over}, nil, "local"},
		{"local beside open", modes, []string{"local", "open"}, []*pb.Result{gone}, []rls.RateLimitResponse_Code{ok, ok, ok}, nil, "local"},
		{"hits that are given back", modes, []string{"closed-"}, []*pb.Result{gone}, []rls.RateLimitResponse_Code{ok, ok}, nil, "open"},
		{"nothing known", "", []string{"local"}, []*pb.Result{gone}, nil, fault.Unavailable, ""},
		{"nothing known, and busy", "", []string{"local"}, []*pb.Result{failed(fault.New(fault.Busy, "full"))}, nil, fault.Busy, ""},
		{"nothing known, and late", "", []string{"local"}, []*pb.Result{failed(context.DeadlineExceeded)}, nil, fault.Deadline, ""},
		{"nothing known, after a charge", "", []string{"open", "local"}, []*pb.Result{decided(allowed(9)), gone}, nil, fault.OutcomeUnknown, ""},
		{"nothing known, after perhaps a charge", "", []string{"open", "local"}, []*pb.Result{failed(fault.New(fault.OutcomeUnknown, "lost")), gone}, nil, fault.OutcomeUnknown, ""},
		{"nothing known, after a denial", "", []string{"open", "local"}, []*pb.Result{decided(denied(1)), gone}, []rls.RateLimitResponse_Code{over, none, over}, nil, ""},
		{"two modes", modes, []string{"open", "closed"}, []*pb.Result{gone}, []rls.RateLimitResponse_Code{ok, over, over}, nil, "closed"},
		{"only a shadow policy, which saves nothing from no_match", modes, []string{"other"}, []*pb.Result{gone}, []rls.RateLimitResponse_Code{over, over}, nil, "closed"},
		{"nothing applies", strings.Replace(modes, "no_match: deny", "", 1), []string{"other"}, []*pb.Result{gone}, []rls.RateLimitResponse_Code{ok, ok}, nil, "open"},
		{"the node says open", "", []string{"open"}, []*pb.Result{decided(&pb.Decision{Allowed: true, Degraded: true, PolicyId: "p"})}, []rls.RateLimitResponse_Code{ok, ok}, nil, "open"},
		{"the node says closed", "", []string{"open"}, []*pb.Result{decided(&pb.Decision{Degraded: true, PolicyId: "p"})}, []rls.RateLimitResponse_Code{over, over}, nil, "closed"},
		{"neither decision nor error", "", []string{"open"}, []*pb.Result{{}}, nil, fault.OutcomeUnknown, ""},
		{"a wrong request", modes, []string{"open"}, []*pb.Result{failed(fault.Field("cost", "wrong"))}, nil, fault.InvalidArgument, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{set: c.set, results: c.results}
			in := of()
			for _, v := range c.values {
				m, also := strings.CutSuffix(v, "+")
				m, back := strings.CutSuffix(m, "-")
				d := entries("m", m)
				d.IsNegativeHits = back
				if also {
					d = entries("m", m, "also", "closed")
				}
				in.Descriptors = append(in.Descriptors, d)
			}
			f.serve(t, func(t *testing.T, s *envoy.Server) {
				got, err := s.ShouldRateLimit(t.Context(), in)
				if c.codes == nil {
					if !errors.Is(err, c.kind) {
						t.Errorf("%v, %v; want an error: %v", got, err, c.kind)
					}
					return
				}
				var codes []rls.RateLimitResponse_Code
				for _, s := range got.GetStatuses() {
					codes = append(codes, s.GetCode())
				}
				if diff := cmp.Diff(c.codes, append(codes, got.GetOverallCode())); diff != "" || err != nil {
					t.Errorf("%v %s", err, diff)
				}
				if mode := got.GetDynamicMetadata().GetFields()["degraded"].GetStringValue(); mode != c.mode {
					t.Errorf("the metadata says %q, want %q", mode, c.mode)
				}
			})
		})
	}
}

// TestOpenEndsWhenItsTimeEnds: and begins again once the policy could be asked.
func TestOpenEndsWhenItsTimeEnds(t *testing.T) {
	gone := failed(fault.New(fault.NoLeader, "none"))
	f := &fake{set: modes, results: []*pb.Result{gone}}
	f.serve(t, func(t *testing.T, s *envoy.Server) {
		ask := func(want rls.RateLimitResponse_Code) {
			t.Helper()
			got, err := s.ShouldRateLimit(t.Context(), of(entries("m", "open")))
			if err != nil || got.GetOverallCode() != want {
				t.Errorf("%v, %v, want %v", got, err, want)
			}
		}
		ask(ok)
		time.Sleep(time.Minute - 1)
		ask(ok)
		time.Sleep(time.Nanosecond)
		ask(over)
		back := allowed(0)
		back.PolicyId = "open"
		f.results = []*pb.Result{decided(back)}
		ask(ok)
		f.results = []*pb.Result{gone}
		time.Sleep(time.Minute)
		ask(ok)
		time.Sleep(time.Minute)
		ask(over)
		r := prometheus.NewRegistry()
		r.MustRegister(s)
		families, err := r.Gather()
		if err != nil || len(families) != 2 || families[1].GetName() != "ringlimit_envoy_descriptors_total" {
			t.Fatalf("%v, %v", families, err)
		}
		counted := map[string]float64{}
		for _, m := range families[1].GetMetric() {
			counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
		if diff := cmp.Diff(map[string]float64{"ok": 1, "open": 3, "closed": 2, "local": 0, "local_over_limit": 0, "over_limit": 0, "none": 0}, counted); diff != "" {
			t.Error(diff)
		}
	})
}
