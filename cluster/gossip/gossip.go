// Package gossip hears which nodes seem alive and where they listen. What it
// says is a hint: it finds addresses and starts conversations, and never
// decides ownership or removes anybody.
package gossip

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// metaLimit keeps a node's metadata far below memberlist's 512 bytes: it panics beyond.
const metaLimit = 400

// Meta is what a node tells about itself.
type Meta struct {
	Cluster string `json:"c,omitempty"` // cluster id, empty before one is known
	Peer    string `json:"p"`
	GRPC    string `json:"g"`
	Expect  int    `json:"e,omitempty"` // --bootstrap-expect
}

// Member is a node that gossip believes to be alive.
type Member struct {
	Name, Incarnation string
	Addr              string // of its gossip listener
	Meta
}

// Config says who gossips where.
type Config struct {
	Name, Incarnation string
	Bind              string               // host:port to listen on; ignored with Transport
	Advertise         string               // host:port others use; empty: Bind
	Transport         memberlist.Transport // nil: UDP and TCP on Bind
	Keys              [][]byte             // of 16, 24 or 32 bytes: the first encrypts, each decrypts; none: gossip is plain
	Targets           func() []string      // addresses to join through, asked at every rejoin
	Meta              func() Meta          // asked whenever metadata is sent; must not block
	OnChange          func()               // members or their metadata changed; must not block
	Logger            *slog.Logger
}

// Gossip is one node's view of the others.
type Gossip struct {
	cfg     Config
	list    *memberlist.Memberlist
	ring    *memberlist.Keyring // nil: gossip is plain
	self    string
	addr    string      // of this node, as others use it
	reached atomic.Bool // another node was heard, whoever began

	// memberlist's own list shares its nodes with the goroutines that change
	// them, so what its events say is copied here.
	mu      sync.Mutex // guards members; taken under memberlist's lock, never the other way round
	members map[string]Member

	silent atomic.Pointer[[]string] // targets at which nobody answered the last time; nil: none was tried yet
}

// Start listens and begins to gossip; Run keeps looking for others.
func Start(cfg Config) (*Gossip, error) {
	meta, err := json.Marshal(cfg.Meta())
	if err != nil {
		return nil, fmt.Errorf("gossip metadata: %w", err)
	}
	// The cluster id is added later: leave room for it.
	if len(meta)+40 > metaLimit {
		return nil, fmt.Errorf("gossip: the advertised addresses take %d bytes, at most %d fit; use shorter host names", len(meta), metaLimit-40)
	}
	g := &Gossip{cfg: cfg, self: cfg.Name + "@" + cfg.Incarnation, members: make(map[string]Member)}
	if len(cfg.Keys) > 0 {
		if g.ring, err = memberlist.NewKeyring(cfg.Keys, cfg.Keys[0]); err != nil {
			return nil, fmt.Errorf("gossip keys: %w", err)
		}
	}
	mc, err := g.memberlistConfig()
	if err != nil {
		return nil, err
	}
	if g.list, err = memberlist.Create(mc); err != nil {
		return nil, fmt.Errorf("listen for gossip on %s: %w", cfg.Bind, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.addr = g.members[g.self].Addr
	return g, nil
}

func (g *Gossip) memberlistConfig() (*memberlist.Config, error) {
	mc := memberlist.DefaultLANConfig()
	mc.Name = g.self
	mc.Transport = g.cfg.Transport
	mc.Delegate = delegate{g}
	mc.Events = events{g}
	mc.Alive = guard{g}
	mc.Merge = guard{g}
	mc.Keyring = g.ring
	mc.LogOutput = nil
	mc.Logger = logger(g.cfg.Logger)
	mc.TCPTimeout = 2 * time.Second
	mc.EnableCompression = false // each message would pay for tables of 80 KB, to be a few bytes shorter
	host, port, err := hostPort(g.cfg.Bind)
	if err != nil {
		return nil, fmt.Errorf("gossip address %q: %w", g.cfg.Bind, err)
	}
	mc.BindAddr, mc.BindPort, mc.AdvertisePort = host, port, port
	if g.cfg.Advertise != "" {
		if mc.AdvertiseAddr, mc.AdvertisePort, err = hostPort(g.cfg.Advertise); err != nil {
			return nil, fmt.Errorf("advertised gossip address %q: %w", g.cfg.Advertise, err)
		}
	}
	return mc, nil
}

// lookupTimeout bounds the resolution of one host name.
const lookupTimeout = 2 * time.Second

// hostPort resolves a host:port to an IP address and a port, as memberlist wants it.
func hostPort(addr string) (string, int, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.Atoi(portText)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("port %q: want 0 … 65535", portText)
	}
	if host == "" {
		return "0.0.0.0", port, nil
	}
	if net.ParseIP(host) != nil {
		return host, port, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return "", 0, err
	}
	return ips[0].IP.String(), port, nil
}

// Run joins the others now and again, so that two halves that lost each other
// find together, until ctx ends. It then says goodbye and stops listening.
func (g *Gossip) Run(ctx context.Context) error {
	for wait := time.Duration(0); ; {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			// The goodbye is a courtesy: nobody left to hear it is no fault.
			if err := g.leave(); err != nil {
				g.cfg.Logger.Debug("goodbye by gossip", "error", err)
			}
			return g.list.Shutdown()
		}
		g.rejoin()
		wait = 15*time.Second + rand.N(10*time.Second)
		if !g.reached.Load() {
			wait = 500*time.Millisecond + rand.N(500*time.Millisecond)
		}
	}
}

