// Package echolimit puts httplimit into an echo server.
package echolimit

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/ringlimit/ringlimit/client/httplimit"
)

// New returns middleware that asks d for every request. The route is echo's pattern, such
// as GET:/v1/items/:id; a request that meets none has no route. A request that is not let
// through is answered, and the handler is not called. opts are those of httplimit. It goes
// to Use, not to Pre, which runs before echo knows the pattern.
//
//	e := echo.New()
//	e.Use(echolimit.New(c, httplimit.APIKey("X-API-Key")))
func New(d httplimit.Decider, opts ...httplimit.Option) echo.MiddlewareFunc {
	opts = append([]httplimit.Option{httplimit.Route(route)}, opts...)
	limit := echo.WrapMiddleware(httplimit.New(d, opts...))
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		limited := limit(next)
		return func(c echo.Context) error {
			r := c.Request()
			c.SetRequest(r.WithContext(context.WithValue(r.Context(), patternKey{}, c.Path())))
			return limited(c)
		}
	}
}

type patternKey struct{}

func route(r *http.Request) string {
	pattern, _ := r.Context().Value(patternKey{}).(string)
	if pattern == "" {
		return ""
	}
	return r.Method + ":" + pattern
}
