// Package simnet is a network in memory whose faults are switched by the test:
// links cut in one direction, delays, lost packets, hosts that are killed or
// frozen. It is made for testing/synctest bubbles, where an hour of a cluster
// passes in seconds.
//
// A Network holds hosts by name. A Host listens and dials with addresses like
// "a:7601" (its name, or its made-up IP, and a port) and so fits whatever takes
// a net.Listener and a dial function, gRPC and our transport included; Gossip
// gives it a memberlist.Transport.
//
//	net := simnet.New()
//	a, b := net.Host("a"), net.Host("b")
//	lis, _ := b.Listen("b:7601")
//	conn, _ := a.Dial(ctx, "b:7601")
//	net.Cut("a", "b")    // what a sends is held back, as by TCP, until …
//	net.Heal("a", "b")   // … it is healed, or somebody's deadline passes
//
// The package starts no goroutine. All state is guarded by one mutex of the
// Network, which is never held while waiting; whoever waits does so on a channel
// and a timer, which a bubble recognises as durably blocked.
package simnet

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// bufferSize is how many bytes a stream holds in each direction before its
// writer blocks; it stands for both socket buffers.
const bufferSize = 256 << 10

// Network is a set of hosts and the paths between them. All methods may be
// called at any time from any goroutine. Hosts come into being when first named.
type Network struct {
	mu    sync.Mutex // guards everything of this network; never held while waiting
	seed  uint64     // decides, with the rest, what is lost, late or doubled
	hosts map[string]*host
	paths map[[2]string]*path
	wake  chan struct{} // closed and replaced when a fault or a listener changes: wakes dials
}

// host is the state behind all handles of one name.
type host struct {
	name   string
	ip     net.IP
	life   int // counts revivals; handles of an earlier life stay dead
	dead   bool
	frozen bool
	ports  map[int]*listener
	gossip map[int]*gossip
	conns  map[*conn]struct{}
	next   int // port to try for port 0
}

// path is one direction between two hosts.
type path struct {
	n        *Network
	from, to *host
	cut      bool
	delay    time.Duration
	loss     float64 // share of packets lost
	packets  uint64  // sent so far: the number of a packet decides whether it is lost
	writes   int     // of streams, so far
	jitter   time.Duration
	doubled  float64       // share of packets that arrive twice
	resent   float64       // share of writes to streams that are held up …
	resend   time.Duration // … for so long
}

// blocked reports whether nothing passes at present.
func (p *path) blocked() bool { return p.cut || p.from.frozen || p.to.frozen }

// New returns a network without hosts, faults or delays.
func New() *Network {
	return &Network{
		hosts: map[string]*host{},
		paths: map[[2]string]*path{},
		wake:  make(chan struct{}),
	}
}

// Host returns a handle to the host called name in its present life: after Kill
// the handle stays dead for ever, also when the host is revived, so that what is
// left of a killed node cannot come back. Take a new handle for the new node.
func (n *Network) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.host(name)
	return &Host{n: n, h: h, life: h.life}
}

// IP returns the address made up for the host, for software that wants numbers
// (memberlist joins by IP). It works in every place where the name does.
func (n *Network) IP(name string) net.IP {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.host(name).ip
}

// Written returns how many times something was written to streams from one host
// to the other: what would be system calls.
func (n *Network) Written(from, to string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.path(n.host(from), n.host(to)).writes
}

// host finds or makes a host. n.mu is held.
func (n *Network) host(name string) *host {
	h := n.hosts[name]
	if h == nil {
		k := len(n.hosts) + 1
		h = &host{
			name: name, ip: net.IPv4(10, 0, byte(k>>8), byte(k)), next: 40000,
			ports: map[int]*listener{}, gossip: map[int]*gossip{}, conns: map[*conn]struct{}{},
		}
		n.hosts[name] = h
	}
	return h
}

// lookup finds a host by name or IP; nil if there is none. n.mu is held.
func (n *Network) lookup(name string) *host {
	if h := n.hosts[name]; h != nil {
		return h
	}
	ip := net.ParseIP(name)
	for _, h := range n.hosts {
		if ip != nil && h.ip.Equal(ip) {
			return h
		}
	}
	return nil
}

// path finds or makes the path between two hosts. n.mu is held.
func (n *Network) path(from, to *host) *path {
	key := [2]string{from.name, to.name}
	p := n.paths[key]
	if p == nil {
		p = &path{n: n, from: from, to: to}
		n.paths[key] = p
	}
	return p
}

// split parses "host:port"; an empty host is fallback.
func split(addr, fallback string) (string, int, error) {
	name, service, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.Atoi(service)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("address %q: port must be a number from 0 to 65535", addr)
	}
	if name == "" {
		name = fallback
	}
	return name, port, nil
}

// Addr is the address of a listener or of one end of a stream: "host:port".
type Addr string

// Network names the kind of address.
func (Addr) Network() string { return "sim" }

// String returns "host:port".
func (a Addr) String() string { return string(a) }

func join(name string, port int) Addr { return Addr(net.JoinHostPort(name, strconv.Itoa(port))) }
