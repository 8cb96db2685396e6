package grpclimit_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/grpclimit"
)

// exact takes chance out of the trailer.
var exact = []grpclimit.Option{grpclimit.Jitter(0)}

// detail finds the detail of a type.
func detail[T any](o outcome) (none T) {
	for _, d := range o.status.Details() {
		if d, ok := d.(T); ok {
			return d
		}
	}
	return none
}

func (o outcome) pushback() string {
	if v := o.trailer.Get("grpc-retry-pushback-ms"); len(v) > 0 {
		return fmt.Sprint(v)
	}
	return ""
}

func (o outcome) wantInfo(t *testing.T, reason string, metadata map[string]string) {
	t.Helper()
	e := detail[*errdetails.ErrorInfo](o)
	if e.GetReason() != reason || e.GetDomain() != "ringlimit" || !maps.Equal(e.GetMetadata(), metadata) {
		t.Errorf("%v, want %s with %v", e, reason, metadata)
	}
}

func TestDenialTellsAllOfIt(t *testing.T) {
	d := denied(1840 * time.Millisecond)
	d.Limits = []client.Answer{
		{Allowed: true, PolicyID: "calls", Limit: 100, Remaining: 50},
		{PolicyID: "ghost", Shadow: true, Reason: "rate_limited"},
		{PolicyID: "hour", Reason: "denied_by_another_limit"},
		d.Answer,
		{PolicyID: "month", Limit: 1000, RetryAfter: time.Second, Reason: "rate_limited"},
	}
	both(t, func() *fake { return &fake{decide: always(d, nil)} }, exact, func(t *testing.T, f *fake, s *server, call func(context.Context) outcome) {
		s.handlers(func(context.Context) error { t.Error("the handler ran"); return nil })
		o := call(t.Context())
		if o.code() != codes.ResourceExhausted || o.status.Message() != "rate limit exceeded: policy items, retry in 1.84s" {
			t.Errorf("%v", o.status)
		}
		if r := detail[*errdetails.RetryInfo](o); r.GetRetryDelay().AsDuration() != 1840*time.Millisecond {
			t.Errorf("%v", r)
		}
		v := detail[*errdetails.QuotaFailure](o).GetViolations()
		if len(v) != 2 || v[0].Subject != "tenant:acme" || v[0].Description != "policy items: rate_limited, 3 of 40 left" || v[0].QuotaId != "items" ||
			v[0].QuotaValue != 40 || v[1].Subject != "tenant:acme" || v[1].QuotaId != "month" {
			t.Errorf("%v", v)
		}
		o.wantInfo(t, "RATE_LIMIT_EXCEEDED", map[string]string{
			"policy_id": "items", "policy_version": "812", "limit": "40", "remaining": "3", "reason": "rate_limited",
		})
		if o.pushback() != "[1840]" || len(o.header) > 1 {
			t.Errorf("pushback %s, header %v", o.pushback(), o.header) // of a header, content-type alone, as what is no header has
		}
		if n := len(f.requests()); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

func TestNoWaitIsToldWhereNoneHelps(t *testing.T) {
	for reason, d := range map[string]client.Decision{
		"cost_exceeds_capacity":   denied(client.Never),
		"no_policy":               {Answer: client.Answer{RetryAfter: client.Never}},
		"denied_by_another_limit": denied(0),
		"refunded":                denied(0),
	} {
		d.Reason = reason
		own := grpclimit.Refine(func(_ context.Context, _ grpclimit.Call, r *client.Request) { r.RequestID = "own" })
		serve(t, &fake{decide: always(d, nil)}, []grpclimit.Option{own}, func(t *testing.T, s *server) {
			o := s.call(t.Context())
			if o.code() != codes.ResourceExhausted || o.pushback() != "[-1]" || detail[*errdetails.RetryInfo](o) != nil {
				t.Errorf("%s: %v, pushback %s", reason, o.status, o.pushback())
			}
			if e := detail[*errdetails.ErrorInfo](o); e.GetMetadata()["reason"] != reason {
				t.Errorf("%s: %v", reason, e)
			}
			if q := detail[*errdetails.QuotaFailure](o); (q == nil) != (d.PolicyID == "" || reason == "denied_by_another_limit") {
				t.Errorf("%s: %v", reason, q)
			}
		})
	}
}

// TestFinalForAnIDIsNotForTheNext: an id that the client made comes only once.
func TestFinalForAnIDIsNotForTheNext(t *testing.T) {
	d := denied(0)
	d.Reason = "denied_by_another_limit"
	serve(t, &fake{decide: always(d, nil)}, nil, func(t *testing.T, s *server) {
		if o := s.call(t.Context()); o.pushback() != "[0]" || detail[*errdetails.RetryInfo](o) == nil {
			t.Errorf("%v, pushback %s", o.status, o.pushback())
		}
	})
}

// TestSubjectIsNoSecret: what names whose quota it is must be fit for a log.
func TestSubjectIsNoSecret(t *testing.T) {
	value := func(v string) grpclimit.Value { return func(context.Context, grpclimit.Call) string { return v } }
	key, user := grpclimit.Principal("api_key", value("secret")), grpclimit.Principal("user", value("ann"))
	for want, opts := range map[string][]grpclimit.Option{
		"tenant:acme":    {key, user},
		"user:ann":       {key, user, grpclimit.Tenant(value(""))},
		"policy:items":   {key, grpclimit.Tenant(value(""))},
		"tenant:a\uFFFD": {grpclimit.Tenant(value("a\xff"))},
	} {
		serve(t, &fake{decide: always(denied(1), nil)}, opts, func(t *testing.T, s *server) {
			v := detail[*errdetails.QuotaFailure](s.call(t.Context())).GetViolations()
			if len(v) != 1 || v[0].Subject != want {
				t.Errorf("%v, want %s", v, want)
			}
		})
	}
}

func TestCustomDenial(t *testing.T) {
	replace := grpclimit.OnDeny(func(_ context.Context, c grpclimit.Call, d client.Decision, st *status.Status) error {
		if d.PolicyID != "items" || st.Code() != codes.ResourceExhausted {
			t.Errorf("%v, %v", d, st)
		}
		if c.Stream {
			return nil
		}
		return status.Error(codes.PermissionDenied, "buy more")
	})
	serve(t, &fake{decide: always(denied(time.Second), nil)}, []grpclimit.Option{replace, exact[0]}, func(t *testing.T, s *server) {
		if o := s.call(t.Context()); o.code() != codes.PermissionDenied || o.pushback() != "[1000]" {
			t.Errorf("%v, %s", o.status, o.pushback())
		}
		if o := s.talk(t.Context(), 1); o.code() != codes.ResourceExhausted {
			t.Errorf("nil let it through: %v", o.status)
		}
	})
}

// retrying is the policy of a client that retries what is denied, were it not for the
// trailer after 10 ms at most.
const retrying = `{"methodConfig": [{"name": [{"service": "test.Items"}], "retryPolicy": {"maxAttempts": 3,
	"initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`

// TestRetryingClientWaitsAsToldAndIsAdmitted: gRPC's own retries, with the answers of a
// bucket that is full again at a moment.
func TestRetryingClientWaitsAsToldAndIsAdmitted(t *testing.T) {
	const wait = 1840 * time.Millisecond
	var fresh time.Time
	f := &fake{decide: func(context.Context, client.Request) (client.Decision, error) {
		if left := time.Until(fresh); left > 0 {
			return denied(left), nil
		}
		return allowed(), nil
	}}
	serve(t, f, nil, func(t *testing.T, s *server) {
		for _, call := range []func() outcome{
			func() outcome { return s.call(t.Context()) },
			func() outcome { return s.talk(t.Context(), 1) },
		} {
			before := len(f.requests())
			fresh = time.Now().Add(wait)
			o := call()
			if o.code() != codes.OK || o.took < wait || o.took > wait+wait/4+time.Millisecond {
				t.Errorf("%v after %v", o.status, o.took)
			}
			if n := len(f.requests()) - before; n != 2 {
				t.Errorf("%d attempts, want 2", n)
			}
		}
	}, grpc.WithDefaultServiceConfig(retrying))
}

func TestRetryingClientGivesUpWhereNoWaitHelps(t *testing.T) {
	f := &fake{decide: always(denied(client.Never), nil)}
	serve(t, f, nil, func(t *testing.T, s *server) {
		if o := s.call(t.Context()); o.code() != codes.ResourceExhausted || len(f.requests()) != 1 {
			t.Errorf("%v after %d attempts", o.status, len(f.requests()))
		}
	}, grpc.WithDefaultServiceConfig(retrying))
}

// TestDeniedCallersDoNotComeBackInOneInstant: the trailer spreads them, upwards alone.
func TestDeniedCallersDoNotComeBackInOneInstant(t *testing.T) {
	const wait, callers = 2 * time.Second, 1000
	serve(t, &fake{decide: always(denied(wait), nil)}, nil, func(t *testing.T, s *server) {
		in := map[int]int{} // of tenths of the spread
		for range callers {
			ms, err := strconv.Atoi(s.call(t.Context()).trailer.Get("grpc-retry-pushback-ms")[0])
			if err != nil || ms < 2000 || ms > 2500 {
				t.Fatalf("%d ms, %v", ms, err)
			}
			in[min((ms-2000)/50, 9)]++
		}
		for tenth := range 10 {
			if n := in[tenth]; n < callers/20 || n > callers/5 {
				t.Errorf("%d of %d callers in tenth %d", n, callers, tenth)
			}
		}
	})
}
