package httplimit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/httplimit"
)

// permitFor is a decision that grants the permit p7 for a time.
func permitFor(d time.Duration) client.Decision {
	return client.Decision{Answer: client.Answer{Allowed: true, Limit: 3, Remaining: 2, ResetAfter: d, PolicyID: "exports", PermitID: "p7", FencingToken: 9}}
}

// twoPermits is a decision of two concurrency limits, one of them in shadow mode.
func twoPermits() client.Decision {
	d := permitFor(time.Minute)
	quiet := d.Answer
	quiet.PermitID, quiet.PolicyID, quiet.Shadow = "p8", "quiet", true
	d.Limits = []client.Answer{d.Answer, search(), quiet}
	return d
}

func TestPermitIsHeldUntilTheHandlerEnds(t *testing.T) {
	for name, end := range map[string]func(){
		"return": func() {},
		"panic":  func() { panic("as it happens") },
		"abort":  func() { panic(http.ErrAbortHandler) },
	} {
		f := &fake{decision: twoPermits()}
		handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if d, _ := httplimit.DecisionFrom(r.Context()); d.FencingToken != 9 || len(f.gave()) > 0 {
				t.Errorf("%s: fencing token %d, given back %q", name, d.FencingToken, f.gave())
			}
			end()
		})
		func() {
			defer func() {
				if got := recover(); (got == nil) != (name == "return") {
					t.Errorf("%s: the panic arrived as %v", name, got)
				}
			}()
			httplimit.New(f)(handler).ServeHTTP(httptest.NewRecorder(), get("/"))
		}()
		if got := f.gave(); !slices.Equal(got, []string{"p7", "p8"}) {
			t.Errorf("%s: given back %q", name, got)
		}
	}
}

// TestPermitOfAHandlerThatCallsGoexit: as t.FailNow does in a handler under test.
func TestPermitOfAHandlerThatCallsGoexit(t *testing.T) {
	f := &fake{decision: permitFor(time.Minute)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		end := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { (&testing.T{}).SkipNow() })
		httplimit.New(f)(end).ServeHTTP(httptest.NewRecorder(), get("/"))
	}()
	<-done
	if got := f.gave(); !slices.Equal(got, []string{"p7"}) {
		t.Errorf("given back %q", got)
	}
}

// TestPermitOfAShadowPolicyIsGivenBack: it counts, and the decision itself has none.
func TestPermitOfAShadowPolicyIsGivenBack(t *testing.T) {
	d := twoPermits()
	d.Answer, d.Limits = client.Answer{Allowed: true}, d.Limits[2:]
	f := &fake{decision: d}
	ask(f, get("/"))
	if got := f.gave(); !slices.Equal(got, []string{"p8"}) {
		t.Errorf("given back %q", got)
	}
}

func TestDeniedRequestsHoldNothing(t *testing.T) {
	f := &fake{decision: deniedFor(time.Second)}
	ask(f, get("/"))
	if len(f.gave()) > 0 {
		t.Errorf("given back %q", f.gave())
	}
}

// TestSlowReleaseDoesNotHoldTheResponse for longer than a moment, and a client that has
// gone does not keep its permit.
func TestSlowReleaseDoesNotHoldTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		var told error
		f := &fake{decision: permitFor(time.Minute), release: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() })
		began := time.Now()
		httplimit.New(f, httplimit.OnError(func(_ *http.Request, err error) { told = err }))(handler).ServeHTTP(httptest.NewRecorder(), get("/").WithContext(ctx))
		if got := time.Since(began); got != 100*time.Millisecond {
			t.Errorf("the handler took %v", got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !errors.Is(told, context.DeadlineExceeded) || !slices.Equal(f.gave(), []string{"p7"}) {
			t.Errorf("told %v, tried to give back %q", told, f.gave())
		}
	})
}

