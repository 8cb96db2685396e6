package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/transport"
)

// Addresses are the listeners of a node, each host:port.
type Addresses struct {
	GRPC   string // callers
	Peer   string // raft, pings, forwarded takes
	Gossip string
	HTTP   string // callers who speak it, /metrics, /healthz, /readyz; empty: none
}

// Config describes one node. Name and Listen are required.
type Config struct {
	Name      string    // stable; letters, digits, '.', '_' and '-', at most 63 bytes
	Listen    Addresses // port 0 picks a free one
	Advertise Addresses // what others use, where it differs
	DataDir   string    // empty: even the control state is in memory
	Zone      string
	Version   string // of the program, for status pages

	Join            []string // gossip addresses of other nodes
	BootstrapExpect int      // make a cluster of exactly this many nodes; 0: only join
	Policies        *policy.Set
	Restore         string // backup file that the new cluster is made from; then Policies and Slots are its own
	Slots           int    // of a new cluster; 0: 1,024
	Groups          int    // of a new cluster; 0: one per node
	ControlVoters   int    // 1, 3 or 5

	Profiling    bool          // serve /debug/pprof on Listen.HTTP
	MaxBuckets   int           // per node, over all groups; 0: no cap
	MaxPerTenant int           // buckets of one home, with home [tenant] of one tenant; 0: no cap
	DrainTimeout time.Duration // how long a stop waits for leadership to be handed over
	MoveRate     int           // bytes a second of slots that leave this node for another group, and of those that come; 0: 8 MB
	// ReplaceAfter is how long a node may look dead before its replicas and its
	// control vote are made anew elsewhere; the control leader's own counts. 0: 10 min.
	ReplaceAfter time.Duration
	// CheckpointInterval is how often each replica's node writes down, in DataDir, the
	// buckets of policies with on_state_loss: salvage; 0: never.
	CheckpointInterval time.Duration

	TLS             TLS                  // zero: all is plain
	Network         transport.Network    // nil: TCP
	GossipTransport memberlist.Transport // nil: UDP and TCP on Listen.Gossip
	Logger          *slog.Logger
	Seams           Seams // for tests
}

// DefaultSlots is the number of slots of a new cluster.
const DefaultSlots = 1024

// minCheckpointInterval keeps checkpoints from being all that a node does.
const minCheckpointInterval = time.Second

// minMoveRate lets any slot arrive before its move is given up.
const minMoveRate = 1_000_000

// minReplaceAfter keeps a node that is slow for a moment from losing its replicas.
const minReplaceAfter = 5 * time.Second

// Validate checks c and fills in what was left out. Its errors name the flag at fault.
func (c *Config) Validate() error {
	if err := ValidateName(c.Name); err != nil {
		return err
	}
	for _, a := range []struct{ flag, addr string }{
		{"--grpc", c.Listen.GRPC}, {"--peer", c.Listen.Peer}, {"--gossip", c.Listen.Gossip},
	} {
		if _, _, err := net.SplitHostPort(a.addr); err != nil {
			return fmt.Errorf("%s %q: want HOST:PORT", a.flag, a.addr)
		}
	}
	for _, addr := range c.Join {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("--join %q: want the gossip address of a node, HOST:PORT", addr)
		}
	}
	switch c.ControlVoters {
	case 0:
		c.ControlVoters = 3
	case 1, 3, 5:
	default:
		return fmt.Errorf("--control-voters %d: want 1, 3 or 5", c.ControlVoters)
	}
	if c.BootstrapExpect < 0 {
		return fmt.Errorf("--bootstrap-expect %d: want 1 or more", c.BootstrapExpect)
	}
	if c.Groups < 0 || (c.BootstrapExpect > 0 && c.Groups > c.BootstrapExpect) {
		return fmt.Errorf("--groups %d: want 1 … %d, the number of nodes", c.Groups, c.BootstrapExpect)
	}
	if c.Restore != "" && c.BootstrapExpect == 0 {
		return errors.New("--restore makes a new cluster: give --bootstrap-expect too, and both to every first node")
	}
	if err := c.TLS.validate(); err != nil {
		return err
	}
	if c.Slots == 0 {
		c.Slots = DefaultSlots
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 30 * time.Second
	}
	switch {
	case c.ReplaceAfter == 0:
		c.ReplaceAfter = 10 * time.Minute
	case c.ReplaceAfter < minReplaceAfter:
		return fmt.Errorf("--replace-after %s: want at least %s, more than a restart takes", c.ReplaceAfter, minReplaceAfter)
	}
	if c.CheckpointInterval < 0 || c.CheckpointInterval > 0 && c.CheckpointInterval < minCheckpointInterval {
		return fmt.Errorf("--checkpoint-interval %s: want at least %s, or 0 for none", c.CheckpointInterval, minCheckpointInterval)
	}
	switch {
	case c.MoveRate == 0:
		c.MoveRate = 8_000_000
	case c.MoveRate < minMoveRate:
		return fmt.Errorf("--move-rate %d: want at least %d bytes a second, or 0 for 8 MB", c.MoveRate, minMoveRate)
	}
	if c.Network == nil {
		c.Network = transport.TCP{}
	}
	if c.Seams.Now == nil {
		c.Seams.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

// ValidateName says whether name can be a node's name.
func ValidateName(name string) error {
	if name == "" {
		return errors.New("--name is empty: want a name that stays the node's own, like its host name")
	}
	bad := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_')
	}
	if len(name) > 63 || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("--name %q: want at most 63 letters, digits, '.', '_' or '-'", name)
	}
	return nil
}

// advertised is the address others use for a listener bound at bound.
func advertised(configured, listen string, bound net.Addr) string {
	if configured != "" {
		return configured
	}
	host, _, err := net.SplitHostPort(listen)
	_, port, err2 := net.SplitHostPort(bound.String())
	if err != nil || err2 != nil {
		return bound.String()
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = hostAddress()
	}
	return net.JoinHostPort(host, port)
}

// gossipAdvertise is the gossip address others use, where it is not the one
// listened on: of the same machine address as the other listeners'.
func gossipAdvertise(c Config) string {
	host, port, err := net.SplitHostPort(c.Listen.Gossip)
	if ip := net.ParseIP(host); c.Advertise.Gossip != "" || err != nil || port == "0" || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return c.Advertise.Gossip
	}
	return net.JoinHostPort(hostAddress(), port)
}

// hostAddress is the first address of this machine that others may reach.
func hostAddress() string {
	addrs, err := net.InterfaceAddrs()
	if err == nil {
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				return n.IP.String()
			}
		}
	}
	return "127.0.0.1"
}
