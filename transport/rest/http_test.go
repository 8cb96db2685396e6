package rest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/transport/rest"
)

// TestEveryCodeHasAStatus holds the table, and the page that explains it, to the codes
// there are, and to what the kinds promise about the charge.
func TestEveryCodeHasAStatus(t *testing.T) {
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- codes -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| ([0-9]+) \\| (no|perhaps) \\|").FindAllStringSubmatch(table, -1) {
		documented[row[1]] = row[2] + " " + row[3]
	}
	perhaps := map[error]bool{fault.OutcomeUnknown: true, fault.Deadline: true, fault.Internal: true}
	want := map[string]string{}
	for number, name := range pb.Code_name {
		code := pb.Code(number)
		status, ok := rest.Statuses()[code]
		if ok != (number != 0) {
			t.Errorf("%s has status %d", name, status)
		}
		if number == 0 {
			continue
		}
		kind := fault.FromProto(&pb.Error{Code: code})
		charged := "no"
		for k := range perhaps {
			if cmp.Equal(fault.ToProto(kind).GetCode(), fault.ToProto(k).GetCode()) {
				charged = "perhaps"
			}
		}
		if (charged == "perhaps") != (status == 500 || status == 502 || status == 504) {
			t.Errorf("%s: charged %s, status %d", name, charged, status)
		}
		want[strings.TrimPrefix(name, "CODE_")] = fmt.Sprintf("%d %s", status, charged)

		f := newFake()
		f.err = kind
		w := f.do("POST", "/v1/decisions", payment)
		p := problemOf(t, w)
		if w.Code != status || "CODE_"+p.Code != name || p.Title != kind.Error() || p.Type != "https://github.com/ringlimit/ringlimit/docs/http.md#"+strings.ToLower(p.Code) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if (w.Header().Get("Retry-After") == "1") != (status == 503) {
			t.Errorf("%s: Retry-After %q", name, w.Header().Get("Retry-After"))
		}
	}
	if d := cmp.Diff(want, documented); d != "" {
		t.Errorf("docs/http.md: %s", d)
	}
}

