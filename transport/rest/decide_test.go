package rest_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/transport/rest"
)

// TestBodiesAreExact: these members in this order and no other, for the policy of 20
// per second with a burst of 40.
func TestBodiesAreExact(t *testing.T) {
	f := newFake()
	before := time.Now().Add(50 * time.Millisecond)
	w := f.do("POST", "/v1/decisions", payment)
	after := time.Now().Add(50*time.Millisecond + 2*time.Millisecond)
	var a struct {
		At time.Time `json:"reset_at"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || a.At.Before(before.Truncate(time.Millisecond)) || a.At.After(after) {
		t.Errorf("reset at %v, want %v … %v", a.At, before, after)
	}
	want := `{"allowed":true,"remaining":39,"limit":40,"reset_at":"` + a.At.Format("2006-01-02T15:04:05.000Z07:00") + `","policy_version":812}` + "\n"
	if w.Body.String() != want || w.Code != 200 || w.Header().Get("Retry-After") != "" {
		t.Errorf("got %d %s want %s", w.Code, w.Body, want)
	}
	f.decisions = []*pb.Decision{denied(1840 * time.Millisecond)}
	w = f.do("POST", "/v1/decisions", payment)
	want = `{"allowed":false,"remaining":0,"limit":40,"retry_after_ms":1840,"policy_version":812}` + "\n"
	if w.Body.String() != want || w.Code != 429 || w.Header().Get("Retry-After") != "2" {
		t.Errorf("got %d %q %s want %s", w.Code, w.Header().Get("Retry-After"), w.Body, want)
	}
}

// TestHeadersTellTheLimits: on allow and deny, of each policy but those in shadow mode, and
// nothing where no bucket was asked.
func TestHeadersTellTheLimits(t *testing.T) {
	f := newFake()
	tell := func(what, limit, policy string) {
		t.Helper()
		w := f.do("POST", "/v1/decisions", payment)
		if got := w.Header()["Ratelimit"]; strings.Join(got, ", ") != limit {
			t.Errorf("%s: RateLimit %q, want %q", what, got, limit)
		}
		if got := w.Header()["Ratelimit-Policy"]; strings.Join(got, ", ") != policy {
			t.Errorf("%s: RateLimit-Policy %q, want %q", what, got, policy)
		}
	}
	allowed := func() *pb.Decision {
		return &pb.Decision{Allowed: true, Limit: 40, Remaining: 39, ResetAfterNs: 50e6, PolicyId: `a"b`, PolicyVersion: 812}
	}
	f.decisions = []*pb.Decision{allowed()}
	tell("allowed", `"a\"b";r=39;t=1`, `"a\"b";q=40`)
	two := denied(1840 * time.Millisecond)
	two.Limits = []*pb.LimitDecision{
		{PolicyId: "day", Limit: 1000, Remaining: 3, ResetAfterNs: 3600e9, Allowed: true},
		{PolicyId: "tried", Limit: 1, Shadow: true},
		{PolicyId: "second", Limit: 40, ResetAfterNs: 2e9},
	}
	f.decisions = []*pb.Decision{two}
	tell("denied", `"day";r=3;t=3600, "second";r=0;t=2`, `"day";q=1000, "second";q=40`)
	open := allowed()
	open.Degraded = true
	f.decisions = []*pb.Decision{open}
	tell("degraded", "", "")
	f.decisions = []*pb.Decision{{Allowed: true, Reason: "no_policy"}}
	tell("no policy", "", "")
}

func TestRetryAfterIsWholeSecondsRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0: "1", 1: "1", 200 * time.Millisecond: "1", time.Second: "1", time.Second + 1: "2", 1840 * time.Millisecond: "2",
		12 * time.Second: "12", 1<<63 - 1: "9223372037",
	} {
		f := newFake()
		f.decisions = []*pb.Decision{denied(wait)}
		w := f.do("POST", "/v1/decisions", payment)
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("%v: %q, want %q", wait, got, want)
		}
		var a struct {
			MS int64 `json:"retry_after_ms"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || time.Duration(a.MS)*time.Millisecond < wait && a.MS < 9223372036854 {
			t.Errorf("%v: a caller who waits %d ms is early", wait, a.MS)
		}
	}
}

// TestADenialForEverHasNoTime: no header invites to a retry that cannot pass.
func TestADenialForEverHasNoTime(t *testing.T) {
	f := newFake()
	d := denied(-1)
	d.Reason = "cost_exceeds_capacity"
	f.decisions = []*pb.Decision{d}
	w := f.do("POST", "/v1/decisions", payment)
	want := `{"allowed":false,"remaining":0,"limit":40,"retry_after_ms":-1,"policy_version":812,"reason":"cost_exceeds_capacity"}` + "\n"
	if _, ok := w.Header()["Retry-After"]; ok || w.Code != 429 || w.Body.String() != want {
		t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestClosedIs503(t *testing.T) {
	f := newFake()
	f.decisions = []*pb.Decision{{Degraded: true, Reason: "limiter_unavailable", PolicyId: "p", RetryAfterNs: -1}}
	w := f.do("POST", "/v1/decisions", payment)
	if p := problemOf(t, w); w.Code != 503 || p.Reason != "limiter_unavailable" || p.Code != "STORE_FULL" || w.Header().Get("Retry-After") != "1" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	f.err = &fault.Error{Kind: fault.StoreFull, Policy: "p", Mode: "local"}
	w = f.do("POST", "/v1/decisions", payment)
	if !strings.Contains(w.Body.String(), `"policy_id":"p","failure_mode":"local"`) || w.Code != 503 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestBodySaysTheRequest: each way to say a request becomes what the service is asked.
func TestBodySaysTheRequest(t *testing.T) {
	cost := func(n int64) *int64 { return &n }
	for body, want := range map[string]*pb.DecideRequest{
		`{}`:                                  {Subject: &pb.Subject{}},
		"\n { \"tenant\" :\t\"acme\" } \r\n":  {Subject: &pb.Subject{Tenant: "acme"}},
		`{"cost":0}`:                          {Subject: &pb.Subject{}, Cost: cost(0)},
		`{"cost":1000000000}`:                 {Subject: &pb.Subject{}, Cost: cost(1e9)},
		`{"route":"GET:/a?b"}`:                {Subject: &pb.Subject{Route: "GET:/a?b"}},
		`{"route":"/a","method":"GET"}`:       {Subject: &pb.Subject{Route: "GET:/a"}},
		`{"method":"GET","route":"/a:/b"}`:    {Subject: &pb.Subject{Route: "GET:/a:/b"}},
		`{"method":"GET","route":"GET:/a:b"}`: {Subject: &pb.Subject{Route: "GET:/a:b"}},
		`{"method":"","route":""}`:            {Subject: &pb.Subject{}},
		`{"principal_type":"","tenant":"\u00e4\ud83d\ude00\\"}`: {Subject: &pb.Subject{Tenant: "ä😀\\"}},
		`{"tenant":"\ufffd"}`:                          {Subject: &pb.Subject{Tenant: "\ufffd"}},
		`{"principal_type":"ip","principal_id":"::1"}`: {Subject: &pb.Subject{Principals: []*pb.Principal{{Type: "ip", Id: "::1"}}}},
		`{"principal_id":"k","principals":[{"id":"u","type":"user"}],"principal_type":"api_key"}`: {Subject: &pb.Subject{
			Principals: []*pb.Principal{{Type: "user", Id: "u"}, {Type: "api_key", Id: "k"}},
		}},
		`{"attributes":{"b":"2","a":"1"},"plan":"gold","region":"eu"}`: {Subject: &pb.Subject{
			Plan: "gold", Region: "eu", Attributes: []*pb.Attribute{{Name: "b", Value: "2"}, {Name: "a", Value: "1"}},
		}},
	} {
		f := newFake()
		if w := f.do("POST", "/v1/decisions", body); w.Code != 200 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
			continue
		}
		if d := cmp.Diff(want, f.asked[0], protocmp.Transform()); d != "" {
			t.Errorf("%s: %s", body, d)
		}
	}
}

// TestBadBodiesSayWhatAndWhere, and the service is not asked.
func TestBadBodiesSayWhatAndWhere(t *testing.T) {
	nine := strings.TrimSuffix(strings.Repeat(`{"type":"t","id":"i"},`, 9), ",")
	deep := strings.Repeat("[", 1<<14)
	for _, c := range []struct{ body, field, detail string }{
		{`{"tenannt":"acme"}`, "tenannt", "is unknown, want principal_type"},
		{`{"Tenant":"acme"}`, "Tenant", "is unknown"},
		{`{"tenant":"a","tenant":"a"}`, "tenant", "given twice"},
		{`{"tenant":"a","ten\u0061nt":"a"}`, "tenant", "given twice"},
		{`{"tenant":7}`, "tenant", "is a number, want a string"},
		{`{"tenant":null}`, "tenant", "is null, want a string, or leave it out"},
		{`{"tenant":["a"]}`, "tenant", "is a list, want a string"},
		{`{"tenant":true}`, "tenant", "is a boolean, want a string"},
		{`{"cost":"1"}`, "cost", "is a string, want a whole number, 0 … 1000000000"},
		{`{"cost":1.5}`, "cost", "1.5, want a whole number"},
		{`{"cost":1e3}`, "cost", "1e3, want a whole number"},
		{`{"cost":-1}`, "cost", "-1, want a whole number"},
		{`{"cost":1000000001}`, "cost", "1000000001, want"},
		{`{"cost":99999999999999999999999999999999999999999}`, "cost", "want a whole number"},
		{`{"cost":01}`, "", "want a comma or }"},
		{`{"request_id":"i"}`, "request_id", "is unknown"},
		{`{"attributes":{"a":1}}`, "attributes.a", "is a number, want a string"},
		{`{"attributes":{"a":"1","a":"1"}}`, "attributes.a", "given twice"},
		{`{"attributes":[]}`, "attributes", "is a list, want an object"},
		{`{"principals":{}}`, "principals", "is an object, want a list"},
		{`{"principals":[{"type":"t","id":"i"},{"kind":"t"}]}`, "principals[1].kind", "is unknown, want type and id"},
		{`{"principals":[{"type":"t","id":7}]}`, "principals[0].id", "is a number"},
		{`{"principals":["t"]}`, "principals[0]", "is a string, want an object"},
		{`{"principals":[` + nine + `]}`, "principals[8]", "one too many, want at most 8"},
		{`{"principal_type":"ip"}`, "principal_id", "missing, want the id of"},
		{`{"principal_id":"k"}`, "principal_type", "missing, want the type"},
		{`{"method":"GET"}`, "method", "without a route"},
		{`{"method":"GET","route":"a"}`, "route", "want a path such as"},
		{`{"method":"GET","route":"POST:/a"}`, "method", "as in the route"},
		{`[]`, "", "is a list, want an object"},
		{`"x"`, "", "is a string, want an object"},
		{`{"tenant":"a"} x`, "", "want nothing more"},
		{`{"tenant":"a"}{}`, "", "want nothing more"},
		{`{"tenant":"a",}`, "", "want a name in quotes"},
		{`{,}`, "", "want a name in quotes"},
		{`{"tenant" "a"}`, "", "want a colon"},
		{`{"tenant":"a" "plan":"b"}`, "", "want a comma or }"},
		{`{"tenant":"a`, "", "the body ends after 12 bytes, want the end of a string"},
		{`{"tenant":`, "tenant", ""},
		{`{'tenant':"a"}`, "", `'\'' at byte 1`},
		{"{\"tenant\":\"a\nb\"}", "", "control characters escaped"},
		{`{"tenant":"\x"}`, "", "escapes that JSON has"},
		{`{"tenant":"\ud800"}`, "", "both halves"},
		{`{"tenant":"\\ud800\udfff"}`, "", "both halves"},
		{"{\"tenant\":\"\xff\"}", "", "not UTF-8"},
		{"\xef\xbb\xbf{}", "", "want an object"},
		{``, "", "no Content-Type"},
		{`{"tenant":tru}`, "tenant", ""},
		{`{"principals":` + deep, "", ""},
		{`{"x":` + deep, "x", "is unknown"},
	} {
		f := newFake()
		w := f.do("POST", "/v1/decisions", c.body)
		p := problemOf(t, w)
		wantStatus := http.StatusBadRequest
		if c.body == "" {
			wantStatus = http.StatusUnsupportedMediaType
		}
		if w.Code != wantStatus || p.Code != "INVALID_ARGUMENT" || f.asked != nil {
			t.Errorf("%.60s: %d %s, asked %v", c.body, w.Code, w.Body, f.asked)
		}
		if c.detail != "" && (p.Field != c.field || !strings.Contains(p.Detail, c.detail)) {
			t.Errorf("%.60s: field %q, %q; want %q, %q", c.body, p.Field, p.Detail, c.field, c.detail)
		}
	}
}

