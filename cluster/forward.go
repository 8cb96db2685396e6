package cluster

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// forward takes a part of a message to the node that leads its group.
func (n *Node) forward(ctx context.Context, v *view, p *part, b *batch, m *pb.StreamRequest) {
	c, ok := n.table.leader(p.group)
	if !ok || c.node == n.self.name {
		p.fail(b, fault.New(fault.NoLeader, "group %d has no leader now", p.group))
		return
	}
	if _, up := n.peers.Link(c.node); !up {
		p.fail(b, fault.New(fault.NoLeader, "the last known leader of group %d, %s, does not answer", p.group, c.node))
		return
	}
	n.metrics.forwarded.Add(float64(len(p.at)))
	out := &pb.StreamRequest{Id: m.Id, Session: m.Session, Acked: m.Acked, Revision: v.state.Revision}
	for _, i := range p.at {
		out.Requests = append(out.Requests, m.Requests[i])
	}
	results, err := n.callTake(ctx, c.node, out)
	if err != nil {
		p.fail(b, err)
		return
	}
	n.learnedFrom(v, p, b, results)
	var away []int
	var slots []uint16
	for k, i := range p.at {
		b.pointers[i] = results[k]
		if n.elsewhere(v, p.group, results[k].GetError()) {
			b.pointers[i] = &b.results[i]
			away, slots = append(away, i), slotsOf(slots, &p.requests[k].Request)
		}
	}
	if len(away) > 0 {
		n.decideElsewhere(ctx, v, b, m, away, slots)
	}
}

// elsewhere says whether an answer to what was forwarded by v means that the slot
// has another group, or will have: uncharged, and to be asked anew.
func (n *Node) elsewhere(v *view, group uint32, e *pb.Error) bool {
	switch e.GetCode() {
	case pb.Code_CODE_NOT_HELD:
		return true
	case pb.Code_CODE_NOT_LEADER:
		hint := e.GetLeader()
		return hint != nil && hint.GetGroup() != group || n.view.Load() != v
	}
	return false
}

func (n *Node) callTake(ctx context.Context, node string, m *pb.StreamRequest) ([]*pb.Result, error) {
	body, err := proto.Marshal(m)
	if err != nil {
		return nil, fault.New(fault.InvalidArgument, "%v", err)
	}
	body, err = n.peers.Call(ctx, node, methodTake, body)
	switch {
	case errors.Is(err, fault.Unavailable):
		// Not sent: what this node knew as the leader is out of its reach.
		return nil, fault.New(fault.NoLeader, "the last known leader, %s, is out of reach: %v", node, err)
	case err != nil:
		return nil, err
	}
	resp := new(pb.StreamResponse)
	if err := proto.Unmarshal(body, resp); err != nil {
		return nil, fault.New(fault.OutcomeUnknown, "answer of %s: %v", node, err)
	}
	if len(resp.Results) != len(m.Requests) {
		return nil, fault.New(fault.OutcomeUnknown, "%s answered %d of %d takes", node, len(resp.Results), len(m.Requests))
	}
	return resp.Results, nil
}

// handleTake decides takes that another node forwarded; what this node does not
// lead is refused with the leader it knows.
func (n *Node) handleTake(ctx context.Context, from string, body []byte) ([]byte, error) {
	m := new(pb.StreamRequest)
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, fault.New(fault.InvalidArgument, "%v", err)
	}
	return proto.Marshal(&pb.StreamResponse{Id: m.Id, Results: n.decide(ctx, m, origin{source: from, forwarded: true})})
}

// hint is the leader of a group as this node knows it, nil if it knows none.
func (n *Node) hint(v *view, groupID uint32) *pb.LeaderHint {
	c, ok := n.table.leader(groupID)
	if !ok || c.node == n.self.name {
		return nil
	}
	node, ok := v.state.Node(c.node)
	if !ok {
		return nil
	}
	return &pb.LeaderHint{Group: groupID, Epoch: c.epoch, Node: c.node, Grpc: node.GRPC}
}
