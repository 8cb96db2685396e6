package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/grpclimit"
)

// counting is a meter provider that keeps what its counter is told.
type counting struct {
	noop.MeterProvider
	mu   sync.Mutex // guards told
	told []string
}

func (c *counting) Meter(string, ...metric.MeterOption) metric.Meter { return counter{c: c} }

// counter is the meter and its only instrument.
type counter struct {
	noop.Meter
	c *counting
}

func (m counter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return instrument{c: m.c, name: name}, nil
}

type instrument struct {
	noop.Int64Counter
	c    *counting
	name string
}

func (i instrument) Add(_ context.Context, n int64, opts ...metric.AddOption) {
	attrs := metric.NewAddConfig(opts).Attributes()
	outcome, _ := attrs.Value("outcome")
	i.c.mu.Lock()
	defer i.c.mu.Unlock()
	i.c.told = append(i.c.told, fmt.Sprint(i.name, " ", outcome.AsString(), " ", n))
}

func closed() client.Decision {
	d := denied(time.Second)
	d.Reason, d.Degraded, d.FailureMode = "limiter_unavailable", true, client.ModeClosed
	return d
}

// TestClosedIsUnavailable: the policy's word also under FailOpen, and never RESOURCE_EXHAUSTED.
func TestClosedIsUnavailable(t *testing.T) {
	m := new(counting)
	opts := []grpclimit.Option{exact[0], grpclimit.FailOpen(), grpclimit.WithMeterProvider(m)}
	both(t, func() *fake { return &fake{decide: always(closed(), nil)} }, opts, func(t *testing.T, _ *fake, _ *server, call func(context.Context) outcome) {
		o := call(t.Context())
		if o.code() != codes.Unavailable || o.pushback() != "[1000]" || detail[*errdetails.QuotaFailure](o) != nil {
			t.Errorf("%v, pushback %s", o.status, o.pushback())
		}
		if r := detail[*errdetails.RetryInfo](o); r.GetRetryDelay().AsDuration() != time.Second {
			t.Errorf("%v", r)
		}
		o.wantInfo(t, "LIMITER_UNAVAILABLE", map[string]string{
			"policy_id": "items", "policy_version": "812", "limit": "40", "remaining": "3", "reason": "limiter_unavailable", "failure_mode": "closed",
		})
	})
	if len(m.told) != 0 {
		t.Errorf("counted %q, but that is the client's", m.told)
	}
}

// TestDeniedBesideClosed: what a bucket denies is a denial, and says nothing of the others.
func TestDeniedBesideClosed(t *testing.T) {
	d := denied(time.Minute)
	other := closed().Answer
	other.PolicyID = "other"
	d.Limits = []client.Answer{d.Answer, other}
	serve(t, &fake{decide: always(d, nil)}, nil, func(t *testing.T, s *server) {
		o := s.call(t.Context())
		if v := detail[*errdetails.QuotaFailure](o).GetViolations(); o.code() != codes.ResourceExhausted || len(v) != 1 || v[0].QuotaId != "items" {
			t.Errorf("%v, %v", o.status, v)
		}
	})
}

func TestUndecidedCalls(t *testing.T) {
	for _, err := range []error{
		fault.New(fault.Unavailable, "10.0.0.1 refused"), fault.New(fault.Busy, ""), fault.New(fault.OutcomeUnknown, ""),
		fault.New(fault.Deadline, ""), context.DeadlineExceeded, errors.New("other"),
	} {
		for _, open := range []bool{false, true} {
			m := new(counting)
			opts := []grpclimit.Option{grpclimit.WithMeterProvider(m)}
			want, outcome := codes.Unavailable, "unavailable"
			if open {
				opts, want, outcome = append(opts, grpclimit.FailOpen()), codes.OK, "open"
			}
			serve(t, &fake{decide: always(client.Decision{}, err)}, opts, func(t *testing.T, s *server) {
				for _, o := range []outcomes{{s.call(t.Context())}, {s.talk(t.Context(), 1)}} {
					if o.code() != want || strings.Contains(o.status.Message(), "10.0.0.1") || o.pushback() != "" {
						t.Errorf("%v: %v, pushback %s", err, o.status, o.pushback())
					}
					if !open {
						o.wantInfo(t, "LIMITER_UNAVAILABLE", nil)
					}
				}
			})
			if one := "ringlimit.grpclimit.undecided " + outcome + " 1"; !slices.Equal(m.told, []string{one, one}) {
				t.Errorf("%v: counted %q", err, m.told)
			}
		}
	}
}