// TestErrorsOfNoKind are internal, also codes of a newer build.
func TestErrorsOfNoKind(t *testing.T) {
	f := newFake()
	f.err = io.ErrUnexpectedEOF
	if w := f.do("GET", "/v1/cluster", ""); w.Code != 500 || problemOf(t, w).Code != "INTERNAL" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestOtherMethodsAndPaths(t *testing.T) {
	for path, allow := range map[string]string{
		"/v1/decisions": "POST", "/v1/decisions:batch": "POST", "/v1/decisions:refund": "POST", "/v1/permits:renew": "POST", "/v1/leases": "POST", "/v1/policies": "GET, HEAD",
		"/v1/policies/p": "GET, HEAD, PUT, DELETE", "/v1/policies/p/versions": "GET, HEAD", "/v1/overrides": "GET, HEAD, PUT, DELETE",
		"/v1/cluster": "GET, HEAD", "/healthz": "GET, HEAD", "/metrics": "GET, HEAD",
	} {
		for _, method := range []string{"PATCH", "OPTIONS", "get"} {
			w := newFake().do(method, path, "")
			if p := problemOf(t, w); w.Code != 405 || w.Header().Get("Allow") != allow || p.Code != "INVALID_ARGUMENT" {
				t.Errorf("%s %s: %d %v %s", method, path, w.Code, w.Header(), w.Body)
			}
		}
	}
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v1/decisions/", "//v1/decisions", "/v1//decisions", "/v1/../v1/decisions", "/v1/policies/", "/v1/policies/p/", "/v1/policies/p/x",
		"/v1/policies//versions", "/v1/policies/p/versions/x", "/v1/decisions:other", "/V1/decisions", "/v1/leases/x", "/%761/decisions", "/debug/pprof/",
	} {
		w := newFake().do("GET", path, "")
		if p := problemOf(t, w); w.Code != 404 || p.Code != "NOT_FOUND" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestTraceIDsComeBack, on every answer, and nothing that could be more than an id.
func TestTraceIDsComeBack(t *testing.T) {
	for id, want := range map[string]string{
		"t-1": "t-1", "": "", strings.Repeat("x", 128): strings.Repeat("x", 128), strings.Repeat("x", 129): "", "a\tb": "", "ä": "",
	} {
		for _, path := range []string{"/v1/decisions", "/nowhere", "/healthz"} {
			w := newFake().do("GET", path, "", "X-Request-Id: "+id)
			if got := w.Header().Get("X-Request-Id"); got != want {
				t.Errorf("%s: %q came back as %q", path, id, got)
			}
		}
	}
}

func TestContentTypes(t *testing.T) {
	for kind, want := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON;charset=UTF-8": 200,
		"application/json; charset=latin1": 415, "text/json": 415, "application/jsonx": 415, ";": 415, "": 415,
		"application/x-www-form-urlencoded": 415,
	} {
		w := newFake().do("POST", "/v1/decisions", payment, "Content-Type: "+kind)
		if w.Code != want || want == 415 && w.Header().Get("Accept") != "application/json" {
			t.Errorf("%q: %d %s", kind, w.Code, w.Body)
		}
	}
	if w := newFake().do("POST", "/v1/decisions", payment, "Content-Encoding: gzip"); w.Code != 415 {
		t.Errorf("gzip: %d", w.Code)
	}
	for _, accept := range []string{"text/html", "*/*", "application/xml;q=0.9", "nonsense"} {
		if w := newFake().do("POST", "/v1/decisions", payment, "Accept: "+accept); w.Code != 200 {
			t.Errorf("Accept %s: %d", accept, w.Code)
		}
	}
}

// TestBodiesAreBounded by what comes, whatever they say of themselves.
func TestBodiesAreBounded(t *testing.T) {
	for length, want := range map[int64]int{-1: 413, 3: 413, 1 << 40: 413} {
		r := request("POST", "/v1/decisions", payment)
		endless := &counter{}
		r.Body, r.ContentLength = io.NopCloser(endless), length
		w := httptest.NewRecorder()
		newFake().handler(io.Discard).ServeHTTP(w, r)
		if w.Code != want || endless.n > 128<<10 {
			t.Errorf("length %d: %d after %d bytes", length, w.Code, endless.n)
		}
	}
	for _, broken := range []error{io.ErrUnexpectedEOF, io.ErrClosedPipe} {
		r := request("POST", "/v1/decisions", payment)
		r.Body = io.NopCloser(iotest.ErrReader(broken))
		w := httptest.NewRecorder()
		newFake().handler(io.Discard).ServeHTTP(w, r)
		if w.Code != 400 {
			t.Errorf("%v: %d", broken, w.Code)
		}
	}
	for _, path := range []string{"/v1/cluster", "/v1/policies", "/v1/policies/p", "/v1/overrides", "/v1/policies/p/versions"} {
		if w := newFake().do("GET", path, "{}"); w.Code != 400 {
			t.Errorf("GET %s with a body: %d", path, w.Code)
		}
	}
}

// counter is a body without end.
type counter struct{ n int }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	c.n += len(p)
	return len(p), nil
}

func TestPanicsAreContained(t *testing.T) {
	var log bytes.Buffer
	f := newFake()
	f.panics = true
	h := f.handler(&log)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request("POST", "/v1/permits:renew", `{"permit_id":"p"}`))
	if p := problemOf(t, w); w.Code != 502 || p.Code != "OUTCOME_UNKNOWN" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "panic in a handler") {
		t.Errorf("log: %s", &log)
	}
}

// TestNoCacheKeepsADecision, an error neither.
func TestNoCacheKeepsADecision(t *testing.T) {
	for _, r := range []*http.Request{
		request("POST", "/v1/decisions", payment), request("POST", "/v1/decisions", "{"), request("POST", "/v1/decisions:batch", `{"requests":[]}`),
		request("GET", "/nowhere", ""), request("GET", "/v1/cluster", ""),
	} {
		w := httptest.NewRecorder()
		newFake().handler(io.Discard).ServeHTTP(w, r)
		if w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", r.URL, w.Header())
		}
	}
}
