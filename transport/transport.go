// Package transport carries what nodes say to each other, and what clients say
// to a node.
//
// # Between nodes
//
// Peers is one node's part of the links to all others. Over a link go the RPCs
// of raft (for any number of replicas), pings, and requests with one answer
// (Call). There is at most one link to each other node, and at any time at most
// one connection per link, used in both directions; it does not matter who
// dialled it. Snapshots travel on connections of their own, so that megabytes
// never stand in the way of a heartbeat.
//
// A node that Config.Resolve does not know is a stranger: it is turned away, and
// leaves neither a link nor more than a few lines in the log.
//
// A link's life:
//
//	SetPeers (or a Call) names the node
//	   │
//	   ▼          refused, failed: wait 20–200 ms, try again
//	resolve, dial, hello ──────────────────────────────▶ (again)
//	   │  both sides checked: version, cluster id, the node's name, and
//	   │  that no other living process answers to this name
//	   ▼
//	connected: frames both ways; a ping at once, then every 50 ms
//	   │  my number came back: the link is up  ── OnLink(node, true)
//	   │  four of my pings unanswered: down    ── OnLink(node, false)
//	   │  (up again if they come back: a pause, a short cut)
//	   ▼
//	broken: reset, a write that takes over 500 ms, nothing heard for 1 s,
//	or replaced by a newer connection
//	   │  every call that waits on it fails now; down ── OnLink(node, false)
//	   ▼
//	redial at once, then with back-off
//
// Frames that wait are written together: whoever adds a frame while nobody is
// writing writes it, and all that is added meanwhile goes out as one write by
// the link's own goroutine. Heartbeats wait for the next ping, at most 50 ms,
// unless something else goes out before.
//
// Nothing here blocks for ever and nothing is queued without a bound: every call
// has a deadline, an outbox that is full refuses, a replica that does not keep
// up is answered for, and a node without a link fails at once.
//
// With Config.Secure each connection begins with TLS, in which both sides show a
// certificate; the one who dials then knows whom it reached, and the one who was called
// compares the name in the hello with that in the certificate.
//
// Identity is checked at three places. The hello names the target node and the
// cluster. A frame of raft names both replicas, bound to a channel number once
// per connection; a frame for a replica that does not live here is refused and
// never delivered. And an answer that comes after the deadline of its call is
// dropped, even if the caller still waits, because a process that was stopped
// must not take old answers for fresh ones.
//
// # For clients
//
// Server is the gRPC service, see server.go.
package transport

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"
)

// Network is how a node listens and dials: TCP, or internal/simnet in tests.
type Network interface {
	Listen(addr string) (net.Listener, error)
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// TCP is the Network of real sockets.
type TCP struct{}

// Listen opens a TCP listener.
func (TCP) Listen(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

// Dial connects by TCP.
func (TCP) Dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// From says who sent something: a node's name and the process behind it.
type From struct{ Node, Incarnation string }

// Config is what a node's links need to know. Name, Incarnation and Resolve are
// required. All functions may be called by several goroutines at once and must
// not block, but for Handle. A panic in Handle, Digest, OnDigest or OnLink is
// logged and costs that one call, digest or piece of news.
type Config struct {
	Name        string        // this node's name
	Incarnation string        // of this process: random, never used again
	Cluster     func() string // id of the cluster, "" while unknown; nil: always unknown
	Network     Network       // nil: TCP
	Secure      Secure        // TLS of all connections, both sides with a certificate; nil: they are plain
	Addr        string        // to listen on, host:port

	// Resolve returns where a node listens at present. Connections from nodes
	// that it does not know are refused.
	Resolve func(node string) (addr string, ok bool)

	// Handle answers a Call of another node; ctx ends with the caller's time or
	// the connection. body is the callee's. At most maxHandlers run at once;
	// above, callers get fault.Busy. nil: every method is fault.NotFound.
	Handle func(ctx context.Context, from From, method uint8, body []byte) ([]byte, error)

	// Digest returns what to tell all peers with each ping, at most 64 KiB: for
	// some hundreds of nodes. A longer one is left out, and the log says so once.
	// Asked for once every 50 ms. nil: nothing.
	Digest func() []byte
	// OnDigest is told each digest received; it is valid until the return.
	// Called by the reader of that link, which reads nothing else meanwhile.
	OnDigest func(from From, digest []byte)

	// OnLink is told when a link comes up or goes down, by one goroutine, in
	// order, without a lock held. A link that broke and came back before it
	// could be told is told twice: down, then up.
	OnLink func(node string, up bool)

	Logger *slog.Logger // nil: slog.Default
}

// The times of a link. Each is a bound somebody else relies on: the failover of
// groups on pings, raft's lease (500 ms) on the deadline of its calls.
const (
	pingEvery    = 50 * time.Millisecond
	linkLimit    = 11 * pingEvery / 2     // age of the newest number come back, which is two beats when all is well: four lost
	silence      = time.Second            // nothing heard: the connection is given up
	writeTimeout = 500 * time.Millisecond // one write
	dialTimeout  = 500 * time.Millisecond // connect, and again for the hello
	raftTimeout  = 500 * time.Millisecond // votes, heartbeats, small appends
	callTimeout  = 5 * time.Second        // a Call whose context has no deadline
	backoffMin   = 20 * time.Millisecond
	backoffMax   = 200 * time.Millisecond
	idleLink     = 30 * time.Second // a link that SetPeers does not name is closed, and forgotten, after this long without a use
)

// The bounds of a link.
const (
	maxFrame    = 16 << 20 // length of one frame
	maxOutbox   = 8 << 20  // bytes waiting to be written, before the newest frame
	maxDigest   = 64 << 10
	maxChannels = 1 << 16 // pairs of replicas per connection
	maxHandlers = 1024    // calls of other nodes being answered
	maxIdle     = 64      // goroutines kept for the next ones
	maxName     = 512     // length of a node's, cluster's or replica's name
)

// ErrNoLink is returned to raft when there is no connection to the node of the
// target replica; nothing was sent.
var ErrNoLink = errors.New("no link to the node")

// ErrTimeout is returned to raft when the answer did not come in time.
var ErrTimeout = errors.New("no answer in time")

// errBroken fails the calls of a connection that ended.
var errBroken = errors.New("connection lost")