// rejoin contacts every target that is not a member already.
func (g *Gossip) rejoin() {
	known := map[string]bool{g.addr: true, g.cfg.Advertise: true, g.cfg.Bind: true}
	for _, m := range g.Members() {
		known[m.Addr] = true
	}
	silent := []string{}
	for _, t := range g.cfg.Targets() {
		host, port, err := hostPort(t)
		if err != nil {
			g.cfg.Logger.Warn("cannot resolve a join target", "target", t, "error", err)
			silent = append(silent, t)
			continue
		}
		addr := net.JoinHostPort(host, strconv.Itoa(port))
		if known[addr] {
			continue
		}
		known[addr] = true
		if _, err := g.list.Join([]string{addr}); err != nil {
			silent = append(silent, t)
			g.cfg.Logger.Debug("join by gossip", "target", t, "error", err)
		}
	}
	g.silent.Store(&silent)
}

// Silent returns the targets, as they were given, at which nobody that may be joined
// answered when they were tried last; tried is false before that.
func (g *Gossip) Silent() (targets []string, tried bool) {
	if s := g.silent.Load(); s != nil {
		return *s, true
	}
	return nil, false
}

// Members returns the nodes that seem alive, this one included, in order of names.
func (g *Gossip) Members() []Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	members := make([]Member, 0, len(g.members))
	for _, name := range slices.Sorted(maps.Keys(g.members)) {
		members = append(members, g.members[name])
	}
	return members
}

// heard copies what an event says about a node; memberlist holds its lock meanwhile.
func (g *Gossip) heard(n *memberlist.Node) {
	m, ok := decode(n)
	g.mu.Lock()
	if ok {
		g.members[n.Name] = m
	} else {
		delete(g.members, n.Name)
	}
	g.mu.Unlock()
	g.cfg.OnChange()
}

// lost forgets a node that left or died.
func (g *Gossip) lost(n *memberlist.Node) {
	g.mu.Lock()
	delete(g.members, n.Name)
	g.mu.Unlock()
	g.cfg.OnChange()
}

// Reached says whether any other node was ever heard.
func (g *Gossip) Reached() bool { return g.reached.Load() }

// leave says goodbye. A node that others refuse may be missing in its own list,
// which memberlist does not expect.
func (g *Gossip) leave() error {
	if !slices.ContainsFunc(g.list.Members(), func(n *memberlist.Node) bool { return n.Name == g.self }) {
		return nil
	}
	return g.list.Leave(500 * time.Millisecond)
}

// Announce spreads changed metadata.
func (g *Gossip) Announce() error {
	if err := g.list.UpdateNode(time.Second); err != nil {
		return fmt.Errorf("announce metadata: %w", err)
	}
	return nil
}

func decode(n *memberlist.Node) (Member, bool) {
	name, incarnation, ok := strings.Cut(n.Name, "@")
	if !ok {
		return Member{}, false
	}
	m := Member{Name: name, Incarnation: incarnation, Addr: n.Address()}
	if err := json.Unmarshal(n.Meta, &m.Meta); err != nil {
		return Member{}, false
	}
	return m, true
}

// Address returns the gossip address others use.
func (g *Gossip) Address() string { return g.addr }

// Close stops listening without a goodbye; for a Gossip that Run never ran.
func (g *Gossip) Close() { _ = g.list.Shutdown() }
