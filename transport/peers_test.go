package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/internal/simnet"
	"github.com/ringlimit/ringlimit/transport"
)

// peer is one node of a test.
type peer struct {
	*transport.Peers
	name string
	stop func() // ends it and waits

	mu     sync.Mutex
	events []string // of OnLink: "+b", "-b"
	log    strings.Builder
}

// field is the nodes of a test, on one network.
type field struct {
	t     testing.TB
	net   *simnet.Network // nil: real sockets on loopback
	mu    sync.Mutex
	addrs map[string]string
}

func newField(t testing.TB) *field {
	return &field{t: t, net: simnet.New(), addrs: map[string]string{}}
}

// inBubble runs f in a bubble, with nodes on a network in memory.
func inBubble(t *testing.T, f func(*testing.T, *field)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newField(t)) })
}

func (f *field) resolve(node string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	addr, ok := f.addrs[node]
	return addr, ok
}

// start runs a node; set changes its configuration. The node ends with the test.
func (f *field) start(name string, set ...func(*transport.Config)) *peer {
	f.t.Helper()
	n := &peer{name: name}
	cfg := transport.Config{
		Name: name, Incarnation: name + "-1", Addr: "127.0.0.1:0", Resolve: f.resolve,
		Handle: func(_ context.Context, _ transport.From, _ uint8, body []byte) ([]byte, error) { return body, nil },
		OnLink: n.onLink,
		Logger: slog.New(slog.NewTextHandler(writer{n}, nil)),
	}
	if f.net != nil {
		cfg.Network, cfg.Addr = f.net.Host(name), name+":7601"
	}
	for _, s := range set {
		s(&cfg)
	}
	p, err := transport.Listen(cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	if f.addrs[name] == "" {
		f.addrs[name] = p.Addr().String()
	}
	f.mu.Unlock()
	n.Peers = p
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.Run(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
			f.t.Errorf("%s: Run: %v", name, err)
		}
	})
	n.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	f.t.Cleanup(n.stop)
	return n
}

// mesh starts nodes that all keep links to each other, and waits until they are up.
func (f *field) mesh(names ...string) []*peer {
	f.t.Helper()
	var all []*peer
	for _, name := range names {
		all = append(all, f.start(name))
	}
	for _, n := range all {
		n.SetPeers(names)
	}
	for _, n := range all {
		for _, name := range names {
			f.until(func() bool { _, up := n.Link(name); return up }, "%s: link to %s up", n.name, name)
		}
	}
	return all
}

// until waits at most 10 s for a condition.
func (f *field) until(ok func() bool, format string, args ...any) {
	f.t.Helper()
	for range 10_000 {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	f.t.Fatalf("never: "+format, args...)
}

func (n *peer) onLink(node string, up bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, map[bool]string{true: "+", false: "-"}[up]+node)
}

func (n *peer) heard() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.events, " ")
}

func (n *peer) logged(text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Contains(n.log.String(), text)
}

// writer is the node's log.
type writer struct{ n *peer }

func (w writer) Write(b []byte) (int, error) {
	w.n.mu.Lock()
	defer w.n.mu.Unlock()
	if os.Getenv("PEERLOG") != "" {
		fmt.Fprintf(os.Stderr, "%s: %s", w.n.name, b)
	}
	return w.n.log.Write(b)
}

func handler(f func(ctx context.Context, from transport.From, method uint8, body []byte) ([]byte, error)) func(*transport.Config) {
	return func(c *transport.Config) { c.Handle = f }
}

// want checks the kind of an error.
func want(t *testing.T, err error, kind *fault.Kind) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
}

