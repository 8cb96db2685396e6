package httplimit

import (
	"net/http"
	"strings"
)

// router is what knows the pattern of a request before it is served; *http.ServeMux is
// one.
type router interface {
	Handler(r *http.Request) (h http.Handler, pattern string)
}

// Route says which route a request takes, as METHOD:/path, at most 1024 bytes; "" is
// none. It must be one of few: a route class, the pattern of your router, never the
// path as it came.
//
// Without this option it is made of the pattern of the http.ServeMux that is wrapped,
// or else of the mux that called: "GET /v1/items/{id}" is GET:/v1/items/{id}. A pattern
// without a method has that of the request, and OTHER in place of methods that HTTP does
// not know; its host is left out. Requests without a pattern have no route.
func Route(f func(r *http.Request) string) Option {
	return func(o *options) { o.route = f }
}

func (h *handler) routeOf(r *http.Request) string {
	if h.route != nil {
		return h.route(r)
	}
	if h.mux != nil {
		if _, pattern := h.mux.Handler(r); pattern != "" {
			return routeOf(pattern, r.Method)
		}
	}
	return routeOf(r.Pattern, r.Method)
}

// routeOf writes a pattern of http.ServeMux as a route.
func routeOf(pattern, method string) string {
	if pattern == "" {
		return ""
	}
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		method, pattern = pattern[:i], strings.TrimLeft(pattern[i:], " \t")
	} else {
		method = knownMethod(method)
	}
	i := strings.IndexByte(pattern, '/')
	if i < 0 {
		return ""
	}
	return method + ":" + strings.TrimSuffix(pattern[i:], "{$}")
}

// knownMethod is a method, unless a client has made it up.
func knownMethod(method string) string {
	switch method {
	case "":
		return http.MethodGet // of a request that did not come from a server
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	default:
		return "OTHER"
	}
}
