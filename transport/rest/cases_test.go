package rest_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// exchange is a request and what must come back. path is as the document has it.
type exchange struct {
	name, method, path string
	at                 string // the path and query sent; "": path
	body               string
	headers            []string
	with               func(f *fake)
	slow               bool // the body stops, until the server's ReadTimeout
	status             int
}

func (c *exchange) target() string {
	if c.at != "" {
		return c.at
	}
	return c.path
}

// newFake has the policies that cases are about.
func newFake() *fake {
	n := uint64(150000)
	set := &policy.Set{
		Home: []string{"tenant"}, RouteClasses: []policy.RouteClass{{Name: "export", Routes: []string{"POST:/v1/export"}}},
		Policies: []*policy.Policy{
			{
				ID: "all/of it", Version: 811, Family: "f", Match: policy.On("plan", "gold"), Scope: []string{"tenant"},
				Limit:         bucket.Limit{Algorithm: bucket.FixedWindow, Amount: 5, Window: int64(time.Minute)},
				Cost:          policy.Cost{Default: 1, Classes: map[string]uint64{"export": 10}},
				OnUnavailable: policy.OnUnavailable{Mode: policy.Open, For: time.Minute, Then: policy.Closed},
				OnStateLoss:   policy.Salvage, Mode: policy.Shadow, Consistency: policy.Leased,
			},
			{
				ID: "payments-standard", Version: 812, Scope: []string{"api_key"},
				Limit: bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 20, Window: int64(time.Second), Burst: 40},
			},
		},
		Overrides: []*policy.Override{
			{Policy: "payments-standard", Key: policy.On("api_key", "k"), Amount: &n, Burst: &n, Until: 2e18, Version: 810},
			{Policy: "payments-standard", Key: policy.On("api_key", "l"), Times: 3, Per: 2, Until: 2e18, Version: 809},
		},
	}
	body, _ := json.Marshal(set.Policies[1])
	return &fake{
		set: set, put: pb.PutResponse{Changed: true, Version: 813}, permit: pb.PermitResponse{Held: true, ExpiresAfterNs: 600e9},
		history: []*pb.PolicyVersion{
			{Version: 813, Who: "ann", When: "2026-01-02T15:04:05Z", Action: "delete"},
			{Version: 812, Who: "ann", When: "2026-01-02T15:04:05Z", Action: "put", PolicyJson: body},
		},
		status: pb.StatusResponse{
			ClusterId: "c", Slots: 1024, Nodes: []*pb.NodeStatus{{Name: "a", State: "alive"}},
			Groups: []*pb.GroupStatus{{Leader: "a", Members: []*pb.ReplicaStatus{{Node: "a", Chain: 1 << 63}}}},
			Moves:  []*pb.MoveStatus{{Slot: 1, Phase: "copying"}}, Problems: []string{"p"},
		},
	}
}

const (
	decisions = "/v1/decisions"
	batches   = "/v1/decisions:batch"
	refunds   = "/v1/decisions:refund"
	leases    = "/v1/leases"
	releases  = "/v1/permits:release"
	renewals  = "/v1/permits:renew"
	one       = "/v1/policies/{id}"
	payment   = `{"tenant":"acme","principal_type":"api_key","principal_id":"k1","route":"/v1/payments","method":"POST"}`
	all       = `"tenant":"acme","principal_type":"api_key","principal_id":"k1","principals":[{"type":"user","id":"u"}],` +
		`"route":"/v1/payments","method":"POST","plan":"standard","region":"eu","attributes":{"shard":"7"}`
	override = `{"policy":"payments-standard","key":{"api_key":"k"},"amount":50,"burst":60,"until":"2100-01-02T15:04:05Z"}`
)

func fails(err error) func(*fake)               { return func(f *fake) { f.err = err } }
func decides(all ...*pb.Decision) func(f *fake) { return func(f *fake) { f.decisions = all } }

