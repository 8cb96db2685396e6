package sim

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/cluster"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/internal/simnet"
	"github.com/ringlimit/ringlimit/policy"
)

// The policies of a run, chosen by the request's plan.
const policyFile = `
home: [tenant]
no_match: deny
policies:
  - {id: frozen, match: {plan: frozen}, scope: [tenant], algorithm: token_bucket, amount: 1, window: 8760h, burst: 150}
  - {id: refill, match: {plan: refill}, scope: [tenant], algorithm: token_bucket, amount: 5, window: 1s, burst: 10}
  - {id: leaky, match: {plan: leaky}, scope: [tenant], algorithm: leaky_bucket, amount: 5, window: 1s, burst: 10}
  - {id: fixed, match: {plan: fixed}, scope: [tenant], algorithm: fixed_window, amount: 10, window: 2s}
  - {id: log, match: {plan: log}, scope: [tenant], algorithm: sliding_log, amount: 10, window: 2s}
  - {id: pair-tenant, match: {plan: pair}, scope: [tenant], algorithm: token_bucket, amount: 1, window: 8760h, burst: 100}
  - {id: pair-region, match: {plan: pair}, scope: [region], algorithm: token_bucket, amount: 1, window: 8760h, burst: 80}
  - {id: permits, match: {plan: permits}, scope: [tenant], algorithm: concurrency, amount: 3, window: 3s}
  - {id: changed, match: {plan: changed}, scope: [tenant], algorithm: token_bucket, amount: 5, window: 1s, burst: 10}
`

// lossFile has the policies of plans with losses. One that is salvaged changes how
// every slot of its cluster begins after a loss.
const lossFile = `
  - {id: full, match: {plan: full}, scope: [tenant], algorithm: token_bucket, amount: 1, window: 8760h, burst: 60, on_state_loss: full}
  - {id: full-refill, match: {plan: full-refill}, scope: [tenant], algorithm: token_bucket, amount: 3, window: 1s, burst: 8, on_state_loss: full}
  - {id: full-window, match: {plan: full-window}, scope: [tenant], algorithm: fixed_window, amount: 9, window: 2s, on_state_loss: full}
  - {id: salvage, match: {plan: salvage}, scope: [tenant], algorithm: token_bucket, amount: 1, window: 8760h, burst: 90, on_state_loss: salvage}
  - {id: salvage-refill, match: {plan: salvage-refill}, scope: [tenant], algorithm: leaky_bucket, amount: 3, window: 1s, burst: 8, on_state_loss: salvage}
  - {id: salvage-window, match: {plan: salvage-window}, scope: [tenant], algorithm: sliding_window, amount: 9, window: 2s, on_state_loss: salvage}
`

// smallCluster is how many slots a cluster here has: fewer than the product's 1,024,
// because each costs the control state and every move.
const smallCluster = 64

// world is a cluster in a bubble.
type world struct {
	plan     *plan
	net      *simnet.Network
	set      *policy.Set
	start    time.Time // of the bubble; all times of the history are since then
	dir      string
	trace    *trace
	switches map[string]*switches // of every node there may be; nobody changes the map

	doubling doubling
	doubles  atomic.Int64  // copies of requests between nodes
	counts   group.Metrics // of all replicas

	mu     sync.Mutex // guards what follows
	nodes  map[string]*node
	all    []string          // names of all nodes that ever were
	gone   map[string]bool   // drained or removed: not to be started again
	busy   map[string]bool   // being started or ended: nobody else is to touch them
	closed bool              // no node is to start any more
	cutBy  map[[2]string]int // how many faults cut a path
	silent []check.Span      // when no group had a majority
	epochs map[uint32]uint32 // newest of each group that was seen
	lost   []check.Loss      // what groups lost by new ones
	slots  map[uint32]uint32 // of each group, as they were seen first
	moved  bool              // they were seen otherwise since
	memory check.Memory      // who held the state of groups, and lost it
}

// node is one life of a node.
type node struct {
	*cluster.Node
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when Run has returned
}

var (
	errCrash = errors.New("killed by the simulation")
	errFull  = errors.New("no space left on device")
)

func newWorld(p *plan, dir string) *world {
	file := policyFile
	if p.losses {
		file = strings.TrimSuffix(file, "\n") + lossFile
	}
	set, err := policy.Parse("sim.yaml", []byte(file))
	if err != nil {
		panic(err)
	}
	w := &world{
		plan: p, net: simnet.New(), set: set, start: time.Now(), dir: dir,
		nodes: make(map[string]*node), gone: make(map[string]bool), busy: make(map[string]bool), cutBy: make(map[[2]string]int), epochs: make(map[uint32]uint32), switches: make(map[string]*switches),
	}
	for i := range 8 {
		w.switches[nodeName(i)] = new(switches)
	}
	w.trace = newTrace(w.start)
	w.net.Seed(p.seed)
	return w
}

func (w *world) now() time.Duration { return time.Since(w.start) }

func nodeName(i int) string { return string(rune('a' + i)) }

func (w *world) config(i int, name string, first bool) cluster.Config {
	host := w.net.Host(name)
	gossip, err := host.Gossip(7602)
	if err != nil {
		panic(err)
	}
	ip := w.net.IP(name).String()
	cfg := cluster.Config{
		Name:     name,
		Listen:   cluster.Addresses{GRPC: ip + ":7600", Peer: ip + ":7601", Gossip: ip + ":7602"},
		Policies: w.set, DataDir: filepath.Join(w.dir, name), Slots: smallCluster, Groups: w.plan.groups, CheckpointInterval: w.plan.saves,
		Network: &wire{Host: host, w: w, name: name}, GossipTransport: gossip, Logger: w.trace.logger(name), Seams: w.seams(i, name),
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		panic(err)
	}
	known := w.plan.nodes + w.plan.later
	if first {
		known, cfg.BootstrapExpect = w.plan.nodes, w.plan.nodes
	}
	for k := range known {
		cfg.Join = append(cfg.Join, w.net.IP(nodeName(k)).String()+":7602")
	}
	return cfg
}

// running are the names of the nodes that run, in order.
func (w *world) running() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.nodes))
}

// known are the names of all nodes that ever ran, in the order of their first start.
func (w *world) known() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

func (w *world) node(name string) *node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[name]
}

// dial makes a client on a host of its own.
func (w *world) dial(name string, opts ...client.Option) *client.Client {
	host := w.net.Host(name)
	var addrs []string
	for i := range w.plan.nodes {
		addrs = append(addrs, w.net.IP(nodeName(i)).String()+":7600")
	}
	opts = append(opts, client.NeverDegrade(), client.WithLogger(slog.New(slog.DiscardHandler)), client.WithDialer(
		func(ctx context.Context, addr string) (net.Conn, error) { return host.Dial(ctx, addr) }))
	c, err := client.New(addrs, opts...)
	if err != nil {
		panic(err)
	}
	return c
}
