package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/transport/rest"
)

// fake is a service made of values: it answers each request with the next of them,
// the last again and again, and keeps what it was asked.
type fake struct {
	decisions []*pb.Decision
	err       error // of everything, if not nil
	permit    pb.PermitResponse
	refund    pb.RefundResponse
	status    pb.StatusResponse
	set       *policy.Set
	history   []*pb.PolicyVersion
	put       pb.PutResponse
	ready     string // why not; "": ready

	asked    []*pb.DecideRequest
	refunded *pb.RefundRequest
	bad      []wire.Bad
	waited   atomic.Int64 // the time that the last call had, in ns
	changed  string       // what the last change was told: body, version, author
	override policy.Override
	hold     chan struct{} // not nil: List waits for it
	panics   bool
}

func (f *fake) note(ctx context.Context) error {
	if f.panics {
		panic("boom")
	}
	end, _ := ctx.Deadline()
	f.waited.Store(int64(time.Until(end)))
	return f.err
}

func (f *fake) Decide(ctx context.Context, q *wire.Requests) []*pb.Result {
	err := f.note(ctx)
	f.asked, f.bad = append([]*pb.DecideRequest(nil), q.Message.Requests...), append([]wire.Bad(nil), q.Bad...)
	out := make([]*pb.Result, q.Len())
	bad := q.Bad
	for i := range out {
		switch {
		case len(bad) > 0 && bad[0].Index == i:
			out[i] = &pb.Result{Error: fault.ToProto(bad[0].Err)}
			bad = bad[1:]
		case err != nil:
			out[i] = &pb.Result{Error: fault.ToProto(err)}
		case len(f.decisions) == 0:
			out[i] = &pb.Result{Decision: payments(39)}
		default:
			out[i] = &pb.Result{Decision: f.decisions[min(i, len(f.decisions)-1)]}
		}
	}
	return out
}

// payments is an admission of the policy of 20 per second, burst 40.
func payments(remaining uint64) *pb.Decision {
	return &pb.Decision{
		Allowed: true, Limit: 40, Remaining: remaining, ResetAfterNs: int64(40-remaining) * 50e6,
		PolicyId: "payments-standard", PolicyVersion: 812,
	}
}

func denied(retry time.Duration) *pb.Decision {
	return &pb.Decision{
		Limit: 40, RetryAfterNs: int64(retry), ResetAfterNs: 2e9, PolicyId: "payments-standard", PolicyVersion: 812, Reason: "rate_limited",
	}
}

func (f *fake) Refund(ctx context.Context, r *pb.RefundRequest) (*pb.RefundResponse, error) {
	if err := wire.CheckRefund(r); err != nil {
		return nil, err
	}
	f.refunded = r
	return &f.refund, f.note(ctx)
}

func (f *fake) Release(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error) {
	return &f.permit, f.checked(ctx, r)
}

func (f *fake) Renew(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error) {
	return &f.permit, f.checked(ctx, r)
}

func (f *fake) checked(ctx context.Context, r *pb.PermitRequest) error {
	if err := wire.CheckPermit(r); err != nil {
		return err
	}
	return f.note(ctx)
}

func (f *fake) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &f.status, f.note(ctx)
}

func (f *fake) List(ctx context.Context, _ *pb.ListPoliciesRequest) (*pb.ListPoliciesResponse, error) {
	if f.hold != nil {
		<-f.hold
	}
	return &pb.ListPoliciesResponse{SetJson: f.set.Encode(), Version: 812}, f.note(ctx)
}

func (f *fake) Get(ctx context.Context, r *pb.GetPolicyRequest) (*pb.GetPolicyResponse, error) {
	p, ok := f.set.Find(r.GetId())
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no policy %q", r.GetId())
	}
	body, _ := json.Marshal(p)
	return &pb.GetPolicyResponse{PolicyJson: body, Version: p.Version}, f.note(ctx)
}

