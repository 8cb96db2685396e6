package rest

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// route is one operation. The name in a pattern's {} is one segment of the path.
type route struct {
	method  string
	pattern string
	within  time.Duration // how long it may take where the caller does not say
	most    time.Duration // how long the caller may ask for
	serve   func(c *call) error
}

// How long operations wait. WriteTimeout of the server must be longer than the
// longest, so that its answer still gets out.
const (
	decisionPatience = 2 * time.Second // what a caller waits who names no deadline
	maxDecision      = 10 * time.Second
	policyPatience   = 10 * time.Second // a change may wait for the control group's next leader
	maxPatience      = 30 * time.Second
)

// routes are all operations that there are.
func (h *Handler) routes() []route {
	decision := func(pattern string, serve func(*call) error) route {
		return route{http.MethodPost, pattern, decisionPatience, maxDecision, serve}
	}
	other := func(method, pattern string, serve func(*call) error) route {
		return route{method, pattern, policyPatience, maxPatience, serve}
	}
	return []route{
		decision("/v1/decisions", decide),
		decision("/v1/decisions:batch", decideBatch),
		decision("/v1/decisions:refund", refund),
		decision("/v1/leases", lease),
		decision("/v1/permits:release", release),
		decision("/v1/permits:renew", renew),
		other(http.MethodGet, "/v1/policies", listPolicies),
		other(http.MethodGet, "/v1/policies/{id}", getPolicy),
		other(http.MethodPut, "/v1/policies/{id}", putPolicy),
		other(http.MethodDelete, "/v1/policies/{id}", deletePolicy),
		other(http.MethodGet, "/v1/policies/{id}/versions", policyVersions),
		other(http.MethodGet, "/v1/overrides", listOverrides),
		other(http.MethodPut, "/v1/overrides", setOverride),
		other(http.MethodDelete, "/v1/overrides", clearOverride),
		other(http.MethodGet, "/v1/cluster", clusterStatus),
		other(http.MethodGet, "/healthz", healthz),
		other(http.MethodGet, "/readyz", readyz),
		other(http.MethodGet, "/metrics", metrics),
	}
}

// resource is a path and what can be done with it.
type resource struct {
	segments []string
	named    bool // one of the segments is a name
	methods  map[string]*route
	allow    string
}

// add makes r reachable. GET brings HEAD, whose body the server drops.
func (h *Handler) add(r route) {
	segments := strings.Split(r.pattern, "/")
	var res *resource
	for _, known := range h.resources {
		if strings.Join(known.segments, "/") == r.pattern {
			res = known
		}
	}
	if res == nil {
		res = &resource{segments: segments, named: strings.Contains(r.pattern, "{"), methods: map[string]*route{}}
		h.resources = append(h.resources, res)
		if !res.named {
			h.fixed[r.pattern] = res
		}
	}
	methods := []string{r.method}
	if r.method == http.MethodGet {
		methods = append(methods, http.MethodHead)
	}
	for _, m := range methods {
		res.methods[m] = &r
		if res.allow != "" {
			res.allow += ", "
		}
		res.allow += m
	}
}

// find returns the resource of a path as it was sent, and the name in it; nil: none.
func (h *Handler) find(path string) (res *resource, name string) {
	if res := h.fixed[path]; res != nil {
		return res, ""
	}
	for _, res := range h.resources {
		if !res.named {
			continue
		}
		if name, ok := res.match(path); ok {
			return res, name
		}
	}
	return nil, ""
}

// match compares a path segment by segment.
func (r *resource) match(path string) (name string, ok bool) {
	for i, want := range r.segments {
		got, rest, more := strings.Cut(path, "/")
		if more == (i == len(r.segments)-1) {
			return "", false
		}
		path = rest
		if !strings.HasPrefix(want, "{") {
			if got != want {
				return "", false
			}
			continue
		}
		var err error
		if name, err = url.PathUnescape(got); err != nil || name == "" {
			return "", false
		}
	}
	return name, true
}

// allowed is a 405 that says what is.
func (r *resource) refused(method string) error {
	return &refusal{status: http.StatusMethodNotAllowed, detail: "method " + printable(method) + ", want " + strings.ReplaceAll(r.allow, ", ", " or "), allow: r.allow}
}
