package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/cluster/gossip"
	"github.com/ringlimit/ringlimit/control"
)

// formatMax is the newest format of entries, chunks and digests this program reads.
const formatMax = leaseFormat

// clusterID is the cluster this node belongs to, empty before one is known.
func (n *Node) clusterID() string {
	if n.control != nil {
		if id := n.control.State().ClusterID; id != "" {
			return id
		}
	}
	if n.dir != nil {
		return n.dir.ClusterID()
	}
	return ""
}

func (n *Node) gossipMeta() gossip.Meta {
	return gossip.Meta{
		Cluster: n.clusterID(), Peer: n.self.advertise.Peer, GRPC: n.self.advertise.GRPC,
		Expect: n.cfg.BootstrapExpect,
	}
}

// gossipTargets are the addresses to find the others at: those given, and those
// of the nodes this one knows.
func (n *Node) gossipTargets() []string {
	targets := slices.Clone(n.cfg.Join)
	for _, node := range n.known() {
		targets = append(targets, node.Gossip)
	}
	return targets
}

// resolve finds a node's peer address. Gossip knows the newest; among several
// processes of one name, the registered one counts.
func (n *Node) resolve(name string) (string, bool) {
	node, registered := n.control.State().Node(name)
	var addr string
	for _, m := range n.gossip.Members() {
		if m.Name != name || m.Peer == "" {
			continue
		}
		if registered && m.Incarnation == node.Incarnation {
			return m.Peer, true
		}
		addr = m.Peer
	}
	for _, k := range n.known() {
		if addr == "" && k.Name == name {
			addr = k.Peer
		}
	}
	return addr, addr != ""
}

// joinLoop makes this process a registered member: it asks a node of a known
// cluster, or bootstraps one when it is the one to do so. It returns an error
// only when the cluster refuses this node, and nil once this node has left.
func (n *Node) joinLoop(ctx context.Context) error {
	announced := ""
	var lonely lonely
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		if id := n.clusterID(); id != announced {
			if err := n.rememberCluster(id); err != nil {
				return err
			}
			announced = id
		}
		err := n.stayRegistered(ctx)
		if errors.Is(err, errLeft) {
			n.log.Info("drained: this node has left the cluster, and ends")
			close(n.left)
			return nil
		}
		if err != nil {
			return err
		}
		lonely.look(n, time.Now())
		if n.cfg.Policies != nil && n.registered() {
			n.compareWithFile()
			n.cfg.Policies = nil // of no use any more, and perhaps large
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return ctx.Err()
		}
	}
}

// errLeft is returned when this process was drained and has left.
var errLeft = errors.New("this node has left the cluster")

// stayRegistered joins if this process is not registered, or may not be any more.
func (n *Node) stayRegistered(ctx context.Context) error {
	if n.hasLeft() {
		return errLeft
	}
	if n.stopping.Load() || n.registered() && !n.forgotten() {
		return nil
	}
	return n.tryJoin(ctx)
}

// rememberCluster keeps the id on disk and tells it to others.
func (n *Node) rememberCluster(id string) error {
	if n.dir != nil && id != "" {
		if err := n.dir.SetClusterID(id); err != nil {
			return err
		}
	}
	if err := n.gossip.Announce(); err != nil {
		n.log.Warn("cannot spread the cluster id yet", "error", err)
	}
	return nil
}

func (n *Node) registered() bool {
	node, ok := n.control.State().Node(n.self.name)
	return ok && !node.Removed && node.Incarnation == n.self.incarnation
}

// forgottenAfter is how long a registered node waits for a control leader before
// it asks whether it still is one: of a process that was superseded while it
// was stopped, nobody would tell it.
const forgottenAfter = 10 * time.Second

// forgotten says whether no control leader has been heard for long; used by joinLoop only.
func (n *Node) forgotten() bool {
	if n.control.Leader() != "" {
		n.leaderSeen = time.Now()
	}
	return time.Since(n.leaderSeen) > forgottenAfter
}

func (n *Node) tryJoin(ctx context.Context) error {
	if n.control.Leads() {
		return n.found(ctx)
	}
	for _, to := range n.joinTargets() {
		err := n.askToJoin(ctx, to)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errLeft):
			return err
		case errors.Is(err, fault.Conflict):
			return fmt.Errorf("cannot join: %w", err)
		default:
			n.log.Debug("join", "through", to.name, "address", to.grpc, "error", err)
		}
	}
	if n.mayBootstrap() {
		n.log.Info("bootstrapping a new cluster", "nodes", n.cfg.BootstrapExpect)
		n.bootstrapped = true
		return n.control.Bootstrap()
	}
	return nil
}