func TestCallReachesTheHandlerAndKeepsErrorKinds(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a := f.start("a")
		f.start("b", handler(func(ctx context.Context, from transport.From, method uint8, body []byte) ([]byte, error) {
			if method == 2 {
				return nil, fault.Field("cost", "must be at most %d", 5)
			}
			d, _ := ctx.Deadline()
			return fmt.Appendf(nil, "%v %d %s %v", from, method, body, time.Until(d).Round(10*time.Millisecond)), nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got, err := a.Call(ctx, "b", 1, []byte("hi"))
		if err != nil || string(got) != "{a a-1} 1 hi 1s" {
			t.Errorf("answer %q, %v", got, err)
		}
		_, err = a.Call(t.Context(), "b", 2, nil)
		want(t, err, fault.InvalidArgument)
		var e *fault.Error
		if !errors.As(err, &e) || e.Field != "cost" || e.Message != "must be at most 5" {
			t.Errorf("particulars lost: %#v", e)
		}
		if got, err := a.Call(ctx, "a", 7, []byte("me")); err != nil || string(got) != "me" {
			t.Errorf("call of the own node: %q, %v", got, err)
		}
	})
}

func TestCallWithoutConnectionIsUnavailable(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a := f.start("a")
		_, err := a.Call(t.Context(), "nobody", 1, nil)
		want(t, err, fault.Unavailable)
		f.addrs["b"] = "b:7601"
		a.SetPeers([]string{"b"})
		time.Sleep(time.Second)
		began := time.Now()
		_, err = a.Call(t.Context(), "b", 1, nil)
		want(t, err, fault.Unavailable)
		if took := time.Since(began); took != 0 {
			t.Errorf("a node that is being redialled made a call wait %v", took)
		}
	})
}

func TestBigBodiesPass(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		body := make([]byte, 3<<20)
		for i := range body {
			body[i] = byte(i * 7)
		}
		got, err := ns[0].Call(t.Context(), "b", 1, body)
		if err != nil || string(got) != string(body) {
			t.Errorf("%d bytes back, %v", len(got), err)
		}
		_, err = ns[0].Call(t.Context(), "b", 1, make([]byte, 17<<20))
		want(t, err, fault.InvalidArgument)
		if _, err = ns[0].Call(t.Context(), "b", 1, nil); err != nil {
			t.Errorf("the link is broken by a message too long: %v", err)
		}
	})
}

func TestPendingCallsFailWhenTheConnectionBreaks(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		stuck := handler(func(ctx context.Context, _ transport.From, _ uint8, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		a := f.start("a")
		f.start("b", stuck)
		a.SetPeers([]string{"b"})
		f.until(func() bool { _, up := a.Link("b"); return up }, "up")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				began := time.Now()
				_, err := a.Call(t.Context(), "b", 1, nil)
				want(t, err, fault.OutcomeUnknown)
				if took := time.Since(began); took != time.Second {
					t.Errorf("failed after %v, the connection broke after 1 s", took)
				}
			})
		}
		time.Sleep(time.Second)
		f.net.Kill("b")
		wg.Wait()
	})
}

func TestCallEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		f.net.Cut("b", "a")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := ns[0].Call(ctx, "b", 1, nil)
		want(t, err, fault.OutcomeUnknown)
		_, err = ns[0].Call(ctx, "b", 1, nil)
		want(t, err, fault.Deadline) // passed already: not sent
	})
}

func TestHandlersAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		release := make(chan struct{})
		a := f.start("a")
		f.start("b", handler(func(context.Context, transport.From, uint8, []byte) ([]byte, error) {
			<-release
			return nil, nil
		}))
		if _, err := a.Call(t.Context(), "b", 1, nil); err != nil && !errors.Is(err, fault.OutcomeUnknown) {
			t.Fatal(err)
		}
		results := make(chan error, 1100)
		for range 1100 {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_, err := a.Call(ctx, "b", 1, nil)
				results <- err
			}()
		}
		time.Sleep(500 * time.Millisecond)
		close(release)
		ok, busy := 0, 0
		for range 1100 {
			switch err := <-results; {
			case err == nil:
				ok++
			case errors.Is(err, fault.Busy):
				busy++
			default:
				t.Errorf("unexpected: %v", err)
			}
		}
		if ok != 1023 || busy != 77 { // one slot is held by the first call
			t.Errorf("%d answered, %d refused", ok, busy)
		}
	})
}

func TestOutboxIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		f.net.Freeze("b")
		results := make(chan error, 100)
		for range 100 {
			go func() {
				_, err := ns[0].Call(t.Context(), "b", 1, make([]byte, 1<<20))
				results <- err
			}()
		}
		busy := 0
		for range 100 {
			if err := <-results; errors.Is(err, fault.Busy) {
				busy++
			} else if !errors.Is(err, fault.OutcomeUnknown) && !errors.Is(err, fault.Unavailable) {
				t.Errorf("unexpected: %v", err)
			}
		}
		if busy < 80 {
			t.Errorf("%d of 100 MiB refused, want all but about 9", busy)
		}
		f.net.Thaw("b")
		f.until(func() bool { _, up := ns[0].Link("b"); return up }, "up again")
	})
}

func TestOneWayCutTakesTheLinkDownOnBothSides(t *testing.T) {
	for _, d := range [][2]string{{"a", "b"}, {"b", "a"}} {
		inBubble(t, func(t *testing.T, f *field) {
			ns := f.mesh("a", "b", "c")
			time.Sleep(time.Second)
			if since, up := ns[0].Link("b"); !up || since < time.Second {
				t.Errorf("up for %v, %v", since, up)
			}
			f.net.Cut(d[0], d[1])
			began := time.Now()
			for i, other := range []string{"b", "a"} {
				f.until(func() bool { _, up := ns[i].Link(other); return !up }, "down")
			}
			if took := time.Since(began); took > 300*time.Millisecond {
				t.Errorf("cut %v noticed after %v", d, took)
			}
			time.Sleep(10 * time.Second)
			f.net.HealAll()
			began = time.Now()
			for i, other := range []string{"b", "a"} {
				f.until(func() bool { _, up := ns[i].Link(other); return up }, "up again")
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("up again after %v", took)
			}
			synctest.Wait()
			if got := ns[0].heard(); got != "+b +c -b +b" && got != "+c +b -b +b" {
				t.Errorf("a was told %q", got)
			}
			if got := ns[2].heard(); strings.Contains(got, "-") {
				t.Errorf("c was told %q", got)
			}
		})
	}
}

func TestAShortPauseKeepsTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		f.net.Freeze("b")
		time.Sleep(600 * time.Millisecond)
		if _, up := ns[0].Link("b"); up {
			t.Error("up over a pause of 600 ms")
		}
		f.net.Thaw("b")
		time.Sleep(100 * time.Millisecond)
		if _, up := ns[0].Link("b"); !up {
			t.Error("not up after the pause")
		}
		if ns[0].logged("cannot connect") {
			t.Error("the connection was given up")
		}
	})
}

func TestDigestsTravelWithPings(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		var mu sync.Mutex
		got := map[string]string{}
		digest := func(c *transport.Config) {
			c.Digest = func() []byte { return []byte("state of " + c.Name) }
			c.OnDigest = func(from transport.From, d []byte) {
				mu.Lock()
				defer mu.Unlock()
				got[from.Incarnation] = string(d)
			}
		}
		a, b := f.start("a", digest), f.start("b", digest)
		a.SetPeers([]string{"b"})
		_ = b
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got["a-1"] != "state of a" || got["b-1"] != "state of b" {
			t.Errorf("got %v", got)
		}
	})
}

func TestBothSidesDialAtOnce(t *testing.T) {
	for delay := range 5 {
		inBubble(t, func(t *testing.T, f *field) {
			for _, d := range [][2]string{{"a", "b"}, {"b", "a"}} {
				f.net.Delay(d[0], d[1], time.Duration(delay)*10*time.Millisecond)
			}
			ns := f.mesh("a", "b")
			time.Sleep(5 * time.Second)
			for i, other := range []string{"b", "a"} {
				if since, up := ns[i].Link(other); !up || since < 4*time.Second {
					t.Errorf("delay %d0 ms: link to %s: %v, %v", delay, other, since, up)
				}
			}
			if got := ns[0].heard() + ns[1].heard(); got != "+b+a" {
				t.Errorf("delay %d0 ms: told %q", delay, got)
			}
		})
	}
}

func TestDifferentClustersRefuseEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		id := func(s string) func(*transport.Config) {
			return func(c *transport.Config) { c.Cluster = func() string { return s } }
		}
		a, b, c := f.start("a", id("red")), f.start("b", id("blue")), f.start("c", id(""))
		for _, n := range []*peer{a, b, c} {
			n.SetPeers([]string{"a", "b", "c"})
		}
		time.Sleep(5 * time.Second)
		if _, up := a.Link("b"); up {
			t.Error("red and blue are linked")
		}
		for _, n := range []*peer{a, b} {
			if _, up := n.Link("c"); !up {
				t.Errorf("%s and a node without a cluster are not linked", n.name)
			}
			if !n.logged("node a belongs to cluster red, you to blue") && !n.logged("node b belongs to cluster blue, you to red") {
				t.Errorf("%s says nothing clear", n.name)
			}
		}
	})
}

func TestAClusterIDLearntLaterEndsTheLink(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		var mu sync.Mutex
		ids := map[string]string{}
		cluster := func(c *transport.Config) {
			c.Cluster = func() string {
				mu.Lock()
				defer mu.Unlock()
				return ids[c.Name]
			}
		}
		a, b := f.start("a", cluster), f.start("b", cluster)
		a.SetPeers([]string{"b"})
		time.Sleep(time.Second)
		if _, up := b.Link("a"); !up {
			t.Fatal("not linked")
		}
		mu.Lock()
		ids["a"], ids["b"] = "red", "blue"
		mu.Unlock()
		time.Sleep(time.Second)
		if _, up := a.Link("b"); up {
			t.Error("still linked")
		}
	})
}

func TestASecondProcessOfANameIsRefusedWhileTheFirstAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		second := f.start("b", func(c *transport.Config) {
			c.Incarnation, c.Network, c.Addr = "b-2", f.net.Host("b2"), "b2:7601"
		})
		second.SetPeers([]string{"a"})
		time.Sleep(5 * time.Second)
		if _, up := second.Link("a"); up {
			t.Error("the second b is linked")
		}
		if got := ns[0].heard(); got != "+b" {
			t.Errorf("a was told %q", got)
		}
		if !second.logged("another process, b-1, answers to the name b") {
			t.Error("the second b is not told why")
		}
		f.net.Kill("b")
		f.mu.Lock()
		f.addrs["b"] = "b2:7601"
		f.mu.Unlock()
		began := time.Now()
		f.until(func() bool { _, up := second.Link("a"); return up }, "linked once the first is dead")
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if got, err := ns[0].Call(t.Context(), "b", 1, []byte("x")); err != nil || string(got) != "x" {
			t.Errorf("call: %v", err)
		}
	})
}

func TestARestartedNodeIsLinkedAgainAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		time.Sleep(2 * time.Second)
		f.net.Kill("b")
		synctest.Wait()
		if got := ns[0].heard(); got != "+b -b" {
			t.Errorf("told %q at the moment of the reset", got)
		}
		time.Sleep(time.Minute)
		f.net.Revive("b")
		f.start("b", func(c *transport.Config) { c.Incarnation = "b-2" })
		began := time.Now()
		f.until(func() bool { _, up := ns[0].Link("b"); return up }, "up")
		if took := time.Since(began); took > 300*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestAHelloForAnotherNodeIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a := f.start("a")
		f.start("b")
		f.addrs["c"] = "b:7601" // stale address
		_, err := a.Call(t.Context(), "c", 1, nil)
		want(t, err, fault.Unavailable)
		if !strings.Contains(fmt.Sprint(err), "this is node b, not c") {
			t.Errorf("says %v", err)
		}
	})
}

func TestALinkMadeForACallIsClosedWhenIdle(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a, b := f.start("a"), f.start("b")
		if _, err := a.Call(t.Context(), "b", 1, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if _, up := b.Link("a"); !up {
			t.Error("closed too early")
		}
		time.Sleep(20 * time.Second)
		if _, up := b.Link("a"); up {
			t.Error("still there")
		}
		if _, err := a.Call(t.Context(), "b", 1, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStrangersAreTurnedAway(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		f.start("a")
		for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "", "\xff\xff", "\x08\x00RLPEER\x01\x01"} {
			c, err := f.net.Host("x").Dial(t.Context(), "a:7601")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.ReadAll(c); err != nil || time.Since(began) > time.Second {
				t.Errorf("%q: %v after %v", text, err, time.Since(began))
			}
			c.Close()
		}
	})
}