// change judges a condition as the control state does.
func (f *fake) change(ctx context.Context, id string, match *uint64, by *pb.Author, body []byte) (*pb.PutResponse, error) {
	version := uint64(0)
	if p, ok := f.set.Find(id); ok {
		version = p.Version
	}
	if match != nil && *match != version {
		return nil, fault.New(fault.PreconditionFailed, "policy %q has version %d, not %d", id, version, *match)
	}
	f.changed = string(body) + " by " + by.GetWho()
	return &f.put, f.note(ctx)
}

func (f *fake) Put(ctx context.Context, r *pb.PutPolicyRequest) (*pb.PutResponse, error) {
	p := new(policy.Policy)
	if err := json.Unmarshal(r.GetPolicyJson(), p); err != nil {
		return nil, err
	}
	return f.change(ctx, p.ID, r.IfMatch, r.GetAuthor(), p.AppendFile(nil))
}

func (f *fake) Delete(ctx context.Context, r *pb.DeletePolicyRequest) (*pb.PutResponse, error) {
	if _, ok := f.set.Find(r.GetId()); !ok {
		return nil, fault.New(fault.NotFound, "there is no policy %q", r.GetId())
	}
	return f.change(ctx, r.GetId(), r.IfMatch, r.GetAuthor(), []byte("delete "+r.GetId()))
}

func (f *fake) History(ctx context.Context, r *pb.PolicyHistoryRequest) (*pb.PolicyHistoryResponse, error) {
	if len(f.history) == 0 {
		return nil, fault.New(fault.NotFound, "no policy %q is known", r.GetId())
	}
	return &pb.PolicyHistoryResponse{Versions: f.history}, f.note(ctx)
}

func (f *fake) SetOverride(ctx context.Context, r *pb.SetOverrideRequest) (*pb.PutResponse, error) {
	f.override = policy.Override{}
	if err := json.Unmarshal(r.GetOverrideJson(), &f.override); err != nil {
		return nil, err
	}
	f.changed = "override by " + r.GetAuthor().GetWho()
	return &f.put, f.note(ctx)
}

func (f *fake) ListOverrides(ctx context.Context, _ *pb.ListOverridesRequest) (*pb.ListOverridesResponse, error) {
	body, _ := json.Marshal(f.set.Overrides)
	return &pb.ListOverridesResponse{OverridesJson: body}, f.note(ctx)
}

func (f *fake) ClearOverride(ctx context.Context, r *pb.ClearOverrideRequest) (*pb.PutResponse, error) {
	if err := json.Unmarshal(r.GetOverrideJson(), &f.override); err != nil {
		return nil, err
	}
	if f.override.Key.Get("tenant") != "acme" {
		return nil, fault.New(fault.NotFound, "policy %q has no override for %s", f.override.Policy, f.override.Key)
	}
	return &f.put, f.note(ctx)
}

// handler serves f.
func (f *fake) handler(log io.Writer) *rest.Handler {
	return rest.New(rest.Options{
		Service: f, Policies: f, Ready: func() (bool, string) { return f.ready == "", f.ready },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ringlimit_takes_total 1\n") }),
		Logger:  slog.New(slog.NewTextHandler(log, nil)),
	})
}

// request makes a request; headers are "Name: value". A body is JSON unless they say otherwise.
func request(method, target, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body == "" {
		r = httptest.NewRequest(method, target, nil)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Content-Type" {
			r.Header.Del(name)
		}
		if value != "" || name != "Content-Type" {
			r.Header.Add(name, value)
		}
	}
	return r
}

// do serves one request.
func (f *fake) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.handler(io.Discard).ServeHTTP(w, request(method, target, body, headers...))
	return w
}

// problemOf reads a problem document.
func problemOf(t *testing.T, w *httptest.ResponseRecorder) (p struct {
	Status                                                          int
	Code, Field, Detail, Reason, PolicyID, FailureMode, Title, Type string
},
) {
	t.Helper()
	if kind := w.Header().Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("content type %q: %s", kind, w.Body)
	}
	d := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	if err := d.Decode(&p); err != nil || p.Status != w.Code {
		t.Errorf("status %d, problem %s: %v", w.Code, w.Body, err)
	}
	return p
}
