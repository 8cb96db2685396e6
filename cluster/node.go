// Package cluster is a node: it finds the others, agrees with them on placement
// and policies, hosts replicas of groups, routes each take to the leader that
// decides it, and watches itself.
//
// Config says what a node is, Open listens, Run works until its context ends.
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/cluster/controlraft"
	"github.com/ringlimit/ringlimit/cluster/gossip"
	"github.com/ringlimit/ringlimit/internal/datadir"
	"github.com/ringlimit/ringlimit/transport"
)

// Node is one member of a cluster.
type Node struct {
	cfg  Config
	log  *slog.Logger
	self identity

	dir      *datadir.Dir // nil in memory
	secrets  secrets      // set by Open
	peers    *transport.Peers
	gossip   *gossip.Gossip
	control  *controlraft.Group
	server   *transport.Server
	ownBytes atomic.Pointer[[]byte] // newest digest of this node, encoded
	grpcLn   net.Listener
	httpLn   net.Listener // nil: no HTTP

	table       *peerTable
	hosts       *hosts               // replicas this node runs
	view        atomic.Pointer[view] // what decisions need; replaced when the control state or the replicas change
	views       signal               // fires when view is replaced, and when a replica here holds slots anew
	changes     chan struct{}        // something changed: the loops look again
	linkChanged chan struct{}        // a link, or what another node says of its links, changed
	draining    atomic.Bool          // it was told to stop: not ready, but it serves while it hands over
	stopping    atomic.Bool          // it hands leadership over: it takes none, and no duties
	ready       readiness
	lag         controlLag
	metrics     *metrics
	routing     routingCache
	turns       turns
	chunks      pace // of slots that leave this node
	arrivals    pace // of slots that come to it
	checkpoints *checkpoints
	shelf       *shelf     // what others read slots from
	backup      *slotsFile // that the cluster is restored from; nil: none
	fallbacks   fallbacks
	lessees     lessees
	spells      sync.Map // group id → *spell; of those that had no room for a bucket
	fatal       chan error

	led          atomic.Pointer[time.Time] // since when it leads the control group; nil: it does not
	hints        atomic.Pointer[[]hint]    // the other nodes as last written down
	leaderSeen   time.Time                 // when a control leader was known last; used by joinLoop only
	sight        *sightings                // how the nodes look, while it leads the control group; used by controlLoop only
	births       map[uint32]uint64         // last new epoch of each group, by its revision; used by controlLoop only
	linked       map[string]time.Time      // when each other node was seen registered last; used by controlLoop only
	left         chan struct{}             // closed by joinLoop when this node was drained and has left
	bootstrapped bool                      // this process made the control group; used by joinLoop only
}

// identity is who this process is.
type identity struct {
	name, incarnation, directory string
	advertise                    Addresses
}

// controlID is the identity of a node's control replica: bound to its
// directory, which holds the replica's log and votes.
func controlID(name, directory string) string { return name + "/" + directory + "/control" }

func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Open locks the data directory and listens on every address. The node answers
// nothing until Run is called. The errors name the flag or address at fault.
func Open(cfg Config) (_ *Node, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, log: cfg.Logger.With("node", cfg.Name),
		self:  identity{name: cfg.Name, incarnation: randomID(), directory: randomID()},
		table: newPeerTable(), changes: make(chan struct{}, 1), linkChanged: make(chan struct{}, 1), fatal: make(chan error, 1), left: make(chan struct{}),
		linked: make(map[string]time.Time),
	}
	n.ready.born = time.Now()
	n.chunks.rate, n.arrivals.rate = cfg.MoveRate, cfg.MoveRate
	n.leaderSeen = time.Now()
	n.checkpoints, n.shelf, n.turns = newCheckpoints(n), newShelf(n), newTurns()
	n.metrics = newMetrics(n)
	n.hosts = newHosts(n)
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if err := n.openDirectory(); err != nil {
		return nil, err
	}
	if err := n.openBackup(); err != nil {
		return nil, err
	}
	if err := n.openSecrets(); err != nil {
		return nil, err
	}
	if err := n.listen(); err != nil {
		return nil, err
	}
	n.server = transport.NewServer(n, transport.ServerOptions{
		GRPC: n.secrets.grpcOptions(), Logger: n.log, Busy: func(after time.Duration) { n.metrics.busy.Observe(after.Seconds()) },
	})
	n.metrics.registry.MustRegister(n.server.Envoy)
	return n, nil
}

func (n *Node) openDirectory() error {
	if n.cfg.DataDir == "" {
		n.log.Warn("no data directory: even the control state is in memory and ends with the process; give --data-dir to keep it")
		return nil
	}
	dir, err := datadir.Open(n.cfg.DataDir)
	if err != nil {
		return err
	}
	n.dir, n.self.directory = dir, dir.ID()
	n.readHints()
	n.dropAsides()
	return nil
}