// TestWhatTheNodeFindsIsNamedAsInTheBody: there attributes have names and no index.
func TestWhatTheNodeFindsIsNamedAsInTheBody(t *testing.T) {
	body := `{"attributes":{"a":"1","shard":"2"},"principals":[{"type":"user","id":"u"}],"principal_type":"user","principal_id":"v"}`
	for field, want := range map[string]string{
		"attributes[1].value": "attributes.shard", "attributes[1].name": "attributes.shard", "attributes[9].name": "attributes[9].name",
		"principals[0].id": "principals[0].id", "principals[1].type": "principal_type", "tenant": "tenant", "subject.principals": "principals",
	} {
		f := newFake()
		f.err = fault.Field(field, "so")
		if p := problemOf(t, f.do("POST", "/v1/decisions", body)); p.Field != want {
			t.Errorf("%s became %s, want %s", field, p.Field, want)
		}
	}
}

func TestIdempotencyKeyIsTheRequestID(t *testing.T) {
	f := newFake()
	f.do("POST", "/v1/decisions", payment, `Idempotency-Key: "order 7"`)
	if id := f.asked[0].GetRequestId(); id != `"order 7"` {
		t.Errorf("id %q", id)
	}
	f.err = fault.New(fault.IDReused, "an earlier request with this id had other content")
	w := f.do("POST", "/v1/decisions", payment, "Idempotency-Key: i")
	if p := problemOf(t, w); w.Code != 409 || p.Code != "ID_REUSED" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	for _, headers := range [][]string{
		{"Idempotency-Key: "},
		{"Idempotency-Key: " + strings.Repeat("x", 65)},
		{"Idempotency-Key: a\tb"},
		{"Idempotency-Key: ä"},
		{"Idempotency-Key: a", "Idempotency-Key: a"},
	} {
		f := newFake()
		w := f.do("POST", "/v1/decisions", payment, headers...)
		if p := problemOf(t, w); w.Code != 400 || p.Field != "Idempotency-Key" || f.asked != nil {
			t.Errorf("%v: %d %s", headers, w.Code, w.Body)
		}
	}
}