// TestPermitIsRenewedAtHalfOfItsTime: that of the answer at first, then what each
// renewal says.
func TestPermitIsRenewedAtHalfOfItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{decision: permitFor(10 * time.Second), renew: func() (time.Duration, bool, error) { return 4 * time.Second, true, nil }}
		handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			for _, step := range []struct {
				wait time.Duration
				want int
			}{{5*time.Second - 1, 0}, {1, 1}, {2*time.Second - 1, 1}, {1, 2}, {20 * time.Second, 12}} {
				time.Sleep(step.wait)
				synctest.Wait()
				if got := f.renewals(); got != step.want {
					t.Errorf("%d renewals after %v more, want %d", got, step.wait, step.want)
				}
			}
		})
		httplimit.New(f, httplimit.OnError(func(_ *http.Request, err error) { t.Error(err) }))(handler).ServeHTTP(httptest.NewRecorder(), get("/"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if f.renewals() != 12 || !slices.Equal(f.gave(), []string{"p7"}) {
			t.Errorf("afterwards: %d renewals, given back %q", f.renewals(), f.gave())
		}
	})
}

// TestPermitOfUnknownTimeIsAskedFor: an answer that was given before may not say it.
func TestPermitOfUnknownTimeIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := 0
		f := &fake{decision: permitFor(0)}
		f.renew = func() (time.Duration, bool, error) {
			if f.renewals() == 1 {
				return 0, false, fault.NoLeader
			}
			return time.Hour, true, nil
		}
		handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(10 * time.Minute) })
		httplimit.New(f, httplimit.OnError(func(_ *http.Request, err error) {
			if !errors.Is(err, fault.NoLeader) {
				t.Error(err)
			}
			errs++
		}))(handler).ServeHTTP(httptest.NewRecorder(), get("/"))
		if f.renewals() != 2 || errs != 1 {
			t.Errorf("%d renewals, %d errors", f.renewals(), errs)
		}
	})
}

// TestLostPermitEndsTheContext, and is told: one that the cluster does not know, and one
// whose time passes while nobody answers.
func TestLostPermitEndsTheContext(t *testing.T) {
	for _, c := range []struct {
		name     string
		err      error
		told     int
		renewals int
		after    time.Duration
	}{{"gone", nil, 1, 1, 1500 * time.Millisecond}, {"out of reach", fault.Unavailable, 7, 7, 3 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			var told []error
			var mu sync.Mutex
			f := &fake{decision: permitFor(3 * time.Second), renew: func() (time.Duration, bool, error) { return 0, false, c.err }}
			handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				began := time.Now()
				<-r.Context().Done()
				if took := time.Since(began); took != c.after || !errors.Is(context.Cause(r.Context()), client.ErrPermitLost) {
					t.Errorf("%s: %v after %v", c.name, context.Cause(r.Context()), took)
				}
			})
			httplimit.New(f, httplimit.OnError(func(_ *http.Request, err error) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, err)
			}))(handler).ServeHTTP(httptest.NewRecorder(), get("/"))
			if len(told) != c.told || !errors.Is(told[len(told)-1], client.ErrPermitLost) || f.renewals() != c.renewals {
				t.Errorf("%s: told %v, %d renewals", c.name, told, f.renewals())
			}
			for _, err := range told[:len(told)-1] {
				if errors.Is(err, client.ErrPermitLost) {
					t.Errorf("%s: lost twice", c.name)
				}
			}
		})
	}
}