// several is an admission by three policies: one hands out a permit, one asks to hold
// the request, one only counts.
func several() *pb.Decision {
	d := payments(3)
	d.DelayNs, d.PermitId, d.FencingToken = 20e6, "p-1", 7
	d.Limits = []*pb.LimitDecision{
		{Allowed: true, Limit: 40, Remaining: 3, ResetAfterNs: 1, DelayNs: 20e6, PolicyId: "a", PolicyVersion: 1},
		{Allowed: true, Limit: 2, Remaining: 1, ResetAfterNs: 1, PolicyId: "b", PolicyVersion: 2, PermitId: "p-1", FencingToken: 7},
		{Limit: 2, RetryAfterNs: -1, PolicyId: "c", PolicyVersion: 3, Reason: "cost_exceeds_capacity", Shadow: true},
	}
	return d
}

// cases show all that the document has.
func cases() []exchange {
	return slices.Concat(decisionCases(), refundCases(), leaseCases(), policyCases(), lateCases(), nodeCases())
}

func decisionCases() []exchange {
	never := denied(-1)
	never.Reason = "cost_exceeds_capacity"
	open := payments(0)
	open.Degraded = true
	closed := &pb.Decision{Degraded: true, Reason: "limiter_unavailable", PolicyId: "payments-standard", RetryAfterNs: -1}
	long := `{"tenant":"` + strings.Repeat("x", 64<<10) + `"}`
	list := []exchange{
		{name: "allowed", body: payment, status: 200},
		{name: "all members", body: `{` + all + `,"cost":3}`, at: decisions + "?limits=true", headers: []string{"X-Request-Id: t-1", "Idempotency-Key: i-1", "X-Timeout-Ms: 250"}, status: 200},
		{name: "no members", body: `{}`, with: decides(&pb.Decision{Allowed: true, Reason: "no_policy"}), status: 200},
		{name: "several limits", body: payment, at: decisions + "?limits=true", with: decides(several()), status: 200},
		{name: "open", body: payment, with: decides(open), status: 200},
		{name: "denied", body: payment, headers: []string{"X-Request-Id: t-1"}, with: decides(denied(1840 * time.Millisecond)), status: 429},
		{name: "denied for ever", body: payment, at: decisions + "?limits=true", with: decides(never), status: 429},
		{name: "a value out of bounds", body: `{"cost":1000000001}`, headers: []string{"X-Request-Id: t-1"}, status: 400},
		{name: "too slow", body: payment, slow: true, status: 408},
		{name: "another body", body: payment, with: fails(fault.IDReused), status: 409},
		{name: "too long", body: long, status: 413},
		{name: "no JSON", body: payment, headers: []string{"Content-Type: text/plain"}, status: 415},
		{name: "internal", body: payment, with: fails(fault.Internal), status: 500},
		{name: "unknown", body: payment, with: fails(fault.OutcomeUnknown), status: 502},
		{name: "no leader", body: payment, with: fails(fault.NoLeader), status: 503},
		{name: "closed", body: payment, with: decides(closed), status: 503},
		{name: "late", body: payment, with: fails(fault.Deadline), status: 504},
	}
	for i := range list {
		list[i].method, list[i].path = http.MethodPost, decisions
	}
	batch := []exchange{
		{name: "a batch", at: batches + "?limits=true", body: `{"requests":[{` + all + `,"cost":2,"request_id":"i"},{},{"cost":7}]}`, with: decides(several(), never, closed), headers: []string{"X-Request-Id: t", "X-Timeout-Ms: 9"}, status: 200},
		{name: "one of a batch", body: `{"requests":[{"method":"GET"},{}]}`, status: 200},
		{name: "a batch that is none", body: `{"requests":{}}`, headers: []string{"X-Request-Id: t"}, status: 400},
		{name: "a batch that is too long", body: `{"requests":[` + strings.Repeat(" ", 1<<20) + `]}`, status: 413},
		{name: "a batch of no JSON", body: `{}`, headers: []string{"Content-Type: "}, status: 415},
	}
	for i := range batch {
		batch[i].method, batch[i].path = http.MethodPost, batches
	}
	return append(append(list, batch...), permitCases()...)
}

