package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/internal/quiet"
)

const (
	maxGreeting = 64   // connections that have been accepted and not said hello
	maxRefused  = 1024 // refusals remembered, so that each is logged once
)

// Peers is one node's links to all other nodes. All methods may be called by any
// goroutine at any time. Before Run the first Call to a node waits for it; after
// Run calls fail at once.
type Peers struct {
	cfg      Config
	log      *slog.Logger
	lis      net.Listener
	start    time.Time
	news     chan struct{} // capacity 1: the notifier has work
	jobs     chan job      // calls for handlers that have nothing to do
	slots    chan struct{} // one per handler
	idle     atomic.Int64  // handlers that wait on jobs
	greeting chan struct{} // one per connection before its hello

	calls sync.Pool // of *call

	wg sync.WaitGroup // everything Run has started, and the replicas' goroutines

	mu       sync.RWMutex // guards what follows; held for a few instructions; taken after link.mu, never before
	ctx      context.Context
	stopped  bool
	links    map[string]*link
	replicas map[string]*RaftTransport
	sending  map[string]bool   // replicas that are being sent a snapshot
	refused  map[string]string // node → the refusal logged last

	quiet       quiet.Lines // log lines that others bring about
	bulk        bulks
	bulksServed atomic.Int64 // connections that serveBulk serves
}

// Listen opens the listener of the node's links. Run does the work; a node that
// never calls Run calls Close.
func Listen(cfg Config) (*Peers, error) {
	if cfg.Name == "" || cfg.Incarnation == "" || cfg.Resolve == nil {
		return nil, errors.New("transport: Config needs Name, Incarnation and Resolve")
	}
	if max(len(cfg.Name), len(cfg.Incarnation)) > maxName {
		return nil, fmt.Errorf("transport: name or incarnation is longer than %d bytes", maxName)
	}
	if cfg.Network == nil {
		cfg.Network = TCP{}
	}
	lis, err := cfg.Network.Listen(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for peers: %w", err)
	}
	return &Peers{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.Default()), lis: lis, start: time.Now(),
		news: make(chan struct{}, 1), jobs: make(chan job),
		slots: make(chan struct{}, maxHandlers), greeting: make(chan struct{}, maxGreeting),
		links: map[string]*link{}, replicas: map[string]*RaftTransport{},
		sending: map[string]bool{}, refused: map[string]string{},
	}, nil
}

// Addr returns the address it listens on.
func (p *Peers) Addr() net.Addr { return p.lis.Addr() }

// Close closes the listener and the replicas. It is for a node that stops before
// Run; Run does it by itself.
func (p *Peers) Close() error {
	p.stop()
	err := p.lis.Close()
	p.wg.Wait()
	return err
}

// Run keeps the links until ctx ends, and returns when every goroutine of them
// has ended. The error is nil, or why no connection can be accepted any more.
// It is called once.
func (p *Peers) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return net.ErrClosed
	}
	p.ctx = ctx
	p.mu.Unlock()

	for _, l := range p.all() {
		l.mu.Lock()
		if l.wanted || l.asked {
			l.want()
		}
		l.mu.Unlock()
	}
	p.spawn(p.pulse)
	p.spawn(p.notify)
	accepted := make(chan error, 1)
	p.spawn(func(ctx context.Context) { accepted <- p.accept(ctx) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-accepted:
	}
	cancel()
	p.stop()
	p.lis.Close()
	for _, l := range p.all() {
		if c := l.cur.Load(); c != nil {
			c.end(net.ErrClosed)
		}
	}
	p.wg.Wait()
	p.bulk.close()
	return err
}

// stop refuses new goroutines and ends the replicas.
func (p *Peers) stop() {
	p.mu.Lock()
	p.stopped = true
	replicas := slices.Collect(maps.Values(p.replicas))
	p.mu.Unlock()
	for _, t := range replicas {
		t.Close()
	}
}

// spawn runs f in a goroutine that Run waits for; false: not running (any more).
func (p *Peers) spawn(f func(context.Context)) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.stopped || p.ctx == nil {
		return false
	}
	ctx := p.ctx
	p.wg.Go(func() { f(ctx) })
	return true
}

// notYet reports whether Run has not been called, and still may be.
func (p *Peers) notYet() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return !p.stopped && p.ctx == nil
}

// accept takes connections until the listener fails or ctx ends.
func (p *Peers) accept(ctx context.Context) error {
	for {
		nc, err := p.lis.Accept()
		if ctx.Err() != nil {
			if err == nil {
				nc.Close()
			}
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept peers: %w", err)
		}
		if err != nil { // such as too many open files: it may pass
			p.log.Warn("peer: accept", "error", err)
			p.pause(ctx, backoffMax)
			continue
		}
		select {
		case p.greeting <- struct{}{}:
		default:
			nc.Close()
			continue
		}
		if !p.spawn(func(ctx context.Context) { p.admit(ctx, nc) }) {
			nc.Close()
			<-p.greeting
		}
	}
}

// SetPeers names the nodes to keep links to. Links to others go when they have
// not been needed for 30 s, unless the other side wants them; nothing is then
// left of them. The own name is ignored.
func (p *Peers) SetPeers(nodes []string) {
	for _, l := range p.all() {
		l.mu.Lock()
		l.wanted = slices.Contains(nodes, l.node)
		l.mu.Unlock()
	}
	for _, node := range nodes {
		if node == p.cfg.Name {
			continue
		}
		l := p.lock(node)
		l.wanted = true
		l.want()
		l.mu.Unlock()
	}
}

// Link returns for how long the link to the node has been up. It is up if pings
// sent in the last 250 ms came back. The own node is always up.
func (p *Peers) Link(node string) (since time.Duration, up bool) {
	if node == p.cfg.Name {
		return time.Since(p.start), true
	}
	p.mu.RLock()
	l := p.links[node]
	p.mu.RUnlock()
	if l == nil {
		return 0, false
	}
	return l.state()
}

// link finds or makes the link to a node, which counts as a use of it. Where it
// is not locked at once, see lock, it may have been forgotten by then.
func (p *Peers) link(node string) *link {
	p.mu.RLock()
	l := p.links[node]
	p.mu.RUnlock()
	if l == nil {
		l = p.newLink(node)
	}
	l.used.Store(p.now())
	return l
}

func (p *Peers) newLink(node string) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.links[node]
	if l == nil {
		l = &link{p: p, node: node, kick: make(chan struct{}, 1), tried: make(chan struct{})}
		p.links[node] = l
	}
	return l
}

// lock returns the link to a node with its mu held.
func (p *Peers) lock(node string) *link {
	for {
		l := p.link(node)
		l.mu.Lock()
		if !l.gone {
			return l
		}
		l.mu.Unlock() // forgotten between the two
	}
}

// all returns the links there are.
func (p *Peers) all() []*link {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.AppendSeq(make([]*link, 0, len(p.links)), maps.Values(p.links))
}

// now is this node's clock for deadlines and ping numbers: ns since Listen, at
// least 1.
func (p *Peers) now() int64 { return int64(time.Since(p.start)) + 1 }

// in returns the moment d from now on that clock.
func (p *Peers) in(d time.Duration) int64 { return p.now() + int64(d) }

func (p *Peers) self() From { return From{Node: p.cfg.Name, Incarnation: p.cfg.Incarnation} }

func (p *Peers) cluster() string {
	if p.cfg.Cluster == nil {
		return ""
	}
	return p.cfg.Cluster()
}

// pause waits for d or the end of ctx.
func (p *Peers) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