func TestTimesAreBounded(t *testing.T) {
	for header, want := range map[string]time.Duration{"": 2 * time.Second, "250": 250 * time.Millisecond, "10000": 10 * time.Second} {
		f := newFake()
		var headers []string
		if header != "" {
			headers = []string{"X-Timeout-Ms: " + header}
		}
		if f.do("POST", "/v1/decisions", payment, headers...); time.Duration(f.waited.Load()) > want || time.Duration(f.waited.Load()) < want-200*time.Millisecond {
			t.Errorf("%q: %v, want %v", header, time.Duration(f.waited.Load()), want)
		}
	}
	for _, bad := range []string{"0", "-1", "10001", "1.5", "1s", "99999999999999999999"} {
		if p := problemOf(t, newFake().do("POST", "/v1/decisions", payment, "X-Timeout-Ms: "+bad)); p.Field != "X-Timeout-Ms" {
			t.Errorf("%s: %+v", bad, p)
		}
	}
	f := newFake()
	if f.do("GET", "/v1/cluster", "", "X-Timeout-Ms: 30000"); time.Duration(f.waited.Load()) < 29*time.Second {
		t.Errorf("waited %v", time.Duration(f.waited.Load()))
	}
}

// TestABatchIsItsRequests: each result is what the request alone would have got, and
// what is wrong with one harms no other.
func TestABatchIsItsRequests(t *testing.T) {
	f := newFake()
	f.decisions = []*pb.Decision{payments(5), denied(1), payments(4), {Degraded: true, Reason: "limiter_unavailable", PolicyId: "p"}}
	w := f.do("POST", "/v1/decisions:batch", `{"requests":[{"tenant":"a","request_id":"i"},{"method":"GET"},{"cost":2},{},
		{"cost":-1},{"plan":"a","plan":"a"},7,{"attributes":{"a":1}},{"x":[{}]},{"request_id":""}]}`)
	var out struct{ Results []map[string]any }
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 || len(out.Results) != 10 {
		t.Fatalf("%v: %d %s", err, w.Code, w.Body)
	}
	for i, want := range []map[string]any{
		{"allowed": true, "remaining": 5.},
		{"status": 400., "field": "requests[1].method"},
		{"allowed": true, "remaining": 4.},
		{"status": 503., "reason": "limiter_unavailable"},
		{"status": 400., "field": "requests[4].cost"},
		{"field": "requests[5].plan"},
		{"field": "requests[6]"},
		{"field": "requests[7].attributes.a"},
		{"field": "requests[8].x"},
		{"field": "requests[9].request_id"},
	} {
		for k, v := range want {
			if out.Results[i][k] != v {
				t.Errorf("result %d has %s %v, want %v", i, k, out.Results[i][k], v)
			}
		}
	}
	if len(f.asked) != 3 || len(f.bad) != 7 || f.asked[0].GetRequestId() != "i" || f.asked[1].GetCost() != 2 {
		t.Errorf("asked %v, bad %v", f.asked, f.bad)
	}
}

