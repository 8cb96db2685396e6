package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// httpAnswer is what a node said.
type httpAnswer struct {
	status int
	header http.Header
	body   string
}

// http asks a node, without the network. headers are "Name: value".
func (x *simNode) http(method, path, body string, headers ...string) httpAnswer {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body == "" {
		r = httptest.NewRequest(method, path, nil)
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	x.httpServer().Handler.ServeHTTP(w, r)
	return httpAnswer{w.Code, w.Header(), strings.TrimSpace(w.Body.String())}
}

// putHTTP puts a policy, waits until all nodes decide by it and returns its version.
func (s *sim) putHTTP(name, path, body string) uint64 {
	s.t.Helper()
	r := s.nodes[name].http("PUT", path, body)
	var change struct{ Version uint64 }
	if err := json.Unmarshal([]byte(r.body), &change); err != nil || r.status != 200 {
		s.t.Fatalf("put: %d %s", r.status, r.body)
	}
	s.eventually(time.Second, func() error {
		for name, x := range s.nodes {
			if v := x.view.Load().state.PolicyVersion; v < change.Version {
				return fmt.Errorf("%s has version %d", name, v)
			}
		}
		return nil
	})
	return change.Version
}

const (
	paymentsPath = "/v1/policies/payments-standard"
	paymentsBody = `{"scope":"api_key","rate_per_second":20,"burst":40}`
)

// payment is a request that the policy of 20 per second, burst 40, is about.
func payment(key string, cost int) string {
	return fmt.Sprintf(`{"principal_type":"api_key","principal_id":%q,"method":"POST","route":"/v1/payments","cost":%d}`, key, cost)
}

// TestHTTPDecides: the bodies are exactly these, to the ms, through any node; the
// version is that of the policy.
func TestHTTPDecides(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		version := s.putHTTP("a", paymentsPath, paymentsBody)
		for i, name := range s.names {
			x, key := s.nodes[name], "k"+name
			began := time.Now()
			r := x.http("POST", "/v1/decisions", payment(key, 1))
			resetAt := began.Add(50 * time.Millisecond)
			var got struct {
				ResetAt time.Time `json:"reset_at"`
			}
			if err := json.Unmarshal([]byte(r.body), &got); err != nil || got.ResetAt.Before(resetAt) || got.ResetAt.After(resetAt.Add(50*time.Millisecond)) {
				t.Errorf("reset at %v, want %v: %v", got.ResetAt, resetAt, err)
			}
			want := fmt.Sprintf(`{"allowed":true,"remaining":39,"limit":40,"reset_at":%q,"policy_version":%d}`, got.ResetAt.Format("2006-01-02T15:04:05.000Z07:00"), version)
			if r.status != 200 || r.body != want || r.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %d %s want %s", name, r.status, r.body, want)
			}

			other := s.nodes[s.names[(i+1)%3]]
			if r := x.http("POST", "/v1/decisions", payment(key+"2", 40)); r.status != 200 {
				t.Errorf("spend 40: %d %s", r.status, r.body)
			}
			time.Sleep(10 * time.Millisecond) // by the bubble's clock
			want = fmt.Sprintf(`{"allowed":false,"remaining":0,"limit":40,"retry_after_ms":1840,"policy_version":%d}`, version)
			if r := other.http("POST", "/v1/decisions", payment(key+"2", 37)); r.status != 429 || r.header.Get("Retry-After") != "2" || r.body != want {
				t.Errorf("%s: %d %v %s want %s", name, r.status, r.header, r.body, want)
			}
			time.Sleep(1840 * time.Millisecond)
			if r := other.http("POST", "/v1/decisions", payment(key+"2", 37)); r.status != 200 {
				t.Errorf("exactly after the wait: %d %s", r.status, r.body)
			}
		}
	})
}

// TestHTTPChargesOnce: a copy of a request, for an answer that was lost, on another
// node; and none with other content.
func TestHTTPChargesOnce(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		for i, name := range s.names {
			x, other := s.nodes[name], s.nodes[s.names[(i+1)%3]]
			tenant := "t" + name
			body := fmt.Sprintf(`{"tenant":%q,"plan":"year","cost":3}`, tenant)
			first := x.http("POST", "/v1/decisions", body, "Idempotency-Key: order-7")
			again := other.http("POST", "/v1/decisions", body, "Idempotency-Key: order-7")
			if first.status != 200 || again.status != 200 || !strings.Contains(again.body, `"remaining":7,"limit":10`) {
				t.Errorf("%s: %d %s, then %d %s", name, first.status, first.body, again.status, again.body)
			}
			changed := x.http("POST", "/v1/decisions", strings.Replace(body, "3", "4", 1), "Idempotency-Key: order-7")
			if changed.status != 409 || !strings.Contains(changed.body, `"code":"ID_REUSED"`) {
				t.Errorf("other content: %d %s", changed.status, changed.body)
			}
			batch := fmt.Sprintf(`{"requests":[%s,{"tenant":%q,"plan":"year","cost":0}]}`, strings.Replace(body, "}", `,"request_id":"order-7"}`, 1), tenant)
			r := other.http("POST", "/v1/decisions:batch", batch)
			if r.status != 200 || strings.Count(r.body, `"remaining":7`) != 2 {
				t.Errorf("in a batch: %d %s", r.status, r.body)
			}
		}
	})
}

