package httplimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/httplimit"
)

// TestAnswers holds all that a client gets, byte for byte.
func TestAnswers(t *testing.T) {
	daily := client.Answer{Allowed: true, Limit: 1000, Remaining: 7, ResetAfter: 90 * time.Minute, PolicyID: "daily"}
	spent := client.Answer{Limit: 1000, ResetAfter: 90 * time.Minute, RetryAfter: 5 * time.Second, PolicyID: "a-day", Reason: "rate_limited"}
	full, quiet := deniedFor(1840*time.Millisecond).Answer, deniedFor(time.Hour).Answer
	quiet.PolicyID, quiet.Shadow = "quiet", true
	closed := client.Decision{Degraded: true, FailureMode: client.ModeClosed, Answer: client.Answer{
		Limit: 40, RetryAfter: time.Second, PolicyID: "search", Reason: "limiter_unavailable",
	}}
	open := client.Decision{Degraded: true, FailureMode: client.ModeOpen, Answer: client.Answer{Allowed: true, Limit: 40, PolicyID: "search"}}
	local := client.Decision{Degraded: true, FailureMode: client.ModeLocal, Answer: search()}
	never := func(reason string) client.Decision {
		d := deniedFor(client.Never)
		d.Reason = reason
		return d
	}
	who := []httplimit.Option{tenant("acme"), route("search")}

	for _, c := range []struct {
		name     string
		decision client.Decision
		err      error
		opts     []httplimit.Option
		want     string
	}{
		{"allowed", client.Decision{Answer: search()}, nil, nil, `200
Ratelimit: "search";r=39;t=1
Ratelimit-Policy: "search";q=40

hello`},
		{"several limits, one in shadow mode", client.Decision{Answer: daily, Limits: []client.Answer{daily, quiet, search()}}, nil, nil, `200
Ratelimit: "daily";r=7;t=5400, "search";r=39;t=1
Ratelimit-Policy: "daily";q=1000, "search";q=40

hello`},
		{"older fields", client.Decision{Answer: search()}, nil, []httplimit.Option{httplimit.OlderRateLimit(false)}, `200
Ratelimit: "search";r=39;t=1
Ratelimit-Limit: 40
Ratelimit-Policy: "search";q=40
Ratelimit-Remaining: 39
Ratelimit-Reset: 1

hello`},
		{"no policy", client.Decision{Answer: client.Answer{Allowed: true, Reason: "no_policy"}}, nil, []httplimit.Option{httplimit.XRateLimit()}, `200

hello`},
		{"denied", deniedFor(1840 * time.Millisecond), nil, who, `429
Cache-Control: no-store
Content-Type: application/problem+json
Ratelimit: "search";r=0;t=2
Ratelimit-Policy: "search";q=40
Retry-After: 2

{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"Too many requests. Try again in 2 seconds.","error":"rate_limit_exceeded","message":"Too many requests. Try again in 2 seconds.","retry_after_seconds":2,"limit_scope":"tenant:acme:route:search","violated-policies":["search"]}
`},
		{"denied by two of four", client.Decision{Answer: spent, Limits: []client.Answer{spent, quiet, full, daily}}, nil, nil, `429
Cache-Control: no-store
Content-Type: application/problem+json
Ratelimit: "a-day";r=0;t=5400, "search";r=0;t=2, "daily";r=7;t=5400
Ratelimit-Policy: "a-day";q=1000, "search";q=40, "daily";q=1000
Retry-After: 5

{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"Too many requests. Try again in 5 seconds.","error":"rate_limit_exceeded","message":"Too many requests. Try again in 5 seconds.","retry_after_seconds":5,"violated-policies":["a-day","search"]}
`},
		{"never", never("cost_exceeds_capacity"), nil, nil, `429
Cache-Control: no-store
Content-Type: application/problem+json
Ratelimit: "search";r=0;t=2
Ratelimit-Policy: "search";q=40

{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"The request costs more than its limit ever holds.","error":"rate_limit_exceeded","message":"The request costs more than its limit ever holds.","violated-policies":["search"]}
`},
		{"denied without a policy", client.Decision{Answer: client.Answer{RetryAfter: client.Never, Reason: "no_policy"}}, nil, nil, `429
Cache-Control: no-store
Content-Type: application/problem+json

{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"No policy allows such requests.","error":"rate_limit_exceeded","message":"No policy allows such requests."}
`},
		{"failure mode closed", closed, nil, append(who, httplimit.FailOpen()), unavailable(`"limit_scope":"tenant:acme:route:search"`)},
		{"reason alone", client.Decision{Degraded: true, Answer: client.Answer{Reason: "limiter_unavailable", RetryAfter: time.Second}}, nil, nil, unavailable("")},
		{"failure mode alone", client.Decision{Degraded: true, FailureMode: client.ModeClosed}, nil, nil, unavailable("")},
		{"failure mode open", open, nil, []httplimit.Option{httplimit.XRateLimit()}, "200\n\nhello"},
		{"failure mode local", local, nil, nil, `200
Ratelimit: "search";r=39;t=1
Ratelimit-Policy: "search";q=40

hello`},
		{"no decision", client.Decision{}, fault.New(fault.Deadline, "secret"), who, unavailable(`"limit_scope":"tenant:acme:route:search"`)},
		{"too old without an id of its own", client.Decision{}, fault.New(fault.TooOld, "secret"), nil, unavailable("")},
		{"fail open", client.Decision{}, fault.New(fault.NoLeader, ""), []httplimit.Option{httplimit.FailOpen()}, "200\n\nhello"},
		{"invalid", client.Decision{}, fault.Field("tenant", "secret"), append(who, httplimit.FailOpen()), `400
Cache-Control: no-store
Content-Type: application/problem+json

{"type":"about:blank","title":"Bad Request","status":400,"detail":"The request has a value that no limit can count by: tenant.","error":"invalid_request","message":"The request has a value that no limit can count by: tenant.","limit_scope":"tenant:acme:route:search"}
`},
		{"id reused", client.Decision{}, fault.New(fault.IDReused, ""), []httplimit.Option{httplimit.FailOpen()}, `409
Cache-Control: no-store
Content-Type: application/problem+json

{"type":"about:blank","title":"Conflict","status":409,"detail":"Another request has used this Idempotency-Key.","error":"request_id_reused","message":"Another request has used this Idempotency-Key."}
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ask(&fake{decision: c.decision, err: c.err}, get("/"), append(c.opts, sure)...)
			if got := dump(w); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func unavailable(scope string) string {
	if scope != "" {
		scope = "," + scope
	}
	return `503
Cache-Control: no-store
Content-Type: application/problem+json
Retry-After: 1

{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"It cannot be decided at the moment whether the request is within its limits.","error":"limiter_unavailable","message":"It cannot be decided at the moment whether the request is within its limits.","retry_after_seconds":1` + scope + "}\n"
}

func TestXRateLimitResetsInEpochSeconds(t *testing.T) {
	a := search()
	a.ResetAfter = time.Hour
	before := time.Now().Add(time.Hour)
	w := ask(&fake{decision: client.Decision{Answer: a}}, get("/"), httplimit.XRateLimit(), httplimit.OlderRateLimit(true))
	after := time.Now().Add(time.Hour)
	for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
		if l, r := w.Header().Get(prefix+"Limit"), w.Header().Get(prefix+"Remaining"); l != "40" || r != "39" {
			t.Errorf("%s: limit %s, remaining %s", prefix, l, r)
		}
		reset, err := strconv.ParseInt(w.Header().Get(prefix+"Reset"), 10, 64)
		if err != nil || reset < before.Unix() || reset > after.Unix()+1 {
			t.Errorf("%sReset: %d, %v; want %d … %d", prefix, reset, err, before.Unix(), after.Unix()+1)
		}
	}
}

func TestRetryAfterIsWholeSecondsRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{0: "1", 200 * time.Millisecond: "1", 1840 * time.Millisecond: "2", 12 * time.Second: "12"} {
		w := ask(&fake{decision: deniedFor(wait)}, get("/"), sure)
		if got := w.Header().Get("Retry-After"); got != want || !strings.Contains(w.Body.String(), `"retry_after_seconds":`+want+`,`) {
			t.Errorf("%v: Retry-After %s, body %s, want %s", wait, got, w.Body, want)
		}
	}
}

// TestDeniedCallersDoNotReturnTogether, nor before their time.
func TestDeniedCallersDoNotReturnTogether(t *testing.T) {
	f, seen := &fake{decision: deniedFor(12 * time.Second)}, map[string]int{}
	for range 1000 {
		w := ask(f, get("/"))
		after := w.Header().Get("Retry-After")
		seen[after]++
		if !strings.Contains(w.Body.String(), `"retry_after_seconds":`+after+`,`) {
			t.Fatalf("Retry-After is %s, but the body says %s", after, w.Body)
		}
	}
	if len(seen) != 4 || seen["12"] == 0 || seen["15"] == 0 || seen["12"] > 400 {
		t.Errorf("Retry-After %v, want 12 … 15 alike", seen)
	}
}

// TestTwoLimitersAroundOneHandler: both are told, whoever denies.
func TestTwoLimitersAroundOneHandler(t *testing.T) {
	outer := search()
	outer.PolicyID = "everybody"
	w := httptest.NewRecorder()
	inner := httplimit.New(&fake{decision: deniedFor(time.Second)}, sure)(hello)
	httplimit.New(&fake{decision: client.Decision{Answer: outer}})(inner).ServeHTTP(w, get("/"))
	if got, want := strings.Join(w.Header().Values("RateLimit"), ", "), `"everybody";r=39;t=1, "search";r=0;t=2`; got != want || w.Code != 429 {
		t.Errorf("%d, %s, want 429, %s", w.Code, got, want)
	}
}

// TestRequestThatWasCancelledGetsNoBody, is no error, and is not let through.
func TestRequestThatWasCancelledGetsNoBody(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	f := &fake{decide: func(ctx context.Context, _ client.Request) (client.Decision, error) {
		cancel()
		return client.Decision{}, fmt.Errorf("gave up: %w", ctx.Err())
	}}
	w := ask(f, get("/").WithContext(ctx), httplimit.FailOpen(), httplimit.OnError(func(_ *http.Request, err error) { t.Error(err) }))
	if got := dump(w); got != "503\n\n" {
		t.Errorf("got %s", got)
	}
}

func TestOnErrorIsTold(t *testing.T) {
	var told error
	ask(&fake{err: fault.Busy}, get("/"), httplimit.OnError(func(r *http.Request, err error) {
		if r.URL.Path != "/" {
			t.Errorf("of a request for %s", r.URL.Path)
		}
		told = err
	}))
	if !errors.Is(told, fault.Busy) {
		t.Errorf("told %v", told)
	}
}

func TestOnDenyAnswersInItsOwnWords(t *testing.T) {
	var got httplimit.Denial
	page := httplimit.OnDeny(func(w http.ResponseWriter, r *http.Request, d *httplimit.Denial) {
		got = *d
		if r.URL.Path == "/api" {
			d.Answer(w)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(d.Status)
		fmt.Fprintf(w, "please wait for %v", d.RetryAfter)
	})
	f := &fake{decision: deniedFor(1840 * time.Millisecond)}
	want := "429\nCache-Control: no-store\nContent-Type: text/plain\nRatelimit: \"search\";r=0;t=2\nRatelimit-Policy: \"search\";q=40\nRetry-After: 2\n\nplease wait for 2s"
	if w := ask(f, get("/"), page, sure); dump(w) != want {
		t.Errorf("got\n%s\nwant\n%s", dump(w), want)
	}
	if got.Decision.PolicyVersion != 812 || got.Err != nil || len(got.Violated) != 1 || got.Code != "rate_limit_exceeded" {
		t.Errorf("the denial was %+v", got)
	}
	if w := ask(f, get("/api"), page, sure); dump(w) != dump(ask(f, get("/api"), sure)) {
		t.Errorf("d.Answer wrote\n%s", dump(w))
	}
}

func TestSkippedRequestsAreNotAsked(t *testing.T) {
	f := &fake{decision: deniedFor(time.Second)}
	health := httplimit.Skip(func(r *http.Request) bool { return r.URL.Path == "/healthz" })
	if w := ask(f, get("/healthz"), health); dump(w) != "200\n\nhello" || len(f.asked) > 0 {
		t.Errorf("got\n%s, asked %v", dump(w), f.asked)
	}
	if w := ask(f, get("/"), health); w.Code != 429 {
		t.Errorf("another path got %d", w.Code)
	}
}

func TestHandlerSeesTheDecision(t *testing.T) {
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if d, ok := httplimit.DecisionFrom(r.Context()); !ok || d.PolicyVersion != 812 {
			t.Errorf("decision %+v, %v", d, ok)
		}
	})
	httplimit.New(&fake{decision: client.Decision{Answer: search()}})(handler).ServeHTTP(httptest.NewRecorder(), get("/"))
	if _, ok := httplimit.DecisionFrom(context.Background()); ok {
		t.Error("a decision from nowhere")
	}
}

// TestNothingInjects: names of all kinds that come from requests and policies stay
// inside of the field and the text they belong in.
func TestNothingInjects(t *testing.T) {
	const evil = "x\r\nSet-Cookie: a=b\r\n\r\n<script>\",\"error\":\"none"
	d := deniedFor(time.Second)
	d.PolicyID = evil
	quoted := d.Answer
	quoted.PolicyID = `a", "b";r=9`
	d.Limits = []client.Answer{d.Answer, quoted}
	for _, err := range []error{nil, fault.Field(evil, evil), errors.New(evil)} {
		f := &fake{decision: d, err: err}
		w := ask(f, get("/"), tenant(evil), route(evil), httplimit.User(func(*http.Request) string { return evil }), httplimit.XRateLimit(), httplimit.OlderRateLimit(false))
		for name, values := range w.Header() {
			for _, v := range values {
				if strings.ContainsAny(name+v, "\r\n<") {
					t.Errorf("%s: %q", name, v)
				}
			}
		}
		if got := w.Header().Get("RateLimit"); err == nil && got != `"a\", \"b\";r=9";r=0;t=2` {
			t.Errorf("RateLimit: %s", got)
		}
		var body map[string]any
		if e := json.Unmarshal(w.Body.Bytes(), &body); e != nil || strings.ContainsAny(w.Body.String(), "\r<") || strings.Count(w.Body.String(), "\n") != 1 {
			t.Errorf("%v, body %s", e, w.Body)
		}
		if want := "tenant:" + evil + ":user:" + evil + ":route:" + evil; body["limit_scope"] != want || body["error"] == "none" {
			t.Errorf("body %s", w.Body)
		}
	}
}
