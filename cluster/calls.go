package cluster

import (
	"context"
	"encoding/binary"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/cluster/controlraft"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/transport"
)

// The calls between nodes.
const (
	methodTake    = 1  // pb.StreamRequest → pb.StreamResponse: decide here or refuse
	methodJoin    = 2  // pb.JoinRequest → pb.JoinResponse, to the control leader
	methodPropose = 3  // an encoded control command → its index, uvarint; to the control leader
	methodRemove  = 4  // pb.RemoveRequest → pb.RemoveResponse, to the control leader
	methodGroup   = 5  // groupCall → groupAnswer: matched requests, for the leader of their group
	methodAdopt   = 6  // adoptCall → adopted: a chunk of a slot, for the leader of its new group
	methodDrain   = 8  // pb.DrainRequest → pb.DrainResponse, to the control leader
	methodUndrain = 9  // pb.UndrainRequest → pb.UndrainResponse, to the control leader
	methodOffers  = 10 // offerCall → []offer: what a node has of slots that a new epoch lacks
	methodRead    = 11 // readCall → readAnswer: a chunk of such a slot
)

// handleCall answers a call of another node. It runs on a goroutine of its own.
func (n *Node) handleCall(ctx context.Context, from transport.From, method uint8, body []byte) ([]byte, error) {
	if method != methodJoin && !n.registeredAs(from) {
		return nil, fault.New(fault.Unavailable, "%s is not registered here as incarnation %s", from.Node, from.Incarnation)
	}
	switch method {
	case methodTake:
		return n.handleTake(ctx, from.Node, body)
	case methodGroup:
		return n.handleGroup(ctx, body)
	case methodAdopt:
		return n.handleAdopt(ctx, body)
	case methodOffers:
		return n.handleOffers(ctx, body)
	case methodRead:
		return n.handleRead(ctx, body)
	case methodJoin:
		req := new(pb.JoinRequest)
		return answer(ctx, n, body, req, func(ctx context.Context) (proto.Message, error) {
			if n.secrets.peers != nil && (req.GetName() != from.Node || req.GetIncarnation() != from.Incarnation) {
				return nil, fault.New(fault.Conflict, "%s, process %s, asks for %s, process %s: with certificates each node asks for itself",
					from.Node, from.Incarnation, req.GetName(), req.GetIncarnation())
			}
			if req.GetName() != from.Node && !n.isMember(from.Node) {
				return nil, fault.New(fault.NotReady, "%s asks for %s: only members pass on what others ask", from.Node, req.GetName())
			}
			return n.join(ctx, req)
		})
	case methodRemove:
		req := new(pb.RemoveRequest)
		return answer(ctx, n, body, req, func(ctx context.Context) (proto.Message, error) { return n.Remove(ctx, req) })
	case methodDrain:
		req := new(pb.DrainRequest)
		return answer(ctx, n, body, req, func(ctx context.Context) (proto.Message, error) { return n.Drain(ctx, req) })
	case methodUndrain:
		req := new(pb.UndrainRequest)
		return answer(ctx, n, body, req, func(ctx context.Context) (proto.Message, error) { return n.Undrain(ctx, req) })
	case methodPropose:
		index, err := n.control.ProposeRead(ctx, body)
		return binary.AppendUvarint(nil, index), err
	default:
		return nil, fault.New(fault.InvalidArgument, "call %d from %s is not known here; its version is newer", method, from.Node)
	}
}

// registeredAs says whether the control state knows the process that calls: the
// peer port is open to whoever reaches it, and its word must not count.
func (n *Node) registeredAs(from transport.From) bool {
	node, ok := n.control.State().Node(from.Node)
	return ok && !node.Removed && node.Incarnation == from.Incarnation
}

// isMember says whether the control state knows a node of that name, whichever its process:
// after all have restarted none is registered, and they let each other in.
func (n *Node) isMember(node string) bool {
	known, ok := n.control.State().Node(node)
	return ok && !known.Removed
}

// answer decodes a call that only the control leader may answer: passed on once, never again.
func answer(ctx context.Context, n *Node, body []byte, req proto.Message, do func(context.Context) (proto.Message, error)) ([]byte, error) {
	if err := proto.Unmarshal(body, req); err != nil {
		return nil, fault.New(fault.InvalidArgument, "%v", err)
	}
	if !n.control.Leads() {
		return nil, fault.New(fault.NotLeader, "the control leader is elsewhere")
	}
	resp, err := do(ctx)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(resp)
}

// controlLeader is the name of the node that leads the control group, empty when not known.
func (n *Node) controlLeader() string {
	name, _, _ := strings.Cut(n.control.Leader(), "/")
	return name
}

// callLeader passes a request on to the control leader.
func callLeader[R proto.Message](ctx context.Context, n *Node, method uint8, req proto.Message, resp R) (R, error) {
	var none R
	leader := n.controlLeader()
	if leader == "" || leader == n.self.name {
		return none, fault.New(fault.NoLeader, "the control group has no leader now; try again")
	}
	body, err := proto.Marshal(req)
	if err != nil {
		return none, fault.New(fault.InvalidArgument, "%v", err)
	}
	out, err := n.peers.Call(ctx, leader, method, body)
	if err != nil {
		return none, err
	}
	if err := proto.Unmarshal(out, resp); err != nil {
		return none, fault.New(fault.Internal, "answer of %s: %v", leader, err)
	}
	return resp, nil
}

// propose commits a control command, here or through the control leader.
func (n *Node) propose(ctx context.Context, c control.Command) error {
	_, err := n.proposeAt(ctx, c)
	return err
}

// proposeAt is propose, with the command's index in the control log.
func (n *Node) proposeAt(ctx context.Context, c control.Command) (index uint64, err error) {
	entry := control.Encode(c)
	ctx, cancel := context.WithTimeout(ctx, controlraft.Patience(entry))
	defer cancel()
	if n.control.Leads() {
		return n.control.ProposeEntry(ctx, entry)
	}
	leader := n.controlLeader()
	if leader == "" || leader == n.self.name {
		return 0, fault.New(fault.NoLeader, "the control group has no leader now")
	}
	body, err := n.peers.Call(ctx, leader, methodPropose, entry)
	if err != nil {
		return 0, err
	}
	index, _ = binary.Uvarint(body)
	return index, nil
}
