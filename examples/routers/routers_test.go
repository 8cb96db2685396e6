package routers_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/httplimit"
	"github.com/ringlimit/ringlimit/examples/routers/chilimit"
	"github.com/ringlimit/ringlimit/examples/routers/echolimit"
	"github.com/ringlimit/ringlimit/examples/routers/ginlimit"
)

// fake admits tenants but "denied", with a permit, and keeps what it was asked.
type fake struct {
	mu       sync.Mutex
	routes   []string
	released chan string
}

func newFake() *fake { return &fake{released: make(chan string, 10)} }

func (f *fake) Decide(_ context.Context, r client.Request) (client.Decision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.routes = append(f.routes, r.Route)
	if r.Tenant == "denied" {
		return client.Decision{Answer: client.Answer{Limit: 5, RetryAfter: 3 * time.Second, PolicyID: "p", Reason: "rate_limited"}}, nil
	}
	return client.Decision{Answer: client.Answer{Allowed: true, Limit: 5, Remaining: 4, PolicyID: "p", PermitID: "p7", FencingToken: 9, ResetAfter: time.Minute}}, nil
}

func (f *fake) Release(_ context.Context, _ client.Request, id string) (bool, error) {
	f.released <- id
	return true, nil
}

func (f *fake) Renew(context.Context, client.Request, string) (time.Duration, bool, error) {
	return time.Minute, true, nil
}

func (f *fake) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.routes)
}

// stack is a router with the same routes, whichever it is: handle is called for them, with
// the id in the path.
type stack func(d httplimit.Decider, handle func(w http.ResponseWriter, r *http.Request, id string), opts ...httplimit.Option) http.Handler

var stacks = map[string]stack{
	"chi": func(d httplimit.Decider, handle func(http.ResponseWriter, *http.Request, string), opts ...httplimit.Option) http.Handler {
		r := chi.NewRouter()
		r.Use(httplimit.New(d, append(opts, chilimit.Route(r))...))
		r.Route("/v1", func(r chi.Router) {
			r.Get("/items/{id}", func(w http.ResponseWriter, r *http.Request) { handle(w, r, chi.URLParam(r, "id")) })
		})
		return r
	},
	"gin": func(d httplimit.Decider, handle func(http.ResponseWriter, *http.Request, string), opts ...httplimit.Option) http.Handler {
		gin.SetMode(gin.ReleaseMode)
		r := gin.New()
		r.Use(ginlimit.New(d, opts...))
		r.Group("/v1").GET("/items/:id", func(c *gin.Context) { handle(c.Writer, c.Request, c.Param("id")) })
		return r
	},
	"echo": func(d httplimit.Decider, handle func(http.ResponseWriter, *http.Request, string), opts ...httplimit.Option) http.Handler {
		e := echo.New()
		e.Use(echolimit.New(d, opts...))
		e.Group("/v1").GET("/items/:id", func(c echo.Context) error {
			handle(c.Response(), c.Request(), c.Param("id"))
			return nil
		})
		return e
	},
}

var tenant = httplimit.Tenant(httplimit.Header("X-Tenant"))

func ask(h http.Handler, path, tenant string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("X-Tenant", tenant)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestRouteIsThePattern, and never a path that anybody can make up; the handler runs with its
// parameters, its decision and its permit.
func TestRouteIsThePattern(t *testing.T) {
	for name, stack := range stacks {
		f := newFake()
		h := stack(f, func(w http.ResponseWriter, r *http.Request, id string) {
			d, ok := httplimit.DecisionFrom(r.Context())
			fmt.Fprintf(w, "%s %v %d %d", id, ok, d.FencingToken, len(f.released))
		}, tenant)
		if w := ask(h, "/v1/items/42", "acme"); w.Code != 200 || w.Body.String() != "42 true 9 0" || w.Header().Get("RateLimit") == "" {
			t.Errorf("%s: %d %q %v", name, w.Code, w.Body, w.Header())
		}
		if got := <-f.released; got != "p7" {
			t.Errorf("%s: released %q", name, got)
		}
		if w := ask(h, "/v1/nothing/42", "acme"); w.Code != 404 {
			t.Errorf("%s: %d", name, w.Code)
		}
		pattern := map[string]string{"chi": "GET:/v1/items/{id}"}[name]
		if pattern == "" {
			pattern = "GET:/v1/items/:id"
		}
		if got := f.asked(); got[0] != pattern || len(got) > 1 && got[1] != "" {
			t.Errorf("%s: asked %q", name, got)
		}
	}
}

// TestDeniedRequestsEndHere.
func TestDeniedRequestsEndHere(t *testing.T) {
	for name, stack := range stacks {
		h := stack(newFake(), func(http.ResponseWriter, *http.Request, string) { t.Errorf("%s: it is served", name) }, tenant, httplimit.Jitter(nil))
		w := ask(h, "/v1/items/42", "denied")
		if w.Code != 429 || w.Header().Get("Retry-After") != "3" || !strings.Contains(w.Body.String(), `"error":"rate_limit_exceeded"`) {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
	}
}

// TestPanicsGiveThePermitBack.
func TestPanicsGiveThePermitBack(t *testing.T) {
	for name, stack := range stacks {
		f := newFake()
		h := stack(f, func(http.ResponseWriter, *http.Request, string) { panic(http.ErrAbortHandler) }, tenant)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic is gone", name)
				}
			}()
			ask(h, "/v1/items/42", "acme")
		}()
		if got := <-f.released; got != "p7" {
			t.Errorf("%s: released %q", name, got)
		}
	}
}

// TestHijackedConnectionsKeepThePermit until they are closed.
func TestHijackedConnectionsKeepThePermit(t *testing.T) {
	for name, stack := range stacks {
		f, conns := newFake(), make(chan net.Conn, 1)
		h := stack(f, func(w http.ResponseWriter, _ *http.Request, _ string) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			conns <- conn
		}, tenant)
		returned := make(chan struct{}, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			returned <- struct{}{}
		}))
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "GET /v1/items/42 HTTP/1.1\r\nHost: x\r\nX-Tenant: acme\r\n\r\n")
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "101") {
			t.Errorf("%s: %q, %v", name, line, err)
		}
		<-returned
		conn := <-conns
		if len(f.released) > 0 {
			t.Errorf("%s: released when the handler returned", name)
		}
		conn.Close()
		if got := <-f.released; got != "p7" {
			t.Errorf("%s: released %q", name, got)
		}
		_, _ = io.Copy(io.Discard, c)
		c.Close()
		s.Close()
	}
}
