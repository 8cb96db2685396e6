package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// refundsAll makes a fake give something back.
func refundsAll(f *fake) {
	f.refund = pb.RefundResponse{Refunded: true, Limits: []*pb.LimitDecision{
		{Allowed: true, Limit: 40, Remaining: 40, PolicyId: "a", PolicyVersion: 1},
		{Allowed: true, Limit: 7, Remaining: 5, ResetAfterNs: 2e9, PolicyId: "b", PolicyVersion: 2, Shadow: true},
	}}
}

func refundCases() []exchange {
	list := []exchange{
		{name: "given back", body: `{` + all + `,"request_id":"i-1","cost":3}`, headers: []string{"X-Request-Id: t", "X-Timeout-Ms: 9"}, with: refundsAll, status: 200},
		{name: "nothing taken", body: `{"request_id":"i-1"}`, status: 200},
		{name: "no id", body: `{"tenant":"acme"}`, headers: []string{"X-Request-Id: t"}, status: 400},
		{name: "too old", body: `{"request_id":"i-1"}`, with: fails(fault.TooOld), status: 409},
		{name: "long", body: `{"request_id":"` + strings.Repeat("x", 64<<10) + `"}`, status: 413},
		{name: "form", body: `request_id=i`, headers: []string{"Content-Type: application/x-www-form-urlencoded"}, status: 415},
		{name: "unknown", body: `{"request_id":"i-1"}`, with: fails(fault.OutcomeUnknown), status: 502},
		{name: "no leader", body: `{"request_id":"i-1"}`, with: fails(fault.NoLeader), status: 503},
		{name: "late", body: `{"request_id":"i-1"}`, with: fails(fault.Deadline), status: 504},
	}
	for i := range list {
		list[i].method, list[i].path, list[i].name = http.MethodPost, refunds, "refund: "+list[i].name
	}
	return list
}

// TestRefundAsksForWhatTheBodySays, and answers what each bucket holds then.
func TestRefundAsksForWhatTheBodySays(t *testing.T) {
	f := newFake()
	refundsAll(f)
	w := f.do("POST", refunds, `{"tenant":"acme","principal_type":"api_key","principal_id":"k1","route":"/v1/payments","method":"POST","request_id":"order 7","cost":3}`)
	r := f.refunded
	if r.GetRequestId() != "order 7" || r.GetCost() != 3 || r.GetSubject().GetTenant() != "acme" || r.GetSubject().GetRoute() != "POST:/v1/payments" ||
		r.GetSubject().GetPrincipals()[0].GetId() != "k1" || r.Lease != nil || r.Sent != nil {
		t.Errorf("asked %v", r)
	}
	body := w.Body.String()
	if w.Code != 200 || !strings.HasPrefix(body, `{"refunded":true,"limits":[{"allowed":true,"remaining":40,"limit":40,"reset_at":"`) ||
		!strings.HasSuffix(body, `"policy_version":2,"policy_id":"b","shadow":true}]}`+"\n") {
		t.Errorf("%d %s", w.Code, body)
	}
	f = newFake()
	if w := f.do("POST", refunds, `{"request_id":"i"}`); w.Code != 200 || w.Body.String() != `{"refunded":false}`+"\n" || f.refunded.GetCost() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestRefundIsReadStrictly: what is wrong is named, and nothing is given back.
func TestRefundIsReadStrictly(t *testing.T) {
	for body, field := range map[string]string{
		`{"tenant":"acme"}`: "request_id", `{"request_id":""}`: "request_id", `{"request_id":"ä"}`: "request_id",
		`{"request_id":"` + strings.Repeat("x", 65) + `"}`: "request_id", `{"request_id":7}`: "request_id",
		`{"request_id":"i","request_id":"j"}`: "request_id", `{"request_id":"i","cost":1000000001}`: "cost", `{"request_id":"i","cost":-1}`: "cost",
		`{"request_id":"i","permit_id":"p"}`: "permit_id", `{"request_id":"i","principal_id":"k"}`: "principal_type", `{"request_id":"i","method":"GET"}`: "method",
	} {
		f := newFake()
		w := f.do("POST", refunds, body)
		if p := problemOf(t, w); w.Code != 400 || p.Field != field || f.refunded != nil {
			t.Errorf("%s: %d, field %q, asked %v", body, w.Code, p.Field, f.refunded)
		}
	}
}