// TestDelayIsWaitedFor within the request's context.
func TestDelayIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name     string
		deadline time.Duration // 0: none
		cancel   time.Duration // 0: never
		opts     []httplimit.Option
		took     time.Duration
		status   int
		header   string // Retry-After
	}{
		{"waits", 0, 0, nil, 1200 * time.Millisecond, 200, ""},
		{"deadline later", 2 * time.Second, 0, nil, 1200 * time.Millisecond, 200, ""},
		{"deadline sooner", time.Second, 0, nil, 0, 429, "2"},
		{"cancelled", 0, time.Second, nil, time.Second, 503, ""},
		{"permit lost", 0, 0, nil, 500 * time.Millisecond, 503, "1"},
		{"ignored", 0, 0, []httplimit.Option{httplimit.IgnoreDelay()}, 0, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if c.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				d := permitFor(time.Minute)
				d.Delay = 1200 * time.Millisecond
				f, began := &fake{decision: d}, time.Now()
				if c.name == "permit lost" {
					f.decision.ResetAfter = time.Second
					f.renew = func() (time.Duration, bool, error) { return 0, false, nil }
				}
				w := ask(f, get("/").WithContext(ctx), append(c.opts, sure)...)
				if took := time.Since(began); took != c.took || w.Code != c.status || w.Header().Get("Retry-After") != c.header {
					t.Errorf("after %v: %s", took, dump(w))
				}
				if got := f.gave(); !slices.Equal(got, []string{"p7"}) {
					t.Errorf("given back %q", got)
				}
			})
		})
	}
}

// TestHijackedConnectionHoldsThePermit until it is closed, whoever closes it.
func TestHijackedConnectionHoldsThePermit(t *testing.T) {
	for _, how := range []string{"direct", "controller"} {
		f := &fake{decision: permitFor(time.Minute)}
		given, conns := make(chan struct{}), make(chan net.Conn, 1)
		f.release = func(context.Context) error { close(given); return nil }
		returned := make(chan struct{})
		limited := httplimit.New(f)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			var conn net.Conn
			var buffered *bufio.ReadWriter
			var err error
			if how == "direct" {
				conn, buffered, err = w.(http.Hijacker).Hijack()
			} else {
				conn, buffered, err = http.NewResponseController(w).Hijack()
			}
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprint(buffered, "HTTP/1.1 101 Switching Protocols\r\n\r\nhi")
			buffered.Flush()
			conns <- conn
		}))
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			limited.ServeHTTP(w, r)
			close(returned)
		}))
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		<-returned
		if got := f.gave(); len(got) > 0 {
			t.Errorf("%s: given back %q when the handler returned", how, got)
		}
		conn := <-conns
		if _, ok := conn.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn); !ok {
			t.Errorf("%s: a %T is hidden", how, conn)
		}
		if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Error(err)
		}
		if text, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(text), "\r\n\r\nhi") {
			t.Errorf("%s: read %q, %v", how, text, err)
		}
		if got := f.gave(); len(got) > 0 {
			t.Errorf("%s: given back %q at the half close", how, got)
		}
		conn.Close()
		conn.Close()
		<-given
		c.Close()
		s.Close()
	}
}

// TestPanicAfterHijackGivesThePermitBack: nobody may be left who closes the connection.
func TestPanicAfterHijackGivesThePermitBack(t *testing.T) {
	f := &fake{decision: permitFor(time.Minute)}
	limited := httplimit.New(f)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, _, err := w.(http.Hijacker).Hijack(); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}))
	w := &pipeWriter{ResponseWriter: httptest.NewRecorder()}
	func() {
		defer func() { _ = recover() }()
		limited.ServeHTTP(w, get("/"))
	}()
	if got := f.gave(); !slices.Equal(got, []string{"p7"}) {
		t.Errorf("given back %q", got)
	}
}

// pipeWriter can be hijacked, and no more: its connection knows no half close.
type pipeWriter struct{ http.ResponseWriter }

func (*pipeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a, _ := net.Pipe()
	return a, bufio.NewReadWriter(bufio.NewReader(a), bufio.NewWriter(a)), nil
}

// unwrapped hides a writer as other middleware does.
type unwrapped struct{ http.ResponseWriter }