func TestBadBatchesChargeNothing(t *testing.T) {
	many := `{"requests":[` + strings.TrimSuffix(strings.Repeat("{},", 1001), ",") + `]}`
	for body, field := range map[string]string{
		`{}`: "requests", `{"requests":[{}],"requests":[{}]}`: "requests", many: "requests[1000]", `{"requests":[{},]}`: "",
		`{"request":[]}`: "request", `{"requests":[{"tenant":"\ud800"}]}`: "", `{"requests":[{"a":[[[[[[[[[]]]]]]]]]}]}`: "",
		`{"requests":[{}]} {}`: "", `{"requests":[{"a":tru}]}`: "", `{"requests":[{},{"a" 1}]}`: "",
	} {
		f := newFake()
		w := f.do("POST", "/v1/decisions:batch", body)
		if p := problemOf(t, w); w.Code != 400 || field != "" && p.Field != field || f.asked != nil {
			t.Errorf("%.60s: %d %s", body, w.Code, w.Body)
		}
	}
	f := newFake()
	if p := problemOf(t, f.do("POST", "/v1/decisions:batch", `{"requests":[]}`, "Idempotency-Key: i")); p.Field != "Idempotency-Key" || f.asked != nil {
		t.Errorf("%+v", p)
	}
	if w := f.do("POST", "/v1/decisions:batch", `{"requests":[]}`); w.Code != 200 || w.Body.String() != "{\"results\":[]}\n" {
		t.Errorf("an empty batch: %d %s", w.Code, w.Body)
	}
	thousand := strings.Replace(many, "{},", "", 1)
	if w := f.do("POST", "/v1/decisions:batch", thousand); w.Code != 200 || len(f.asked) != 1000 {
		t.Errorf("a full batch: %d, %d asked", w.Code, len(f.asked))
	}
}

