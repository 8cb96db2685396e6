// Package ginlimit puts httplimit into a gin engine.
package ginlimit

import (
	"bufio"
	"context"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/ringlimit/ringlimit/client/httplimit"
)

// New returns middleware that asks d for every request. The route is gin's pattern, such as
// GET:/v1/items/:id; a request that meets none has no route. A request that is not let
// through is answered, and the handlers behind are not called. opts are those of httplimit.
//
//	r := gin.Default()
//	r.Use(ginlimit.New(c, httplimit.APIKey("X-API-Key")))
func New(d httplimit.Decider, opts ...httplimit.Option) gin.HandlerFunc {
	opts = append([]httplimit.Option{httplimit.Route(route)}, opts...)
	limited := httplimit.New(d, opts...)(http.HandlerFunc(next))
	return func(c *gin.Context) {
		p := &pass{gin: c}
		outer := c.Request
		limited.ServeHTTP(c.Writer, outer.WithContext(context.WithValue(outer.Context(), passKey{}, p)))
		c.Request = outer // the context of the inner one ends with the permit
		if !p.passed {
			c.Abort()
		}
	}
}

// pass is one request on its way through the middleware.
type pass struct {
	gin    *gin.Context
	passed bool
}

type passKey struct{}

func passOf(r *http.Request) *pass { return r.Context().Value(passKey{}).(*pass) }

func route(r *http.Request) string {
	pattern := passOf(r).gin.FullPath()
	if pattern == "" {
		return ""
	}
	return r.Method + ":" + pattern
}

// next goes on with the handlers of gin.
func next(w http.ResponseWriter, r *http.Request) {
	p := passOf(r)
	p.passed = true
	p.gin.Request = r
	if outer := p.gin.Writer; w != http.ResponseWriter(outer) {
		p.gin.Writer = &hijacking{outer, w}
		defer func() { p.gin.Writer = outer }()
	}
	p.gin.Next()
}

// hijacking is gin's writer whose connection, once hijacked, keeps the permits of the request.
type hijacking struct {
	gin.ResponseWriter
	limited http.ResponseWriter
}

// Hijack leaves the permits to the connection.
func (h *hijacking) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.limited).Hijack()
}
