package rest

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/api/wire"
)

// The headers of our own, and how long an id for tracing may be to be echoed.
const (
	headerTimeout     = "X-Timeout-Ms"
	headerRequestID   = "X-Request-Id"
	headerIdempotency = "Idempotency-Key"
	maxTraceID        = 128 // bytes
)

// call is one request on its way. Calls are pooled: nothing of one may be kept.
type call struct {
	h    *Handler
	w    http.ResponseWriter
	r    *http.Request
	name string // the one in the path

	in  []byte // the body as it came
	out []byte // what is answered
	q   wire.Requests
}

var calls = sync.Pool{New: func() any { return new(call) }}

// keepBytes is how large a buffer is kept for the next call.
const keepBytes = 64 << 10

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*call)
	c.h, c.w, c.r = h, w, r
	c.echo()
	if err := c.run(); err != nil {
		c.problem(err)
	}
	c.h, c.w, c.r, c.name = nil, nil, nil, ""
	clear(c.q.Message.Requests)
	clear(c.q.Bad)
	c.q.Message.Requests, c.q.Bad = c.q.Message.Requests[:0], c.q.Bad[:0]
	if cap(c.in) > keepBytes || cap(c.out) > keepBytes {
		return
	}
	calls.Put(c)
}

// run finds the operation and serves it, in its time. What fails in it is
// contained: by then something may have been done.
func (c *call) run() (err error) {
	res, name := c.h.find(c.r.URL.EscapedPath())
	if res == nil {
		return &refusal{status: http.StatusNotFound, detail: "there is no " + printable(c.r.URL.EscapedPath()) + "; docs/http.md has all paths"}
	}
	route := res.methods[c.r.Method]
	if route == nil {
		return res.refused(c.r.Method)
	}
	timeout, err := c.timeout(route)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), timeout)
	defer cancel()
	c.r = c.r.WithContext(ctx)
	c.name = name
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { // thrown as it is
				panic(p)
			}
			c.h.options.Logger.Error("panic in a handler", "path", route.pattern, "panic", p, "stack", string(debug.Stack()))
			err = fault.New(fault.OutcomeUnknown, "the node failed on this call")
		}
	}()
	return route.serve(c)
}

// timeout is how long the caller waits, in whole ms.
func (c *call) timeout(r *route) (time.Duration, error) {
	text, ok, err := c.header(headerTimeout)
	if err != nil || !ok {
		return r.within, err
	}
	ms, err := strconv.ParseUint(text, 10, 32)
	if err != nil || ms < 1 || ms > uint64(r.most.Milliseconds()) {
		return 0, fault.Field(headerTimeout, "%s, want whole milliseconds, 1 … %d", printable(text), r.most.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// header returns a header that may come once; ok is false if it did not.
func (c *call) header(name string) (value string, ok bool, err error) {
	switch all := c.r.Header[name]; len(all) {
	case 0:
		return "", false, nil
	case 1:
		return all[0], true, nil
	default:
		return "", false, fault.Field(name, "given %d times, want it once", len(all))
	}
}

// echo repeats the caller's id for tracing, unless it is longer or stranger than
// such ids are.
func (c *call) echo() {
	if id := c.r.Header.Get(headerRequestID); id != "" && len(id) <= maxTraceID && isPrintable(id) {
		c.w.Header()[headerRequestID] = []string{id}
	}
}

// Values of headers that are the same in all answers.
var (
	typeJSON    = []string{"application/json"}
	typeProblem = []string{"application/problem+json"}
	typeText    = []string{"text/plain; charset=utf-8"}
	noStore     = []string{"no-store"}
)

// answer writes c.out. Nothing that a node answers may be kept by a cache.
func (c *call) answer(status int, kind []string) {
	h := c.w.Header()
	h["Content-Type"], h["Cache-Control"] = kind, noStore
	h["Content-Length"] = []string{strconv.Itoa(len(c.out))}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(c.out) // a caller that is gone is told nothing
}

// isPrintable says whether s is printable ASCII alone.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// printable is what a caller sent as an error may repeat it: quoted, and not at length.
func printable(s string) string {
	const most = 64
	if len(s) > most {
		return fmt.Sprintf("%+q… (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%+q", s)
}