// TestAPutCountsWhenItIsAnswered: the node that answered decides by it from then on, what
// it leads. Others hear of it within moments.
func TestAPutCountsWhenItIsAnswered(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		for i := range 30 {
			tenant := fmt.Sprint("t", i)
			x := s.nodes[s.leader(tenant)]
			r := x.http("PUT", paymentsPath, fmt.Sprintf(`{"scope":"tenant","rate_per_second":1,"burst":%d}`, i+1))
			d := x.http("POST", "/v1/decisions", fmt.Sprintf(`{"tenant":%q,"cost":0}`, tenant))
			if r.status != 200 || !strings.Contains(d.body, fmt.Sprintf(`"limit":%d,`, i+1)) {
				t.Errorf("%d: %d %s, then %s", i, r.status, r.body, d.body)
			}
		}
	})
}

// TestHTTPHandsOutPermits: taken, renewed and released through any node.
func TestHTTPHandsOutPermits(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		a, b := s.nodes["a"], s.nodes["b"]
		s.putHTTP("a", "/v1/policies/jobs", `{"scope":"tenant","algorithm":"concurrency","amount":1,"window":"10m"}`)
		r := a.http("POST", "/v1/decisions", `{"tenant":"acme"}`)
		var d struct {
			Permit  string `json:"permit_id"`
			Fencing uint64 `json:"fencing_token"`
		}
		if err := json.Unmarshal([]byte(r.body), &d); err != nil || d.Permit == "" || d.Fencing == 0 {
			t.Fatalf("%v: %s", err, r.body)
		}
		if r := a.http("POST", "/v1/decisions", `{"tenant":"acme"}`); r.status != 429 {
			t.Errorf("a second permit: %d %s", r.status, r.body)
		}
		permit := fmt.Sprintf(`{"permit_id":%q}`, d.Permit)
		if r := b.http("POST", "/v1/permits:renew", permit); r.body != `{"held":true,"expires_after_ms":600000}` {
			t.Errorf("renew: %d %s", r.status, r.body)
		}
		if r := b.http("POST", "/v1/permits:release", permit); r.body != `{"held":true}` {
			t.Errorf("release: %d %s", r.status, r.body)
		}
		for _, verb := range []string{"release", "renew"} {
			if r := a.http("POST", "/v1/permits:"+verb, permit); r.body != `{"held":false}` {
				t.Errorf("%s what has ended: %d %s", verb, r.status, r.body)
			}
		}
		if r := a.http("POST", "/v1/permits:renew", `{"permit_id":"none"}`); r.status != 400 || !strings.Contains(r.body, `"field":"permit_id"`) {
			t.Errorf("no permit: %d %s", r.status, r.body)
		}
	})
}

// TestHTTPChangesPolicies: a lost race changes nothing; the log names who.
func TestHTTPChangesPolicies(t *testing.T) {
	bubble(t, 1, func(t *testing.T, s *sim) {
		s.boot()
		x := s.any()
		tag := x.http("PUT", paymentsPath, paymentsBody, "If-None-Match: *", "From: ann@example.com").header.Get("ETag")
		won := x.http("PUT", paymentsPath, strings.Replace(paymentsBody, "20", "30", 1), "If-Match: "+tag)
		lost := x.http("PUT", paymentsPath, strings.Replace(paymentsBody, "20", "50", 1), "If-Match: "+tag)
		if won.status != 200 || lost.status != 412 || !strings.Contains(lost.body, "PRECONDITION_FAILED") {
			t.Fatalf("%d %s, then %d %s", won.status, won.body, lost.status, lost.body)
		}
		if r := x.http("GET", paymentsPath, ""); !strings.Contains(r.body, `"amount":30,"window":"1s","burst":40}`) || r.header.Get("ETag") != won.header.Get("ETag") {
			t.Errorf("get: %v %s", r.header, r.body)
		}
		if r := x.http("GET", paymentsPath, "", "If-None-Match: "+won.header.Get("ETag")); r.status != 304 || r.body != "" {
			t.Errorf("get again: %d %s", r.status, r.body)
		}
		if r := x.http("PUT", paymentsPath, paymentsBody, "If-None-Match: *"); r.status != 412 {
			t.Errorf("a second new one: %d", r.status)
		}
		if r := x.http("PUT", "/v1/policies/classes", `{"scope":"tenant","rate_per_second":1,"cost":{"none":2}}`); r.status != 400 || !strings.Contains(r.body, "cost.none") {
			t.Errorf("a class that the cluster has not: %d %s", r.status, r.body)
		}
		until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		if r := x.http("PUT", "/v1/overrides", `{"policy":"payments-standard","key":{"api_key":"k"},"times":3,"per":2,"until":"`+until+`"}`); r.status != 200 {
			t.Errorf("override: %d %s", r.status, r.body)
		}
		if r := x.http("GET", "/v1/overrides", ""); !strings.Contains(r.body, `"key":{"api_key":"k"},"times":3,"per":2,"until":"`+until+`"`) {
			t.Errorf("overrides: %s", r.body)
		}
		if r := x.http("DELETE", "/v1/overrides?policy=payments-standard&key=api_key=k", ""); r.status != 200 {
			t.Errorf("clear: %d %s", r.status, r.body)
		}
		if r := x.http("DELETE", paymentsPath, "", "If-Match: "+tag); r.status != 412 {
			t.Errorf("delete an old version: %d %s", r.status, r.body)
		}
		if r := x.http("DELETE", paymentsPath, ""); r.status != 200 {
			t.Errorf("delete: %d %s", r.status, r.body)
		}
		if r := x.http("GET", paymentsPath, ""); r.status != 404 {
			t.Errorf("deleted: %d %s", r.status, r.body)
		}
		r := x.http("GET", paymentsPath+"/versions", "")
		if strings.Count(r.body, `"action":"put"`) != 2 || !strings.Contains(r.body, `"who":"ann@example.com"`) || !strings.HasPrefix(r.body, `{"versions":[{"version":`) || !strings.Contains(r.body, `"policy":null`) {
			t.Errorf("versions: %s", r.body)
		}
		if r := x.http("GET", "/v1/cluster", ""); !strings.Contains(r.body, `"healthy":true`) {
			t.Errorf("cluster: %s", r.body)
		}
		s.eventually(10*time.Second, func() error {
			for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready"} {
				if r := x.http("GET", path, ""); r.status != 200 || r.body != want {
					return fmt.Errorf("%s: %d %s", path, r.status, r.body)
				}
			}
			return nil
		})
		if r := x.http("GET", "/metrics", ""); !strings.Contains(r.body, "ringlimit_") {
			t.Errorf("metrics: %d", r.status)
		}
	})
}