func permitCases() (list []exchange) {
	for _, path := range []string{releases, renewals} {
		for _, c := range []exchange{
			{name: "held", body: `{` + all + `,"permit_id":"p"}`, headers: []string{"X-Request-Id: t", "X-Timeout-Ms: 9"}, status: 200},
			{name: "ended", body: `{"permit_id":"p"}`, with: func(f *fake) { f.permit.Held = false }, status: 200},
			{name: "no permit", body: `{}`, headers: []string{"X-Request-Id: t"}, status: 400},
			{name: "long", body: `{"permit_id":"` + strings.Repeat("x", 64<<10) + `"}`, status: 413},
			{name: "form", body: `permit_id=p`, headers: []string{"Content-Type: application/x-www-form-urlencoded"}, status: 415},
			{name: "unknown", body: `{"permit_id":"p"}`, with: fails(fault.OutcomeUnknown), status: 502},
			{name: "no leader", body: `{"permit_id":"p"}`, with: fails(fault.NoLeader), status: 503},
			{name: "late", body: `{"permit_id":"p"}`, with: fails(fault.Deadline), status: 504},
		} {
			c.method, c.path, c.name = http.MethodPost, path, path+": "+c.name
			list = append(list, c)
		}
	}
	return list
}

func policyCases() []exchange {
	const (
		payments = "/v1/policies/payments-standard"
		absent   = "/v1/policies/absent"
		simple   = `{"scope":"api_key","rate_per_second":20,"burst":40}`
		whole    = `{"id":"all/of it","version":811,"match":{"plan":"gold"},"family":"f","scope":["tenant"],"algorithm":"fixed_window","amount":5,"window":"1m",` +
			`"cost":{"default":1,"export":10},"on_unavailable":{"mode":"open","for":"1m","then":"closed"},"on_state_loss":"salvage","mode":"shadow","consistency":"leased"}`
		windows = `{"scope":[],"algorithm":"fixed_window","limit_count":7,"window_seconds":60,"cost":2,"on_unavailable":"closed"}`
	)
	is, was := `"policy-version-812"`, `"policy-version-811"`
	get := func(c exchange) exchange { c.method = http.MethodGet; return c }
	put := func(c exchange) exchange { c.method, c.path = http.MethodPut, one; return c }
	del := func(c exchange) exchange { c.method, c.path = http.MethodDelete, one; return c }
	long := `{"id":"` + strings.Repeat("x", 64<<10) + `"}`
	overrides := "/v1/overrides"
	clear := overrides + "?policy=payments-standard&key=tenant=acme"
	return []exchange{
		get(exchange{name: "all policies", path: "/v1/policies", status: 200}),
		get(exchange{name: "the same policies", path: "/v1/policies", headers: []string{"If-None-Match: " + is}, status: 304}),
		get(exchange{name: "no cluster", path: "/v1/policies", with: fails(fault.NotReady), status: 503}),
		get(exchange{name: "a policy", path: one, at: "/v1/policies/all%2Fof%20it", status: 200}),
		get(exchange{name: "the same policy", path: one, at: payments, headers: []string{`If-None-Match: "x", W/` + is}, status: 304}),
		get(exchange{name: "no policy", path: one, at: absent, status: 404}),
		get(exchange{name: "no cluster", path: one, at: payments, with: fails(fault.NotReady), status: 503}),
		put(exchange{name: "put", at: payments, body: simple, headers: []string{"If-Match: " + is, "From: ann@example.com", "X-Timeout-Ms: 30000"}, status: 200}),
		put(exchange{name: "put all", at: "/v1/policies/all%2Fof%20it", body: whole, status: 200}),
		put(exchange{name: "put a new one", at: absent, body: windows, headers: []string{"If-None-Match: *"}, status: 200}),
		put(exchange{name: "put nonsense", at: payments, body: `{"scope":1}`, headers: []string{"X-Request-Id: t"}, status: 400}),
		put(exchange{name: "a lost race", at: payments, body: simple, headers: []string{"If-Match: " + was}, status: 412}),
		put(exchange{name: "put too much", at: payments, body: long, status: 413}),
		put(exchange{name: "put YAML", at: payments, body: "scope: tenant", headers: []string{"Content-Type: application/yaml"}, status: 415}),
		put(exchange{name: "no control leader", at: payments, body: simple, with: fails(fault.NoLeader), status: 503}),
		del(exchange{name: "delete", at: payments, headers: []string{"If-Match: " + is, "From: ann", "X-Timeout-Ms: 30000"}, status: 200}),
		del(exchange{name: "delete with nonsense", at: payments, headers: []string{"If-Match: *", "X-Request-Id: t"}, status: 400}),
		del(exchange{name: "delete none", at: absent, status: 404}),
		del(exchange{name: "a lost race", at: payments, headers: []string{"If-Match: " + was}, status: 412}),
		del(exchange{name: "no control leader", at: payments, with: fails(fault.NoLeader), status: 503}),
		get(exchange{name: "versions", path: one + "/versions", at: payments + "/versions", status: 200}),
		get(exchange{name: "no versions", path: one + "/versions", at: absent + "/versions", with: func(f *fake) { f.history = nil }, status: 404}),
		get(exchange{name: "no cluster", path: one + "/versions", at: payments + "/versions", with: fails(fault.NotReady), status: 503}),
		get(exchange{name: "overrides", path: overrides, status: 200}),
		get(exchange{name: "no cluster", path: overrides, with: fails(fault.NotReady), status: 503}),
		{name: "override", method: http.MethodPut, path: overrides, body: override, headers: []string{"From: ann", "X-Timeout-Ms: 30000"}, status: 200},
		{name: "scale", method: http.MethodPut, path: overrides, body: `{"policy":"p","key":{"tenant":"t"},"times":3,"per":2,"until":"2100-01-02T15:04:05Z"}`, status: 200},
		{name: "override until then", method: http.MethodPut, path: overrides, body: strings.ReplaceAll(override, "2100", "2001"), headers: []string{"X-Request-Id: t"}, status: 400},
		{name: "too many overrides", method: http.MethodPut, path: overrides, body: override, with: fails(fault.Conflict), status: 409},
		{name: "a long override", method: http.MethodPut, path: overrides, body: long, status: 413},
		{name: "override in YAML", method: http.MethodPut, path: overrides, body: "policy: p", headers: []string{"Content-Type: text/yaml"}, status: 415},
		{name: "no control leader", method: http.MethodPut, path: overrides, body: override, with: fails(fault.NoLeader), status: 503},
		{name: "clear", method: http.MethodDelete, path: overrides, at: clear, headers: []string{"From: ann", "X-Timeout-Ms: 30000"}, status: 200},
		{name: "clear what", method: http.MethodDelete, path: overrides, headers: []string{"X-Request-Id: t"}, status: 400},
		{name: "clear none", method: http.MethodDelete, path: overrides, at: strings.ReplaceAll(clear, "acme", "other"), status: 404},
		{name: "no control leader", method: http.MethodDelete, path: overrides, at: clear, with: fails(fault.NoLeader), status: 503},
	}
}

