// Package fleet runs a cluster of real processes: it starts `rlnode serve` on
// free loopback ports, waits until it is healthy, and kills, pauses, cuts off
// and restarts its nodes by process id. It uses what an operator uses: the
// binary, its flags and the gRPC service.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Config says what to start. Binary and Dir are required.
type Config struct {
	Binary   string   // a built rlnode
	Dir      string   // for data directories and logs; not removed by Close
	Nodes    int      // 0: three
	Policies string   // path of a policy file
	Relayed  bool     // put a relay before each peer and gossip port, so that links can be cut
	Flags    []string // further flags of every node
	Isolated bool     // give each node a network namespace on a bridge; see CanIsolate

	// SmallDisks gives each node a disk of its own for its data directory, that
	// FillDisk can fill. It needs Isolated.
	SmallDisks bool

	// TestClock says that Binary is a build with -tags testclock, whose group time
	// SetClock can bend.
	TestClock bool

	// Wrap, if set, is put before the command line of node i, such as
	// unshare --time. What it names must not stay as a parent process.
	Wrap func(i int) []string
}

// Fleet is a running cluster of processes. Its methods may be called from
// several goroutines, but each Node, Add and Forget from one at a time.
type Fleet struct {
	// Nodes are those that belong to the cluster, running or not. Add and Forget
	// change it: whoever may run beside them calls List.
	Nodes []*Node

	cfg   Config
	made  int          // nodes ever, each with a name of its own
	ports map[int]bool // given to any of them
	links *links       // nil unless relayed
	yard  *yard        // nil unless isolated

	mu sync.Mutex // guards Nodes against Add and Forget
}

// Start starts all nodes and waits until the cluster is healthy. On an error
// everything started is ended, and the error names the log files.
func Start(ctx context.Context, cfg Config) (*Fleet, error) {
	if cfg.Nodes == 0 {
		cfg.Nodes = 3
	}
	f := &Fleet{cfg: cfg, ports: map[int]bool{}}
	if err := f.prepare(); err != nil {
		return nil, err
	}
	for _, n := range f.Nodes {
		if err := n.Start(); err != nil {
			f.Close()
			return nil, err
		}
	}
	if _, err := f.WaitHealthy(ctx); err != nil {
		f.Close()
		return nil, fmt.Errorf("cluster did not become healthy (logs in %s): %w", cfg.Dir, err)
	}
	return f, nil
}

// prepare lays out ports, directories and relays; no process runs yet.
func (f *Fleet) prepare() error {
	if f.cfg.Isolated {
		var err error
		if f.yard, err = newYard(int(yards.Add(1))); err != nil {
			return err
		}
	}
	if f.cfg.Relayed {
		f.links = newLinks()
	}
	for range f.cfg.Nodes {
		if _, err := f.make(); err != nil {
			f.Close()
			return err
		}
	}
	for i, n := range f.Nodes {
		n.args = append(f.args(n), "--bootstrap-expect", fmt.Sprint(f.cfg.Nodes))
		if f.cfg.Policies != "" {
			n.args = append(n.args, "--policies", f.cfg.Policies)
		}
		if f.cfg.Wrap != nil {
			n.Around(f.cfg.Wrap(i)...)
		}
	}
	return nil
}

// yards counts the bridges that this process has made.
var yards atomic.Int64

// make lays out one node more, without a command line.
func (f *Fleet) make() (*Node, error) {
	n, err := f.place(nodeName(f.made))
	if err != nil {
		return nil, err
	}
	f.made++
	n.dir = filepath.Join(f.cfg.Dir, n.Name)
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, fmt.Errorf("directory of node %s: %w", n.Name, err)
	}
	if f.cfg.SmallDisks && f.yard != nil {
		if err := f.yard.smallDisk(n); err != nil {
			return nil, err
		}
	}
	if f.cfg.TestClock {
		n.clock = filepath.Join(n.dir, "clock")
		n.Environ("RL_TEST_CLOCK=" + n.clock)
	}
	f.mu.Lock()
	f.Nodes = append(f.Nodes, n)
	f.mu.Unlock()
	return n, f.relay(n)
}

// nodeName is that of the n-th node ever: a … z, then aa, ab …
func nodeName(n int) string {
	name := string(rune('a' + n%26))
	if n >= 26 {
		return nodeName(n/26-1) + name
	}
	return name
}