func (u unwrapped) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// TestWriterKeepsWhatItCan, and nothing is promised that the one within does not keep.
func TestWriterKeepsWhatItCan(t *testing.T) {
	recorder := httptest.NewRecorder()
	bare := struct{ http.ResponseWriter }{recorder}
	for _, c := range []struct {
		name                            string
		decision                        client.Decision
		w                               http.ResponseWriter
		same, hijacker, flusher, copies bool
	}{
		{"no permit", client.Decision{Answer: search()}, &pipeWriter{recorder}, true, true, false, false},
		{"no hijacking", permitFor(time.Minute), recorder, true, false, true, false},
		{"nothing at all", permitFor(time.Minute), bare, true, false, false, false},
		{"hijacking", permitFor(time.Minute), &pipeWriter{recorder}, false, true, false, true},
		{"hijacking within", permitFor(time.Minute), unwrapped{&pipeWriter{recorder}}, false, true, false, true},
		{"hijacking and flushing", permitFor(time.Minute), &both{recorder, pipeWriter{}}, false, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, hijacker := w.(http.Hijacker)
				_, flusher := w.(http.Flusher)
				_, copies := w.(io.ReaderFrom)
				if got := w == c.w; got != c.same || hijacker != c.hijacker || flusher != c.flusher || copies != c.copies {
					t.Errorf("same %v, hijacker %v, flusher %v, copies %v", got, hijacker, flusher, copies)
				}
			})
			httplimit.New(&fake{decision: c.decision})(handler).ServeHTTP(c.w, get("/"))
		})
	}
}

type both struct {
	*httptest.ResponseRecorder
	pipeWriter
}

func (b *both) Header() http.Header         { return b.ResponseRecorder.Header() }
func (b *both) Write(p []byte) (int, error) { return b.ResponseRecorder.Write(p) }
func (b *both) WriteHeader(status int)      { b.ResponseRecorder.WriteHeader(status) }

// TestStreamsWithAPermit: flushing, copying and deadlines over a real connection.
func TestStreamsWithAPermit(t *testing.T) {
	f := &fake{decision: permitFor(time.Minute)}
	arrived := make(chan struct{})
	s := httptest.NewServer(httplimit.New(f)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, "one ")
		w.(http.Flusher).Flush()
		<-arrived
		io.WriteString(w, "two ")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		if n, err := io.Copy(w, strings.NewReader("three")); n != 5 || err != nil {
			t.Errorf("copied %d, %v", n, err)
		}
	})))
	defer s.Close()
	r, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	first := make([]byte, 4)
	if _, err := io.ReadFull(r.Body, first); err != nil || string(first) != "one " {
		t.Errorf("first %q, %v", first, err)
	}
	close(arrived)
	rest, err := io.ReadAll(r.Body)
	if err != nil || string(rest) != "two three" {
		t.Errorf("rest %q, %v", rest, err)
	}
}

// TestManyAtOnce is for the race detector: one middleware, many requests, no permit
// that is not given back.
func TestManyAtOnce(t *testing.T) {
	f := &fake{decision: permitFor(time.Millisecond)}
	f.renew = func() (time.Duration, bool, error) { return time.Millisecond, true, nil }
	f.decide = func(_ context.Context, q client.Request) (client.Decision, error) {
		switch len(q.Tenant) % 4 {
		case 0:
			return permitFor(time.Millisecond), nil
		case 1:
			return twoPermits(), nil
		case 2:
			return deniedFor(time.Second), nil
		default:
			return client.Decision{}, fault.Busy
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /v1/items/{id}", hello)
	h := httplimit.New(f, httplimit.Tenant(httplimit.Header("X-Tenant")), httplimit.ClientIP(), httplimit.XRateLimit(), httplimit.OlderRateLimit(true))(mux)
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for j := range 50 {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, get("/v1/items/7", "X-Tenant", strings.Repeat("t", i+j)))
				if want := []int{200, 200, 429, 503}[(i+j)%4]; w.Code != want {
					t.Errorf("%d, want %d", w.Code, want)
				}
			}
		})
	}
	work.Wait()
	want := 0
	for i := range 8 {
		for j := range 50 {
			want += []int{1, 2, 0, 0}[(i+j)%4]
		}
	}
	if got := len(f.gave()); got != want {
		t.Errorf("%d permits given back, want %d", got, want)
	}
}