func (n *Node) listen() error {
	var err error
	if n.grpcLn, err = n.cfg.Network.Listen(n.cfg.Listen.GRPC); err != nil {
		return listenError("--grpc", err)
	}
	if n.cfg.Listen.HTTP != "" {
		if n.httpLn, err = n.cfg.Network.Listen(n.cfg.Listen.HTTP); err != nil {
			return listenError("--http", err)
		}
		n.self.advertise.HTTP = advertised(n.cfg.Advertise.HTTP, n.cfg.Listen.HTTP, n.httpLn.Addr())
	}
	n.peers, err = transport.Listen(transport.Config{
		Name: n.self.name, Incarnation: n.self.incarnation, Cluster: n.clusterID,
		Network: n.cfg.Network, Secure: n.secrets.links(), Addr: n.cfg.Listen.Peer, Resolve: n.resolve,
		Handle: n.handleCall, Digest: n.ownDigest, OnDigest: n.onDigest,
		OnLink: n.onLink, Logger: n.log,
	})
	if err != nil {
		return listenError("--peer", err)
	}
	n.self.advertise.GRPC = advertised(n.cfg.Advertise.GRPC, n.cfg.Listen.GRPC, n.grpcLn.Addr())
	n.self.advertise.Peer = advertised(n.cfg.Advertise.Peer, n.cfg.Listen.Peer, n.peers.Addr())
	// The control state comes before gossip: what a node tells about itself
	// includes the cluster it belongs to.
	if err := n.openControl(); err != nil {
		return err
	}
	n.gossip, err = gossip.Start(gossip.Config{
		Name: n.self.name, Incarnation: n.self.incarnation, Bind: n.cfg.Listen.Gossip,
		Advertise: gossipAdvertise(n.cfg), Transport: n.cfg.GossipTransport,
		Keys: n.secrets.gossipKeys(), Targets: n.gossipTargets, Meta: n.gossipMeta, OnChange: n.wake, Logger: n.log,
	})
	if err != nil {
		return listenError("--gossip", err)
	}
	if n.self.advertise.Gossip = gossipAdvertise(n.cfg); n.self.advertise.Gossip == "" {
		n.self.advertise.Gossip = n.gossip.Address()
	}
	return nil
}

// listenError says what to do about an address that cannot be listened on.
func listenError(flag string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) || strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
		return fmt.Errorf("%s: %w: another process listens there; stop it or give another port", flag, err)
	}
	return fmt.Errorf("%s: %w", flag, err)
}

func (n *Node) openControl() error {
	id := controlID(n.self.name, n.self.directory)
	cfg := controlraft.Config{
		ID: id, Transport: n.peers.Raft(id), Logger: n.log, OnChange: n.wake, Fatal: n.fail,
		Storing: n.cfg.Seams.Storing, Entries: n.cfg.Seams.ControlEntries,
	}
	if n.dir != nil {
		cfg.Dir, cfg.Member = n.dir.Path(), n.dir.ClusterID() != ""
	}
	var err error
	n.control, err = controlraft.Open(cfg)
	return err
}

// Close releases what Open took, for a node that Run never ran.
func (n *Node) Close() {
	if n.control != nil {
		_ = n.control.Close()
	}
	n.closeListeners()
}

func (n *Node) closeListeners() {
	if n.backup != nil {
		n.backup.close()
	}
	for _, ln := range []net.Listener{n.grpcLn, n.httpLn} {
		if ln != nil {
			_ = ln.Close()
		}
	}
	if n.peers != nil {
		_ = n.peers.Close()
	}
	if n.gossip != nil {
		n.gossip.Close()
	}
	if n.dir != nil {
		_ = n.dir.Close()
	}
}

// Run works until ctx ends, then hands leadership over, says goodbye and
// returns nil when everything has ended; it also returns nil once this node was
// drained and has left. It returns an error when the node cannot go on: the
// process should then end.
func (n *Node) Run(ctx context.Context) error {
	// base outlives ctx: a stopping node still serves while it hands over.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	g, run := errgroup.WithContext(base)
	srv := n.httpServer()
	for _, part := range []func(context.Context) error{
		n.peers.Run, n.control.Run, n.gossip.Run, n.hosts.run,
		n.joinLoop, n.controlLoop, n.watchLoop, n.checkpointLoop,
		func(ctx context.Context) error { return n.secrets.run(ctx, n.peers) },
	} {
		g.Go(func() error {
			if err := part(run); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		})
	}
	g.Go(func() error { return ignoreClosed(n.server.Serve(n.grpcLn)) })
	if n.httpLn != nil {
		g.Go(func() error { return ignoreClosed(n.secrets.serveHTTP(srv, n.httpLn)) })
	}
	g.Go(func() error {
		defer n.server.Stop()
		defer srv.Close()
		select {
		case <-ctx.Done():
			n.handOver(run)
			n.closeServers(run, srv)
			cancel()
			return nil
		case <-n.left:
			n.closeServers(run, srv)
			cancel()
			return nil
		case err := <-n.fatal:
			return err // ends all others
		case <-run.Done():
			return nil
		}
	})
	err := g.Wait()
	if n.backup != nil {
		n.backup.close()
	}
	if n.dir != nil {
		err = errors.Join(err, n.dir.Close())
	}
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// fail ends Run with err; the first error counts.
func (n *Node) fail(err error) {
	select {
	case n.fatal <- err:
		n.log.Error("the node cannot go on", "error", err)
	default:
	}
}

// wake makes every loop look again. It never blocks.
func (n *Node) wake() {
	n.hosts.wake()
	select {
	case n.changes <- struct{}{}:
	default:
	}
}

// Addresses returns what the node advertises, with the ports that were picked.
func (n *Node) Addresses() Addresses { return n.self.advertise }

// Incarnation returns the random id of this process.
func (n *Node) Incarnation() string { return n.self.incarnation }