// joinTarget is a node that may let this one in.
type joinTarget struct{ name, grpc string }

// joinTargets are the nodes that know a cluster.
func (n *Node) joinTargets() []joinTarget {
	own := n.clusterID()
	var targets []joinTarget
	for _, m := range n.gossip.Members() {
		if m.Name != n.self.name && m.Cluster != "" && (own == "" || own == m.Cluster) {
			targets = append(targets, joinTarget{m.Name, m.GRPC})
		}
	}
	for _, node := range n.known() {
		if !slices.ContainsFunc(targets, func(t joinTarget) bool { return t.grpc == node.GRPC }) {
			targets = append(targets, joinTarget{node.Name, node.GRPC})
		}
	}
	return targets
}

// mayBootstrap says whether this node is the one to make a cluster: asked to,
// nobody knows one, exactly the expected nodes are there, and it is the first by name.
func (n *Node) mayBootstrap() bool {
	if n.cfg.BootstrapExpect == 0 || n.bootstrapped || n.control.Existing() || n.clusterID() != "" {
		return false
	}
	if n.hasJoinTarget() && !n.gossip.Reached() {
		return false
	}
	members := n.gossip.Members()
	names := make(map[string]bool, len(members))
	for _, m := range members {
		if m.Cluster != "" || m.Expect != n.cfg.BootstrapExpect || m.Name < n.self.name {
			return false
		}
		names[m.Name] = true
	}
	return len(members) == n.cfg.BootstrapExpect && len(names) == len(members)
}

// hasJoinTarget says whether --join names any node but this one.
func (n *Node) hasJoinTarget() bool {
	return slices.ContainsFunc(n.cfg.Join, func(t string) bool {
		return t != n.cfg.Listen.Gossip && t != n.self.advertise.Gossip
	})
}

// found makes the cluster's first command, if it is still missing, and
// registers this node; only the control leader does.
func (n *Node) found(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if n.control.State().ClusterID == "" {
		if err := n.control.Propose(ctx, n.foundation()); err != nil {
			n.log.Warn("cannot found the cluster yet", "error", err)
			return nil
		}
	}
	err := n.control.Propose(ctx, control.Register{Node: n.asNode(), Supersede: true})
	if errors.Is(err, fault.Conflict) {
		return fmt.Errorf("cannot register: %w", err)
	}
	return nil
}

// foundation is the first command of a new cluster.
func (n *Node) foundation() control.Command {
	if n.backup != nil {
		return n.refoundation()
	}
	secrets := make([]byte, 32)
	_, _ = rand.Read(secrets) // never fails
	return control.Found{
		ClusterID: randomID(), Secret: secrets[:16], RoutingKey: secrets[16:],
		Slots: n.cfg.Slots, Groups: n.cfg.Groups, Expect: max(1, n.cfg.BootstrapExpect),
		Voters: n.cfg.ControlVoters, Policies: n.firstPolicies(),
	}
}

func (n *Node) asNode() control.Node {
	a := n.self.advertise
	return control.Node{
		Name: n.self.name, Directory: n.self.directory, Incarnation: n.self.incarnation,
		GRPC: a.GRPC, Peer: a.Peer, Gossip: a.Gossip, HTTP: a.HTTP, Zone: n.cfg.Zone, FormatMax: formatMax,
	}
}

// askToJoin asks over gRPC, where a node may ask that others do not know yet. Where nodes
// have certificates it asks over a link, as only there it can prove who it is; then only
// the control leader answers.
func (n *Node) askToJoin(ctx context.Context, to joinTarget) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	ask := n.askByCall
	if n.secrets.peers != nil {
		ask = n.askByLink
	}
	r, err := ask(ctx, to, n.joinRequest())
	if r.GetLeft() {
		return errLeft
	}
	return fault.FromStatus(err)
}

func (n *Node) joinRequest() *pb.JoinRequest {
	a := n.self.advertise
	return &pb.JoinRequest{
		Name: n.self.name, Directory: n.self.directory, Incarnation: n.self.incarnation,
		Grpc: a.GRPC, Peer: a.Peer, Gossip: a.Gossip, Http: a.HTTP, Zone: n.cfg.Zone,
		ClusterId: n.clusterID(), FormatMax: formatMax, Backup: n.backupID(),
	}
}