// lateCases are changes of which it is not known whether they were made.
func lateCases() (list []exchange) {
	for _, c := range []exchange{
		{method: http.MethodPut, path: one, at: "/v1/policies/p", body: `{"scope":[],"rate_per_second":1}`},
		{method: http.MethodDelete, path: one, at: "/v1/policies/payments-standard"},
		{method: http.MethodPut, path: "/v1/overrides", body: override},
		{method: http.MethodDelete, path: "/v1/overrides", at: "/v1/overrides?policy=p&key=tenant=acme"},
	} {
		for status, err := range map[int]error{http.StatusBadGateway: fault.OutcomeUnknown, http.StatusGatewayTimeout: fault.Deadline} {
			c.name, c.with, c.status = c.method+" "+c.path, fails(err), status
			list = append(list, c)
		}
	}
	return list
}

func nodeCases() []exchange {
	list := []exchange{
		{name: "status", path: "/v1/cluster", status: 200},
		{name: "stopping", path: "/v1/cluster", with: fails(fault.Unavailable), status: 503},
		{name: "alive", path: "/healthz", status: 200},
		{name: "ready", path: "/readyz", status: 200},
		{name: "not ready", path: "/readyz", with: func(f *fake) { f.ready = "stopping" }, status: 503},
		{name: "metrics", path: "/metrics", status: 200},
	}
	for i := range list {
		list[i].method = http.MethodGet
	}
	return list
}