// FuzzReadDecision: what is accepted, package json reads the same from; it never panics.
func FuzzReadDecision(f *testing.F) {
	f.Add([]byte(payment))
	f.Add([]byte(`{` + all + `,"cost":12}`))
	f.Add([]byte(`{"tenant":"\ud83d\ude00\ufffd\\u0000","attributes":{"":""},"cost":1e2}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := rest.ReadDecision(body)
		if err != nil {
			var e *fault.Error
			if errors.As(err, &e) && e.Kind != fault.InvalidArgument {
				t.Fatal(err)
			}
			return
		}
		want, err := oracle(body)
		if err != nil {
			t.Fatalf("accepted %q: %v", body, err)
		}
		slices.SortFunc(got.Subject.Attributes, func(a, b *pb.Attribute) int { return strings.Compare(a.Name, b.Name) })
		if !proto.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", body, got, want)
		}
	})
}

// oracle reads a body that is good with package json, attributes by name.
func oracle(body []byte) (*pb.DecideRequest, error) {
	var in struct {
		Type       string `json:"principal_type"`
		ID         string `json:"principal_id"`
		Principals []struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		} `json:"principals"`
		Tenant     string            `json:"tenant"`
		Route      string            `json:"route"`
		Method     string            `json:"method"`
		Plan       string            `json:"plan"`
		Region     string            `json:"region"`
		Attributes map[string]string `json:"attributes"`
		Cost       *int64            `json:"cost"`
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, err
	}
	if !json.Valid(body) {
		return nil, errors.New("no JSON")
	}
	s := &pb.Subject{Tenant: in.Tenant, Route: in.Route, Plan: in.Plan, Region: in.Region}
	if in.Method != "" && !strings.HasPrefix(in.Route, in.Method+":/") {
		s.Route = in.Method + ":" + in.Route
	}
	for _, p := range in.Principals {
		s.Principals = append(s.Principals, &pb.Principal{Type: p.Type, Id: p.ID})
	}
	if in.Type != "" {
		s.Principals = append(s.Principals, &pb.Principal{Type: in.Type, Id: in.ID})
	}
	for _, name := range slices.Sorted(maps.Keys(in.Attributes)) {
		s.Attributes = append(s.Attributes, &pb.Attribute{Name: name, Value: in.Attributes[name]})
	}
	return &pb.DecideRequest{Subject: s, Cost: in.Cost}, nil
}

// BenchmarkDecision is one decision over HTTP, without the network and without deciding.
func BenchmarkDecision(b *testing.B) {
	f := newFake()
	f.decisions = []*pb.Decision{payments(39)}
	h := f.handler(io.Discard)
	r := request("POST", "/v1/decisions", payment, "Idempotency-Key: i-1", "X-Request-Id: t-1")
	w := &writer{header: http.Header{}}
	body := strings.NewReader(payment)
	r.Body = io.NopCloser(body)
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(payment)
		clear(w.header)
		h.ServeHTTP(w, r)
	}
	if w.status != 200 {
		b.Fatal(w.status)
	}
}

// writer is a ResponseWriter that keeps nothing.
type writer struct {
	header http.Header
	status int
}

func (w *writer) Header() http.Header         { return w.header }
func (w *writer) WriteHeader(status int)      { w.status = status }
func (w *writer) Write(p []byte) (int, error) { return len(p), nil }
