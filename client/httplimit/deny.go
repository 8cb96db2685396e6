package httplimit

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/api/ratelimit"
	"github.com/ringlimit/ringlimit/client"
)

// Denial is why a request was not let through.
type Denial struct {
	// Status is 429 for what a limit denied, 503 where no limiter was within reach, 400
	// for a request with a value that no limit can count by, 409 for a reused
	// Idempotency-Key.
	Status int
	// Code is what happened, for programs: rate_limit_exceeded, limiter_unavailable,
	// invalid_request, request_id_reused or request_id_too_old.
	Code string
	// Message is what happened, for people.
	Message string
	// RetryAfter is what the header of that name says, in whole seconds, at least 1 s; 0:
	// there is none, because no wait helps.
	RetryAfter time.Duration
	// Scope is what the policy counts by that denied, such as tenant:acme:route:search; where
	// that is not known, the tenant, principals and route that the request has. Of
	// credentials, which are api_key and oauth_token, it has the name alone.
	Scope string
	// Violated are the ids of the policies that denied, in their order; nil but for 429.
	Violated []string
	// Decision is the denial; the zero Decision where Err is not nil.
	Decision client.Decision
	// Err is why there is no decision, of a kind of package fault.
	Err error
}

// The codes of Denial.
const (
	codeLimited     = "rate_limit_exceeded"
	codeUnavailable = "limiter_unavailable"
	codeInvalid     = "invalid_request"
	codeReused      = "request_id_reused"
	codeTooOld      = "request_id_too_old"
)

// again is when to try again if no decision says so.
const again = time.Second

// denied is the denial of a decision.
func (h *handler) denied(q *client.Request, d *client.Decision) *Denial {
	out := &Denial{Scope: h.scopeOf(q, d.PolicyID), Decision: *d}
	if d.Reason == "limiter_unavailable" || d.Degraded && d.FailureMode == client.ModeClosed {
		out.unavailable(d.RetryAfter)
		return out
	}
	out.Status, out.Code, out.RetryAfter = http.StatusTooManyRequests, codeLimited, d.RetryAfter
	out.Violated = ratelimit.Violated(limitsOf(d))
	switch d.Reason {
	case "cost_exceeds_capacity":
		out.Message = "The request costs more than its limit ever holds."
	case "nothing_allowed":
		out.Message = "The limit allows no such requests."
	case "no_policy":
		out.Message = "No policy allows such requests."
	}
	return out
}

// overdue is the denial of a request that was admitted for later than it can wait.
func (h *handler) overdue(q *client.Request, d *client.Decision) *Denial {
	return &Denial{
		Status: http.StatusTooManyRequests, Code: codeLimited, RetryAfter: d.Delay, Scope: h.scopeOf(q, d.PolicyID), Decision: *d,
		Message: "The request would have to wait for longer than it can.",
	}
}

// failure is the denial of a request without a decision.
func failure(q *client.Request, err error) *Denial {
	d := &Denial{Scope: countedBy(q), Err: err, RetryAfter: client.Never}
	var e *fault.Error
	switch {
	case errors.Is(err, fault.InvalidArgument):
		d.Status, d.Code, d.Message = http.StatusBadRequest, codeInvalid, "The request has a value that no limit can count by."
		if errors.As(err, &e) && e.Field != "" {
			d.Message = "The request has a value that no limit can count by: " + e.Field + "."
		}
	case errors.Is(err, fault.IDReused):
		d.Status, d.Code, d.Message = http.StatusConflict, codeReused, "Another request has used this Idempotency-Key."
	case q.RequestID != "" && errors.Is(err, fault.TooOld):
		d.Status, d.Code, d.Message = http.StatusConflict, codeTooOld, "This Idempotency-Key is too old to say whether it was used."
	default:
		d.unavailable(again)
	}
	return d
}