type outcomes struct{ outcome }

// TestBadAttributesAreTheServersFault: told once per kind, to be found, and never let through.
func TestBadAttributesAreTheServersFault(t *testing.T) {
	fields := []string{"subject.tenant", "cost"}
	asked := 0
	f := &fake{decide: func(context.Context, client.Request) (client.Decision, error) {
		asked++
		return client.Decision{}, fault.Field(fields[asked%2], "must be better")
	}}
	log, said := lines()
	serve(t, f, []grpclimit.Option{grpclimit.WithLogger(log), grpclimit.FailOpen()}, func(t *testing.T, s *server) {
		for range 6 {
			o := s.call(t.Context())
			if o.code() != codes.Internal || !strings.HasSuffix(o.status.Message(), ": must be better") || o.pushback() != "" {
				t.Errorf("%v, pushback %s", o.status, o.pushback())
			}
		}
	})
	if got := said(); len(got) != 2 || !strings.Contains(got[0]+got[1], "subject.tenant: must be better") || !strings.Contains(got[0]+got[1], "cost: must be better") {
		t.Errorf("logged %q", got)
	}
}

func TestReusedIDIsTheCallersFault(t *testing.T) {
	serve(t, &fake{decide: always(client.Decision{}, fault.New(fault.IDReused, "x"))}, []grpclimit.Option{grpclimit.FailOpen()}, func(t *testing.T, s *server) {
		if o := s.call(t.Context()); o.code() != codes.AlreadyExists {
			t.Errorf("%v", o.status)
		}
	})
}

// TestCallerThatHasGone: whatever the limiter then says, its context's status stands.
func TestCallerThatHasGone(t *testing.T) {
	for name, late := range map[string]func() (client.Decision, error){
		"an error":  func() (client.Decision, error) { return client.Decision{}, fault.New(fault.Unavailable, "") },
		"invalid":   func() (client.Decision, error) { return client.Decision{}, fault.Field("cost", "bad") },
		"closed":    func() (client.Decision, error) { return closed(), nil },
		"a denial":  func() (client.Decision, error) { return denied(time.Second), nil },
		"a permit":  func() (client.Decision, error) { return granted(), nil },
		"admission": func() (client.Decision, error) { return allowed(), nil },
	} {
		m := new(counting)
		f := &fake{decide: func(ctx context.Context, _ client.Request) (client.Decision, error) {
			<-ctx.Done()
			return late()
		}}
		both(t, func() *fake { return f }, []grpclimit.Option{grpclimit.FailOpen(), grpclimit.WithMeterProvider(m)}, func(t *testing.T, _ *fake, s *server, call func(context.Context) outcome) {
			s.handlers(func(context.Context) error { t.Error(name, ": the handler ran"); return nil })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if o := call(ctx); o.code() != codes.DeadlineExceeded || o.took != time.Second {
				t.Errorf("%s: %v after %v", name, o.status, o.took)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := grpclimit.UnaryServer(f, grpclimit.FailOpen(), grpclimit.WithMeterProvider(m))(acme(ctx), nil, &grpc.UnaryServerInfo{FullMethod: getMethod}, nil)
		if status.Code(err) != codes.Canceled { // as the server's logs and metrics see it
			t.Errorf("%s: %v", name, err)
		}
		if len(m.told) != 0 {
			t.Errorf("%s: counted %q", name, m.told)
		}
		if name == "a permit" {
			f.wantReleased(t, "/p", "acme/p", "acme/p")
		}
	}
}
