package transport_test

import (
	"context"
	"errors"
	"fmt"
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

// lines counts the lines of the log that contain text.
func (n *peer) lines(text string) (lines int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for line := range strings.Lines(n.log.String()) {
		if strings.Contains(line, text) {
			lines++
		}
	}
	return lines
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
