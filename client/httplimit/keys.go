package httplimit

import (
	"net/http"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/client"
)

// Header reads a value from the first header of the request that has this name. Use it
// for what your gateway sets, or for what is a credential itself, as an API key is: a
// header that anybody can set is a key that anybody can change.
func Header(name string) func(r *http.Request) string {
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// Context reads a value from the request's context, where authentication that runs
// before has put it under key, as a string. What is not there, or is no string, is empty.
func Context(key any) func(r *http.Request) string {
	return func(r *http.Request) string {
		value, _ := r.Context().Value(key).(string)
		return value
	}
}

// Tenant says for whom a request is, at most 64 bytes. An empty value is none.
func Tenant(f func(r *http.Request) string) Option {
	return Fill(func(r *http.Request, q *client.Request) { q.Tenant = f(r) })
}

// User says which user asks, as the principal user: at most 256 bytes. An empty value
// is none.
func User(f func(r *http.Request) string) Option { return Principal("user", f) }

// APIKey takes the API key of a request from a header, as the principal api_key, as it
// stands: at most 256 bytes. A request without that header has none. The key is never
// repeated in an answer.
func APIKey(header string) Option { return Principal("api_key", Header(header)) }

// Principal says who asks, in the role kind: user, api_key, oauth_token, service, ip or a
// name of your own. A request has at most one of each kind, so a later one takes the
// place of an earlier, and 8 in all. Ids have at most 256 bytes; an empty one is none.
func Principal(kind string, f func(r *http.Request) string) Option {
	return Fill(func(r *http.Request, q *client.Request) { setPrincipal(q, kind, f(r)) })
}

func setPrincipal(q *client.Request, kind, id string) {
	if id == "" {
		return
	}
	for i := range q.Principals {
		if q.Principals[i].Type == kind {
			q.Principals[i].ID = id
			return
		}
	}
	q.Principals = append(q.Principals, client.Principal{Type: kind, ID: id})
}

// Attribute adds an attribute of your own that policies may match and count by: at most
// 16, of 256 bytes each. An empty value is none.
func Attribute(name string, f func(r *http.Request) string) Option {
	return Fill(func(r *http.Request, q *client.Request) {
		value := f(r)
		if value == "" {
			return
		}
		if q.Attributes == nil {
			q.Attributes = map[string]string{}
		}
		q.Attributes[name] = value
	})
}

// Cost says how many tokens a request takes, 1 … 10^9. 0 takes 1, as all requests do
// without this option.
func Cost(f func(r *http.Request) int64) Option {
	return Fill(func(r *http.Request, q *client.Request) { q.Cost = f(r) })
}

// Fill sets what has no option of its own, such as the plan, or costs for single
// policies. q has what the options before this one have set, and its route; f must
// not keep it.
func Fill(f func(r *http.Request, q *client.Request)) Option {
	return func(o *options) {
		o.fill = append(o.fill, func(r *http.Request, q *client.Request) error { f(r, q); return nil })
	}
}

const (
	headerIdempotency = "Idempotency-Key"
	maxRequestID      = 64 // bytes
)

// IdempotencyKey takes the Idempotency-Key of a request over as its id: for two minutes
// the same request with the same id is charged once, whichever process it comes to, and
// with other content, such as another cost or user, it is 409. Without this option every
// request is charged.
//
// A client that sends one id again and again is not limited. So use it only where the
// handler knows ids that it has seen, and does their work once. The id must be 1 … 64
// printable ASCII characters, given once; else the answer is 400.
func IdempotencyKey() Option {
	return func(o *options) {
		o.fill = append(o.fill, func(r *http.Request, q *client.Request) error {
			ids := r.Header[headerIdempotency]
			if len(ids) == 0 {
				return nil
			}
			if len(ids) > 1 || !validID(ids[0]) {
				return fault.Field(headerIdempotency, "want 1 … %d printable ASCII characters, once", maxRequestID)
			}
			q.RequestID = ids[0]
			return nil
		})
	}
}

func validID(id string) bool {
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= maxRequestID
}

// request is what the decider is asked.
func (h *handler) request(r *http.Request) (client.Request, error) {
	q := client.Request{Route: h.routeOf(r)}
	for _, fill := range h.fill {
		if err := fill(r, &q); err != nil {
			return q, err
		}
	}
	return q, nil
}