func (d *Denial) unavailable(wait time.Duration) {
	d.Status, d.Code, d.RetryAfter = http.StatusServiceUnavailable, codeUnavailable, wait
	d.Message = "It cannot be decided at the moment whether the request is within its limits."
}

// refuse sets what every answer has that is none of the handler's, and has it written.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, d *Denial) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	seconds, ok := ratelimit.RetryAfter(d.RetryAfter, h.jitter)
	d.RetryAfter = time.Duration(seconds) * time.Second
	if ok {
		header[ratelimit.HeaderRetryAfter] = []string{strconv.FormatInt(seconds, 10)}
	}
	if d.Message == "" {
		d.Message = tooMany(seconds)
	}
	h.onDeny(w, r, d)
}

// tooMany is the message of a limit that is used up for so long; 0: for ever.
func tooMany(seconds int64) string {
	switch seconds {
	case 0:
		return "Too many requests."
	case 1:
		return "Too many requests. Try again in 1 second."
	default:
		return "Too many requests. Try again in " + strconv.FormatInt(seconds, 10) + " seconds."
	}
}

// problem is the body of an answer, by RFC 9457. The type and violated-policies are
// those that draft-ietf-httpapi-ratelimit-headers-11 defines.
type problem struct {
	Type       string   `json:"type"`
	Title      string   `json:"title"`
	Status     int      `json:"status"`
	Detail     string   `json:"detail"`
	Error      string   `json:"error"`
	Message    string   `json:"message"`
	RetryAfter int64    `json:"retry_after_seconds,omitempty"`
	Scope      string   `json:"limit_scope,omitempty"`
	Violated   []string `json:"violated-policies,omitempty"`
}

const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// Answer writes the status and, as application/problem+json, a body that says the same
// as d. It leaves the rest of the header as it is.
func (d *Denial) Answer(w http.ResponseWriter) {
	p := problem{
		Type: "about:blank", Title: http.StatusText(d.Status), Status: d.Status, Detail: d.Message, Error: d.Code, Message: d.Message,
		RetryAfter: int64(d.RetryAfter / time.Second), Scope: d.Scope, Violated: d.Violated,
	}
	if len(d.Violated) > 0 {
		p.Type, p.Title = quotaExceeded, "Request cannot be satisfied as assigned quota has been exceeded"
	}
	body, err := json.Marshal(&p)
	if err != nil {
		panic("httplimit: " + err.Error()) // strings and numbers: cannot fail
	}
	body = append(body, '\n')
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Del("Content-Length") // of an answer that somebody around us had begun
	w.WriteHeader(d.Status)
	_, _ = w.Write(body) // a client that has gone reads no answer
}

// scoper is a decider that knows what policies count by, as *client.Client does.
type scoper interface {
	Scope(r client.Request, policyID string) (scope []client.ScopeValue, ok bool)
}

// scopeOf tells what a policy counts a request by, or all that it may be counted by.
func (h *handler) scopeOf(q *client.Request, policyID string) string {
	if s, ok := h.decider.(scoper); ok && policyID != "" {
		if scope, ok := s.Scope(*q, policyID); ok {
			return scopeText(scope)
		}
	}
	return countedBy(q)
}

// countedBy tells what a request may be counted by.
func countedBy(q *client.Request) string {
	scope := []client.ScopeValue{{Name: "tenant", Value: q.Tenant}}
	for _, p := range q.Principals {
		scope = append(scope, client.ScopeValue{Name: p.Type, Value: p.ID})
	}
	return scopeText(append(scope, client.ScopeValue{Name: "route", Value: q.Route}))
}

// scopeText writes a scope without its credentials.
func scopeText(scope []client.ScopeValue) string {
	var parts []string
	for _, s := range scope {
		switch {
		case s.Value == "":
		case s.Name == "api_key" || s.Name == "oauth_token":
			parts = append(parts, s.Name, "*")
		default:
			parts = append(parts, s.Name, s.Value)
		}
	}
	return strings.Join(parts, ":")
}
