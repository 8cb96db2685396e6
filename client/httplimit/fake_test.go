package httplimit_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/httplimit"
)

// fake is a decider that gives one answer and remembers what it was asked.
type fake struct {
	decision client.Decision
	err      error
	decide   func(ctx context.Context, q client.Request) (client.Decision, error) // if not nil, in place of both
	renew    func() (left time.Duration, held bool, err error)
	release  func(ctx context.Context) error

	mu       sync.Mutex
	asked    []client.Request
	released []string
	renewed  []string
}

func (f *fake) Decide(ctx context.Context, q client.Request) (client.Decision, error) {
	f.mu.Lock()
	f.asked = append(f.asked, q)
	f.mu.Unlock()
	if f.decide != nil {
		return f.decide(ctx, q)
	}
	return f.decision, f.err
}

func (f *fake) Release(ctx context.Context, _ client.Request, id string) (bool, error) {
	var err error
	if f.release != nil {
		err = f.release(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released = append(f.released, id)
	return err == nil, err
}

func (f *fake) Renew(_ context.Context, _ client.Request, id string) (time.Duration, bool, error) {
	f.mu.Lock()
	f.renewed = append(f.renewed, id)
	f.mu.Unlock()
	if f.renew != nil {
		return f.renew()
	}
	return time.Minute, true, nil
}

// gave returns the permits that were given back so far, sorted.
func (f *fake) gave() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(slices.Values(f.released))
}

func (f *fake) renewals() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.renewed)
}

// last is the request that was asked last.
func (f *fake) last(t *testing.T) client.Request {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		t.Fatal("nothing was asked")
	}
	return f.asked[len(f.asked)-1]
}

// search is an answer of a policy of 20 per second and a burst of 40.
func search() client.Answer {
	return client.Answer{Allowed: true, Limit: 40, Remaining: 39, ResetAfter: 50 * time.Millisecond, PolicyID: "search", PolicyVersion: 812}
}

func deniedFor(wait time.Duration) client.Decision {
	return client.Decision{Answer: client.Answer{
		Limit: 40, ResetAfter: 2 * time.Second, RetryAfter: wait, PolicyID: "search", PolicyVersion: 812, Reason: "rate_limited",
	}}
}

// hello is what stands behind the middleware.
var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = nil // none is guessed
	fmt.Fprint(w, "hello")
})

// ask sends one request through the middleware.
func ask(d httplimit.Decider, r *http.Request, opts ...httplimit.Option) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	httplimit.New(d, opts...)(hello).ServeHTTP(w, r)
	return w
}

func get(path string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// dump is all of a response, with its header sorted.
func dump(w *httptest.ResponseRecorder) string {
	var b bytes.Buffer
	fmt.Fprintln(&b, w.Code)
	_ = w.Header().Write(&b)
	fmt.Fprintf(&b, "\n%s", w.Body)
	return string(bytes.ReplaceAll(b.Bytes(), []byte("\r\n"), []byte("\n")))
}

func route(to string) httplimit.Option {
	return httplimit.Route(func(*http.Request) string { return to })
}

func tenant(name string) httplimit.Option {
	return httplimit.Tenant(func(*http.Request) string { return name })
}

// sure draws no jitter, so that an answer is the same each time.
var sure = httplimit.Jitter(nil)
