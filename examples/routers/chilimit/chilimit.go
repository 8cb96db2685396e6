// Package chilimit puts httplimit under a chi router. chi takes net/http middleware as it
// is; what httplimit cannot know is the pattern that a request will meet.
package chilimit

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/ringlimit/ringlimit/client/httplimit"
)

// Route finds the route of a request by the patterns of routes, such as
// GET:/v1/items/{id}, also in routers that are mounted there. Middleware of Use runs before
// chi has matched, so it is matched here. A request that meets nothing has no route.
//
//	r := chi.NewRouter()
//	r.Use(httplimit.New(c, chilimit.Route(r), httplimit.APIKey("X-API-Key")))
func Route(routes chi.Routes) httplimit.Option {
	return httplimit.Route(func(r *http.Request) string {
		path := r.URL.RawPath // as chi does
		if path == "" {
			path = r.URL.Path
		}
		found := chi.NewRouteContext()
		if !routes.Match(found, r.Method, path) {
			return ""
		}
		return r.Method + ":" + found.RoutePattern()
	})
}