// TestHTTPSurvivesTheDeathOfALeader: who retries with the same key until it is
// answered is charged once.
func TestHTTPSurvivesTheDeathOfALeader(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		leader := s.leader("acme")
		body := `{"tenant":"acme","plan":"year","cost":4}`
		if r := s.nodes[leader].http("POST", "/v1/decisions", body, "Idempotency-Key: k"); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		s.kill(leader)
		x := s.any()
		s.eventually(10*time.Second, func() error {
			r := x.http("POST", "/v1/decisions", body, "Idempotency-Key: k", "X-Timeout-Ms: 100")
			switch {
			case r.status == 200 && strings.Contains(r.body, `"remaining":6`):
				return nil
			case r.status == 503 && r.header.Get("Retry-After") != "1":
				t.Errorf("503 without Retry-After: %v", r.header)
			case r.status != 503 && r.status != 504 && r.status != 502:
				t.Errorf("%d %s", r.status, r.body)
			}
			return fmt.Errorf("%d %s", r.status, r.body)
		})
	})
}

// TestHTTPWaitsForNobody: callers that are slow at any stage are cut off, and nothing
// of them is left.
func TestHTTPWaitsForNobody(t *testing.T) {
	bubble(t, 1, func(t *testing.T, s *sim) {
		s.boot()
		addr := s.net.IP("a").String() + ":7700"
		dial := func() net.Conn {
			c, err := s.net.Host("caller").Dial(t.Context(), addr)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		const head = "POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
		for name, c := range map[string]struct {
			send   string
			within time.Duration
			want   string // the status; "": the connection is closed without a word
		}{
			"nothing":            {"", httpReadTimeout + time.Second, ""},
			"half a header":      {head, httpHeaderTimeout + time.Second, ""},
			"half a body":        {head + "Content-Length: 20\r\n\r\n{", httpReadTimeout + time.Second, "408"},
			"half a chunk":       {head + "Transfer-Encoding: chunked\r\n\r\nff\r\n{", httpReadTimeout + time.Second, "408"},
			"a length that lies": {head + "Content-Length: 9999999999\r\n\r\n{", time.Second, "413"},
			"a huge header":      {head + "X: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", time.Second, "431"},
		} {
			conn := dial()
			began := time.Now()
			go func() { _, _ = io.WriteString(conn, c.send) }()
			reader := bufio.NewReader(conn)
			line, err := reader.ReadString('\n')
			if c.want == "" && err == nil && !strings.Contains(line, "408") || c.want != "" && !strings.HasPrefix(line, "HTTP/1.1 "+c.want) {
				t.Errorf("%s: %q, %v", name, line, err)
			}
			_, _ = io.Copy(io.Discard, reader) // until it is closed
			if took := time.Since(began); took > c.within {
				t.Errorf("%s: closed after %v", name, took)
			}
			conn.Close()
		}
		idle := dial()
		began := time.Now()
		fmt.Fprint(idle, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, err := io.Copy(io.Discard, idle); err != nil || time.Since(began) > httpIdleTimeout+time.Second {
			t.Errorf("idle: closed after %v, %v", time.Since(began), err)
		}
		idle.Close()
		synctest.Wait()
	})
}
