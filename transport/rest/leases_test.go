package rest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// grants makes a fake grant a lease.
func grants(f *fake) {
	d := payments(30)
	d.Lease = &pb.Lease{Units: 5, TtlNs: 999_999_999, UnitCost: 2}
	f.decisions = []*pb.Decision{d}
}

func leaseCases() []exchange {
	list := []exchange{
		{name: "granted", body: `{` + all + `,"units":9,"cost":2}`, headers: []string{"X-Request-Id: t", "X-Timeout-Ms: 9", "Idempotency-Key: l-1"}, with: grants, status: 200},
		{name: "denied", body: `{"units":9}`, headers: []string{"X-Request-Id: t"}, with: decides(denied(1840 * time.Millisecond)), status: 429},
		{name: "no units", body: `{"tenant":"acme"}`, headers: []string{"X-Request-Id: t"}, status: 400},
		{name: "not leased", body: `{"units":9}`, headers: []string{"X-Request-Id: t"}, with: fails(fault.NotLeased), status: 409},
		{name: "long", body: `{"tenant":"` + strings.Repeat("x", 64<<10) + `"}`, status: 413},
		{name: "form", body: `units=9`, headers: []string{"Content-Type: application/x-www-form-urlencoded"}, status: 415},
		{name: "unknown", body: `{"units":9}`, with: fails(fault.OutcomeUnknown), status: 502},
		{name: "no leader", body: `{"units":9}`, with: fails(fault.NoLeader), status: 503},
		{name: "late", body: `{"units":9}`, with: fails(fault.Deadline), status: 504},
	}
	for i := range list {
		list[i].method, list[i].path, list[i].name = http.MethodPost, leases, "lease: "+list[i].name
	}
	return list
}

// TestLeaseAsksForWhatTheBodySays, and answers what was granted, its time rounded down.
func TestLeaseAsksForWhatTheBodySays(t *testing.T) {
	f := newFake()
	grants(f)
	w := f.do("POST", leases, `{"tenant":"acme","route":"/v1/payments","method":"POST","units":9,"cost":2}`, "Idempotency-Key: l-1")
	r := f.asked[0]
	if r.GetRequestId() != "l-1" || r.GetCost() != 2 || r.GetLease().GetUnits() != 9 || r.GetSubject().GetRoute() != "POST:/v1/payments" {
		t.Errorf("asked %v", r)
	}
	if body := w.Body.String(); w.Code != 200 || !strings.HasPrefix(body, `{"allowed":true,"remaining":30,"limit":40,"reset_at":"`) ||
		!strings.HasSuffix(body, `"policy_version":812,"lease_id":"l-1","units":5,"unit_cost":2,"expires_after_ms":999}`+"\n") {
		t.Errorf("%d %s", w.Code, body)
	}
	if w.Header().Get("RateLimit") != `"payments-standard";r=30;t=1` {
		t.Errorf("%v", w.Header())
	}
}

// TestLeaseGetsAnIDOfItsOwn: without an Idempotency-Key, and another each time.
func TestLeaseGetsAnIDOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		f := newFake()
		grants(f)
		w := f.do("POST", leases, `{"units":9}`)
		id := f.asked[0].GetRequestId()
		if w.Code != 200 || len(id) != 32 || seen[id] || !strings.Contains(w.Body.String(), `"lease_id":"`+id+`"`) || f.asked[0].Cost != nil {
			t.Errorf("%d %s, asked %v", w.Code, w.Body, f.asked[0])
		}
		seen[id] = true
	}
}

func TestDeniedLeaseIsA429(t *testing.T) {
	f := newFake()
	f.decisions = []*pb.Decision{denied(1840 * time.Millisecond)}
	w := f.do("POST", leases, `{"units":9}`)
	if w.Code != 429 || w.Header().Get("Retry-After") != "2" || w.Body.String() != `{"allowed":false,"remaining":0,"limit":40,"retry_after_ms":1840,"policy_version":812}`+"\n" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	f.decisions = []*pb.Decision{payments(3)} // a node that has no idea of leases
	if w = f.do("POST", leases, `{"units":9}`); w.Code != 500 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestLeaseIsReadStrictly(t *testing.T) {
	for body, field := range map[string]string{
		`{"tenant":"acme"}`: "units", `{"units":0}`: "units", `{"units":1000000001}`: "units", `{"units":"9"}`: "units", `{"units":1,"units":2}`: "units",
		`{"units":9,"cost":0}`: "cost", `{"units":9,"cost":-1}`: "cost", `{"units":9,"request_id":"i"}`: "request_id", `{"units":9,"principal_id":"k"}`: "principal_type",
	} {
		f := newFake()
		w := f.do("POST", leases, body)
		if p := problemOf(t, w); w.Code != 400 || p.Field != field || f.asked != nil {
			t.Errorf("%s: %d, field %q, asked %v", body, w.Code, p.Field, f.asked)
		}
	}
}
