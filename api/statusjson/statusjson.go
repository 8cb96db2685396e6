// Package statusjson is the JSON form of a cluster's status, as `rlnode status -o json`
// prints it and GET /v1/cluster answers it: one form, so that a script reads either.
package statusjson

import (
	"fmt"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// Node is one node.
type Node struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"`
	State       string `json:"state"`
	GRPC        string `json:"grpc"`
	HTTP        string `json:"http"`
	Peer        string `json:"peer"`
	Gossip      string `json:"gossip"`
	Zone        string `json:"zone"`
	Control     string `json:"control"`
	Leads       uint32 `json:"leads"`
	Replicas    uint32 `json:"replicas"`
	Slots       uint32 `json:"slots"`
	Retired     bool   `json:"retired"`
	Progress    string `json:"progress"` // of a draining node
}

// Move is a slot on its way between two groups.
type Move struct {
	Slot        uint32 `json:"slot"`
	Revision    uint64 `json:"revision"`
	From        uint32 `json:"from"`
	To          uint32 `json:"to"`
	Phase       string `json:"phase"`
	FromSettled bool   `json:"from_settled"`
	ToSettled   bool   `json:"to_settled"`
}

// Member is one replica of a group.
type Member struct {
	Node        string `json:"node"`
	Serial      uint64 `json:"serial"`
	Incarnation string `json:"incarnation"`
	Role        string `json:"role"`
	Applied     uint64 `json:"applied"`
	Chain       string `json:"chain"` // hexadecimal: JSON numbers lose digits
	Reachable   bool   `json:"reachable"`
}

// Group is one group with its replicas.
type Group struct {
	ID       uint32   `json:"id"`
	Epoch    uint32   `json:"epoch"`
	Leader   string   `json:"leader"`
	Owner    string   `json:"owner"`
	Term     uint64   `json:"term"`
	Replicas []string `json:"replicas"`
	Slots    uint32   `json:"slots"`
	Applied  uint64   `json:"applied"`
	Buckets  uint64   `json:"buckets"`
	Healthy  bool     `json:"healthy"`
	Problem  string   `json:"problem"`
	TimeNs   int64    `json:"time_ns"`
	Members  []Member `json:"members"`
}

// Cluster is a whole status.
type Cluster struct {
	ClusterID     string   `json:"cluster_id"`
	Revision      uint64   `json:"revision"`
	Healthy       bool     `json:"healthy"`
	Slots         uint32   `json:"slots"`
	ControlLeader string   `json:"control_leader"`
	Problems      []string `json:"problems"`
	Nodes         []Node   `json:"nodes"`
	Groups        []Group  `json:"groups"`
	Moves         []Move   `json:"moves"`
	MovesWaiting  uint32   `json:"moves_waiting"`
	Dead          uint32   `json:"dead"`
	SeenBy        string   `json:"seen_by"` // the node that answered
}

// Nodes is the form of a list of nodes, never nil.
func Nodes(nodes []*pb.NodeStatus) []Node {
	out := []Node{}
	for _, n := range nodes {
		out = append(out, Node{
			n.GetName(), n.GetIncarnation(), n.GetState(), n.GetGrpc(), n.GetHttp(), n.GetPeer(), n.GetGossip(),
			n.GetZone(), n.GetControl(), n.GetLeads(), n.GetReplicas(), n.GetSlots(),
			n.GetRetired(), n.GetProgress(),
		})
	}
	return out
}

// Of is the form of a status. Its lists are never nil.
func Of(r *pb.StatusResponse) Cluster {
	c := Cluster{
		ClusterID: r.GetClusterId(), Revision: r.GetRevision(), Healthy: r.GetHealthy(), Slots: r.GetSlots(),
		ControlLeader: r.GetControlLeader(), Problems: append([]string{}, r.GetProblems()...),
		Nodes: Nodes(r.GetNodes()), Groups: []Group{}, Moves: []Move{},
		MovesWaiting: r.GetMovesWaiting(), Dead: r.GetDead(), SeenBy: r.GetNode(),
	}
	for _, m := range r.GetMoves() {
		c.Moves = append(c.Moves, Move{m.GetSlot(), m.GetRevision(), m.GetFrom(), m.GetTo(), m.GetPhase(), m.GetFromSettled(), m.GetToSettled()})
	}
	for _, g := range r.GetGroups() {
		j := Group{
			ID: g.GetId(), Epoch: g.GetEpoch(), Leader: g.GetLeader(), Owner: g.GetOwner(), Term: g.GetTerm(),
			Replicas: append([]string{}, g.GetReplicas()...), Slots: g.GetSlots(), Applied: g.GetApplied(), Buckets: g.GetBuckets(),
			Healthy: g.GetHealthy(), Problem: g.GetProblem(), TimeNs: g.GetTimeNs(), Members: []Member{},
		}
		for _, m := range g.GetMembers() {
			j.Members = append(j.Members, Member{
				m.GetNode(), m.GetSerial(), m.GetIncarnation(), m.GetRole(), m.GetApplied(),
				fmt.Sprintf("%016x", m.GetChain()), m.GetReachable(),
			})
		}
		c.Groups = append(c.Groups, j)
	}
	return c
}