// place gives a node its addresses.
func (f *Fleet) place(name string) (*Node, error) {
	if f.yard == nil {
		ports, err := freePorts(loopback, portsOfNode, f.ports)
		if err != nil {
			return nil, err
		}
		return newNode(name, loopback, ports), nil
	}
	addr, err := f.yard.add(name, f.made)
	if err != nil {
		return nil, err
	}
	n := newNode(name, addr.String(), []int{grpcPort, peerPort, gossipPort, httpPort})
	n.inside = f.yard.inside(name)
	return n, nil
}

// relay puts relays before a node, if the fleet has them.
func (f *Fleet) relay(n *Node) error {
	if f.links == nil {
		return nil
	}
	host := loopback
	if f.yard != nil {
		host = f.yard.host().String()
	}
	ports, err := freePorts(host, portsOfRelay, f.ports)
	if err != nil {
		return err
	}
	n.relayAt(host, ports)
	return errors.Join(
		f.links.listen(n.relay, n.Peer, n.Name, PeerPlane, f.dialer),
		f.links.listen(n.gossipRelay, n.Gossip, n.Name, GossipPlane, f.dialer),
		f.links.listenPackets(n.gossipRelay, n.Gossip, n.Name, f.sender),
	)
}

// Add starts one node more, with an empty directory, that joins the cluster
// through all its nodes. It does not wait for that.
func (f *Fleet) Add(flags ...string) (*Node, error) {
	n, err := f.make()
	if err != nil {
		return nil, err
	}
	n.args = append(f.args(n), flags...)
	return n, n.Start()
}

// Forget takes a node that has left out of Nodes; its process must have ended.
func (f *Fleet) Forget(n *Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Nodes = slices.DeleteFunc(slices.Clone(f.Nodes), func(m *Node) bool { return m == n })
}

// List returns Nodes as they are now.
func (f *Fleet) List() []*Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Nodes[:len(f.Nodes):len(f.Nodes)]
}

// args is the command line of a node that joins, the binary first.
func (f *Fleet) args(n *Node) []string {
	args := []string{
		f.cfg.Binary, "serve", "--name", n.Name,
		"--grpc", n.GRPC, "--peer", n.Peer, "--gossip", n.Gossip, "--http", n.HTTP,
		"--data-dir", n.dataDir(), "--join", strings.Join(f.Gossip(), ","),
	}
	if f.cfg.Relayed {
		args = append(args, "--advertise-peer", n.relay, "--advertise-gossip", n.gossipRelay)
	}
	if f.yard != nil { // its addresses are no loopback ones, and nobody else is there
		args = append(args, "--insecure")
	}
	return append(args, f.cfg.Flags...)
}

// Gossip returns what --join of another node can name, of all nodes.
func (f *Fleet) Gossip() []string {
	var addrs []string
	for _, n := range f.List() {
		if f.links != nil {
			addrs = append(addrs, n.gossipRelay)
		} else {
			addrs = append(addrs, n.Gossip)
		}
	}
	return addrs
}

// GRPC returns the addresses for callers, of all nodes.
func (f *Fleet) GRPC() []string {
	var addrs []string
	for _, n := range f.List() {
		addrs = append(addrs, n.GRPC)
	}
	return addrs
}

// Node returns the node of that name, nil if there is none.
func (f *Fleet) Node(name string) *Node {
	for _, n := range f.List() {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Close kills every node and waits for it, then ends the relays and removes the
// namespaces.
func (f *Fleet) Close() {
	for _, n := range f.Nodes {
		_ = n.Resume() // a stopped process dies of SIGKILL too, but let logs end
		_ = n.Kill()
	}
	if f.links != nil {
		f.links.close()
	}
	if f.yard != nil {
		f.yard.close()
	}
}

// Return starts a node again that was forgotten; it joins through those that are
// there now.
func (f *Fleet) Return(n *Node) error {
	n.args = f.args(n)
	f.mu.Lock()
	f.Nodes = append(f.Nodes, n)
	f.mu.Unlock()
	return n.Start()
}

// Another starts a second cluster, of as many nodes and by the same configuration,
// that knows nothing of this one.
func (f *Fleet) Another(ctx context.Context) (*Fleet, error) {
	cfg := f.cfg
	cfg.Dir = filepath.Join(cfg.Dir, "another")
	return Start(ctx, cfg)
}

// Restore starts a new cluster of so many nodes from a backup file.
func (f *Fleet) Restore(ctx context.Context, nodes int, file string) (*Fleet, error) {
	cfg := f.cfg
	cfg.Nodes, cfg.Dir, cfg.Policies = nodes, filepath.Join(cfg.Dir, "restored"), ""
	cfg.Flags = append(cfg.Flags[:len(cfg.Flags):len(cfg.Flags)], "--restore", file)
	return Start(ctx, cfg)
}
