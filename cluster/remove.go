package cluster

import (
	"context"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/control"
)

// Remove declares that a node will never return, and what its process held in
// memory with it. Its replicas are made anew where other nodes are left. It is
// refused while any node has a link to that process: what it holds counts. Of a node
// that was removed before, or has left, it says so: an answer may have been lost.
func (n *Node) Remove(ctx context.Context, r *pb.RemoveRequest) (*pb.RemoveResponse, error) {
	if !n.control.Leads() {
		return callLeader(ctx, n, methodRemove, r, new(pb.RemoveResponse))
	}
	if node, ok := n.control.State().Node(r.GetNode()); ok && node.Removed {
		return &pb.RemoveResponse{Already: true}, nil
	}
	node, err := n.registeredNode(r.GetNode())
	if err != nil {
		return nil, err
	}
	if seeing, _ := n.seenBy(n.control.State(), node); seeing > 0 || n.answers(node) {
		return nil, fault.New(fault.Conflict, "node %s is running: stop it first, or drain it; remove is for a node that will never return", node.Name)
	}
	if time.Since(n.ledSince()) < newLeader {
		return nil, fault.New(fault.NotReady, "the control leader is new and does not know yet whether %s answers; try again", node.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := n.control.Propose(ctx, control.Remove{Name: node.Name}); err != nil {
		return nil, err
	}
	n.log.Info("node removed for good", "removed", node.Name)
	return &pb.RemoveResponse{}, nil
}