func (n *Node) askByLink(ctx context.Context, to joinTarget, r *pb.JoinRequest) (*pb.JoinResponse, error) {
	body, err := proto.Marshal(r)
	if err != nil {
		return nil, err
	}
	out, err := n.peers.CallBulk(ctx, to.name, methodJoin, body)
	if err != nil {
		return nil, err
	}
	answer := new(pb.JoinResponse)
	return answer, proto.Unmarshal(out, answer)
}

func (n *Node) askByCall(ctx context.Context, to joinTarget, r *pb.JoinRequest) (*pb.JoinResponse, error) {
	conn, err := grpc.NewClient("passthrough:///"+to.grpc,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return n.cfg.Network.Dial(ctx, addr)
		}))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return pb.NewClusterClient(conn).Join(ctx, r)
}

// Join lets a starting node in that asks by gRPC. Where nodes have certificates it lets
// nobody in: callers are no nodes.
func (n *Node) Join(ctx context.Context, r *pb.JoinRequest) (*pb.JoinResponse, error) {
	if n.secrets.peers != nil {
		return nil, fault.New(fault.Conflict, "nodes join this cluster over --peer and prove there who they are: start the node with --peer-tls-cert, --peer-tls-key and --peer-tls-ca")
	}
	return n.join(ctx, r)
}

// join lets a starting node in. A node that does not lead the control group passes the
// request on to the one that does.
func (n *Node) join(ctx context.Context, r *pb.JoinRequest) (*pb.JoinResponse, error) {
	if err := ValidateName(r.GetName()); err != nil {
		return nil, fault.Field("name", "%v", err)
	}
	own := n.control.State().ClusterID
	if r.GetClusterId() != "" && own != "" && r.GetClusterId() != own {
		return nil, fault.New(fault.Conflict, "node %s belongs to cluster %s, this is cluster %s: clusters never merge; "+
			"start it with an empty data directory to join this one", r.GetName(), r.GetClusterId(), own)
	}
	if err := n.mayRestore(r); err != nil {
		return nil, err
	}
	if !n.control.Leads() {
		return callLeader(ctx, n, methodJoin, r, new(pb.JoinResponse))
	}
	if node, ok := n.control.State().Node(r.GetName()); ok && left(node, r.GetIncarnation()) {
		return &pb.JoinResponse{ClusterId: own, Left: true}, nil
	}
	if err := n.admit(ctx, r); err != nil {
		return nil, err
	}
	return &pb.JoinResponse{ClusterId: n.control.State().ClusterID}, nil
}

// admit registers the node, then lets its control replica follow the log.
func (n *Node) admit(ctx context.Context, r *pb.JoinRequest) error {
	old, known := n.control.State().Node(r.GetName())
	same := !known || old.Removed || old.Directory == r.GetDirectory()
	if !same && time.Since(n.ledSince()) < newLeader {
		return fault.New(fault.NotReady, "the control leader is new and does not know yet whether %s answers", r.GetName())
	}
	supersede := same || !n.answers(old)
	err := n.control.Propose(ctx, control.Register{Supersede: supersede, Node: control.Node{
		Name: r.GetName(), Directory: r.GetDirectory(), Incarnation: r.GetIncarnation(),
		GRPC: r.GetGrpc(), Peer: r.GetPeer(), Gossip: r.GetGossip(), HTTP: r.GetHttp(),
		Zone: r.GetZone(), FormatMax: int(r.GetFormatMax()),
	}})
	if err != nil {
		return err
	}
	servers, err := n.control.Servers()
	if err != nil {
		return fault.New(fault.Unavailable, "read control configuration: %v", err)
	}
	id := controlID(r.GetName(), r.GetDirectory())
	if _, member := servers[id]; member {
		return nil
	}
	if err := n.control.AddNonvoter(ctx, id); err != nil {
		return fault.New(fault.Unavailable, "add %s to the control group: %v", r.GetName(), err)
	}
	return nil
}

// newLeader is how long a control leader must have led before it judges that a
// node does not answer: links take a moment.
const newLeader = 2 * time.Second

// ledSince is since when this node leads the control group; now if it does not.
func (n *Node) ledSince() time.Time {
	if at := n.led.Load(); at != nil {
		return *at
	}
	return time.Now()
}

// answers says whether the registered process of a node is there now.
func (n *Node) answers(node control.Node) bool {
	if node.Name == n.self.name {
		return node.Incarnation == n.self.incarnation
	}
	_, up := n.peers.Link(node.Name)
	h, ok := n.table.last(node.Name)
	return up && ok && n.peers.Process(node.Name) == node.Incarnation && h.incarnation == node.Incarnation && time.Since(h.at) < time.Second
}
