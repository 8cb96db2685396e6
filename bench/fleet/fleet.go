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
	"strings"
	"time"
)

// Config says what to start. Binary and Dir are required.
type Config struct {
	Binary   string   // a built rlnode
	Dir      string   // for data directories and logs; not removed by Close
	Nodes    int      // 0: three
	Policies string   // path of a policy file
	Relayed  bool     // put a relay before each peer port, so that links can be cut
	Flags    []string // further flags of every node

	// Wrap, if set, is put before the command line of node i, such as
	// unshare --time. What it names must not stay as a parent process.
	Wrap func(i int) []string
}

// Fleet is a running cluster of processes. Its methods may be called from
// several goroutines, but each Node from one at a time.
type Fleet struct {
	Nodes []*Node

	cfg   Config
	links *links // nil unless relayed
}

// Start starts all nodes and waits until the cluster is healthy. On an error
// everything started is ended, and the error names the log files.
func Start(ctx context.Context, cfg Config) (*Fleet, error) {
	if cfg.Nodes == 0 {
		cfg.Nodes = 3
	}
	f := &Fleet{cfg: cfg}
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
	ports, err := freePorts(5 * f.cfg.Nodes)
	if err != nil {
		return err
	}
	if f.cfg.Relayed {
		f.links = newLinks()
	}
	var gossip []string
	for i := range f.cfg.Nodes {
		n := newNode(string(rune('a'+i)), ports[5*i:5*i+5])
		n.dir = filepath.Join(f.cfg.Dir, n.Name)
		if err := os.MkdirAll(n.dir, 0o755); err != nil {
			return fmt.Errorf("directory of node %s: %w", n.Name, err)
		}
		f.Nodes = append(f.Nodes, n)
		gossip = append(gossip, n.Gossip)
	}
	for i, n := range f.Nodes {
		n.args = f.args(n, gossip)
		if f.cfg.Wrap != nil {
			n.args = append(f.cfg.Wrap(i), n.args...)
		}
		if f.links == nil {
			continue
		}
		if err := f.links.listen(n.relay, n.Peer, n.Name, f.dialer); err != nil {
			f.Close()
			return err
		}
	}
	return nil
}

// args is the whole command line of a node, the binary first.
func (f *Fleet) args(n *Node, gossip []string) []string {
	args := []string{
		f.cfg.Binary, "serve", "--name", n.Name,
		"--grpc", n.GRPC, "--peer", n.Peer, "--gossip", n.Gossip, "--http", n.HTTP,
		"--data-dir", filepath.Join(n.dir, "data"),
		"--join", strings.Join(gossip, ","),
		"--bootstrap-expect", fmt.Sprint(f.cfg.Nodes),
	}
	if f.cfg.Policies != "" {
		args = append(args, "--policies", f.cfg.Policies)
	}
	if f.cfg.Relayed {
		args = append(args, "--advertise-peer", n.relay)
	}
	return append(args, f.cfg.Flags...)
}

// GRPC returns the addresses for callers, of all nodes.
func (f *Fleet) GRPC() []string {
	addrs := make([]string, len(f.Nodes))
	for i, n := range f.Nodes {
		addrs[i] = n.GRPC
	}
	return addrs
}

// Node returns the node of that name, nil if there is none.
func (f *Fleet) Node(name string) *Node {
	for _, n := range f.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Close kills every node and waits for it, then ends the relays.
func (f *Fleet) Close() {
	for _, n := range f.Nodes {
		_ = n.Resume() // a stopped process dies of SIGKILL too, but let logs end
		_ = n.Kill()
	}
	if f.links != nil {
		f.links.close()
	}
}

// errNotRelayed is returned by Cut and Heal of a fleet without relays.
var errNotRelayed = errors.New("fleet: started without relays")

// Cut stops all bytes between a node and the other nodes, both ways. Callers
// still reach it. Connections stay open and silent, as when a cable is pulled.
func (f *Fleet) Cut(name string) error { return f.setLinks(name, false) }

// Heal undoes Cut; what the kernels still hold is delivered late.
func (f *Fleet) Heal(name string) error { return f.setLinks(name, true) }

func (f *Fleet) setLinks(name string, open bool) error {
	if f.links == nil {
		return errNotRelayed
	}
	for _, n := range f.Nodes {
		if n.Name != name {
			f.links.set(name, n.Name, open)
			f.links.set(n.Name, name, open)
		}
	}
	return nil
}

// dialer names the node that holds the local end of a connection, "" if none.
func (f *Fleet) dialer(localPort int) string {
	pids := make(map[int]string, len(f.Nodes))
	for _, n := range f.Nodes {
		if pid := n.PID(); pid > 0 {
			pids[pid] = n.Name
		}
	}
	// The dialer's socket is in its table before we accept; its process may
	// need a moment to be readable.
	for range 20 {
		if pid, ok := socketOwner(localPort, pids); ok {
			return pids[pid]
		}
		time.Sleep(time.Millisecond)
	}
	return ""
}
