package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/control"
)

// lagAllowed is how many entries a replica may be behind its leader and still
// count as caught up: digests are up to 50 ms old, and a busy group commits
// some thousands of entries a second.
const lagAllowed = 1000

// Status tells how the cluster is, as this node sees it now.
func (n *Node) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	n.hearSelf()
	index := n.control.Applied() // before the state, which is of this index or later
	s := n.control.State()
	r := &pb.StatusResponse{
		Index: index, Node: n.self.name,
		ClusterId: s.ClusterID, Revision: s.Revision, Slots: uint32(s.Slots),
		ControlLeader: n.controlLeader(), Nodes: n.memberStatus(s),
	}
	for _, g := range s.Groups {
		st := n.groupStatus(s, g)
		if !st.Healthy {
			r.Problems = append(r.Problems, fmt.Sprintf("group %d: %s", g.ID, st.Problem))
		}
		r.Groups = append(r.Groups, st)
	}
	r.Moves, r.MovesWaiting = moveStatus(s)
	r.Dead = uint32(n.countDead(s))
	r.Problems = append(r.Problems, placementProblems(s, r)...)
	r.Problems = append(r.Problems, n.memberProblems(s, r)...)
	r.Healthy = len(r.Problems) == 0
	if !r.Healthy {
		r.Problems = append(r.Problems, silentNodes(r)...)
	}
	return r, nil
}

// memberProblems says what is wrong with the cluster as a whole, and with this
// node's place in it.
func (n *Node) memberProblems(s *control.State, r *pb.StatusResponse) []string {
	if s.ClusterID == "" {
		return []string{n.alone()}
	}
	var problems []string
	if !s.Placed() {
		problems = append(problems, fmt.Sprintf("no placement yet: %d of %d nodes are registered", len(r.Nodes), max(1, s.Expect)))
	}
	if r.ControlLeader == "" {
		problems = append(problems, "the control group has no leader: nodes, placement and policies cannot change"+votersNeeded(r.Nodes))
	}
	if why := n.votersMissing(s); why != "" {
		problems = append(problems, why)
	}
	if !n.registered() {
		problems = append(problems, fmt.Sprintf("%s is not registered with the control group yet: what it tells may be of the past", n.self.name))
	}
	return problems
}

// votersNeeded says who must answer for the control group to have a leader.
func votersNeeded(nodes []*pb.NodeStatus) string {
	var voters []string
	for _, node := range nodes {
		if node.Control == "voter" {
			voters = append(voters, node.Name)
		}
	}
	if len(voters) == 0 {
		return ""
	}
	return fmt.Sprintf(" until %d of its %d voters (%s) answer", len(voters)/2+1, len(voters), strings.Join(voters, ", "))
}

// silentNodes says what to do about each node that does not answer. That a node is
// silent is no fault by itself: once others have taken its place all is well.
func silentNodes(r *pb.StatusResponse) []string {
	var lines []string
	for _, node := range r.Nodes {
		if node.State != "dead" {
			continue
		}
		line := node.Name + " does not answer: if its process runs, look at the network; if it has ended, start it again from its --data-dir"
		if r.ControlLeader != "" { // else nobody can remove it
			line += fmt.Sprintf(", or `rlnode remove %s` if it will never return", node.Name)
		}
		lines = append(lines, line)
	}
	return lines
}

// Members lists the registered nodes.
func (n *Node) Members(context.Context, *pb.MembersRequest) (*pb.MembersResponse, error) {
	return &pb.MembersResponse{Nodes: n.memberStatus(n.control.State())}, nil
}

func (n *Node) memberStatus(s *control.State) []*pb.NodeStatus {
	servers, _ := n.control.Servers() // unknown while the replica stops: shown as none
	var nodes []*pb.NodeStatus
	for _, node := range s.Nodes {
		if node.Removed {
			continue
		}
		st := &pb.NodeStatus{
			Name: node.Name, Incarnation: node.Incarnation, Directory: node.Directory, State: "dead",
			Grpc: node.GRPC, Peer: node.Peer, Gossip: node.Gossip, Http: node.HTTP, Zone: node.Zone, Control: "none",
			Retired: node.Retired,
		}
		if n.answers(node) || n.follows(node) {
			st.State = "alive"
			if h, ok := n.table.last(node.Name); node.Draining || ok && h.digest.stopping {
				st.State = "draining"
			}
		}
		voter, member := servers[controlID(node.Name, node.Directory)]
		switch {
		case voter:
			st.Control = "voter"
		case member:
			st.Control = "nonvoter"
		}
		if st.Draining = node.Draining; st.Draining {
			st.Progress = progress(s, node, voter)
		}
		for _, g := range s.Groups {
			if c, ok := n.table.leader(g.ID); ok && c.node == node.Name && c.epoch == g.Epoch && st.State != "dead" {
				st.Leads++
			}
			if g.Owner == node.Name {
				st.Slots += uint32(s.CountSlots(g.ID))
			}
			for _, m := range g.Replicas {
				if m.Node == node.Name && m.Incarnation == node.Incarnation && m.Role == control.Voter {
					st.Replicas++
				}
			}
		}
		nodes = append(nodes, st)
	}
	return nodes
}

// follows says whether this is a new process of a node, which tells how the cluster
// is before it is registered itself. One that was superseded does not.
func (n *Node) follows(node control.Node) bool {
	return node.Name == n.self.name && !slices.Contains(node.Past, n.self.incarnation)
}

// groupStatus judges one group. The first thing found wrong is its problem.
func (n *Node) groupStatus(s *control.State, g control.Group) *pb.GroupStatus {
	st := &pb.GroupStatus{Id: g.ID, Epoch: g.Epoch, Owner: g.Owner, Slots: uint32(s.CountSlots(g.ID))}
	leader, led := n.groupLeader(s, g)
	if led {
		st.Leader, st.Term, st.Applied, st.Buckets, st.TimeNs = leader.node, leader.term, leader.applied, leader.buckets, leader.time
	}
	var problem string
	var loss loss
	for _, m := range g.Replicas {
		r, wrong := n.replicaStatus(s, g, m, leader, led)
		st.Members = append(st.Members, r)
		if m.Role != control.Leaving {
			st.Replicas = append(st.Replicas, m.Node)
		}
		if m.Role != control.Joining {
			n.countLoss(&loss, s, m, r.Reachable)
		}
		if wrong != "" && problem == "" {
			problem = fmt.Sprintf("replica on %s: %s", m.Node, wrong)
		}
	}
	switch {
	case !g.Formed && g.BirthRevision > 0:
		problem = fmt.Sprintf("epoch %d begins anew: %s", g.Epoch, g.Reason)
	case !led:
		problem = "no leader" + loss.text(n.self.name)
	case len(g.Restoring) > 0:
		problem = fmt.Sprintf("%d slots wait for backup %s, from a node that was started with --restore and its file", len(g.Restoring), s.Backup)
	case len(g.Births) > 0:
		problem = fmt.Sprintf("%d slots have not begun in epoch %d", len(g.Births), g.Epoch)
	case leader.held == 0 && st.Slots > 0:
		problem = "its leader does not hold the slots yet"
	}
	st.Problem, st.Healthy = problem, problem == ""
	return st
}

// leaderDigest is the newest word of a group's leader.
type leaderDigest struct {
	replicaDigest
	node string
	up   []string
}

func (n *Node) groupLeader(s *control.State, g control.Group) (leaderDigest, bool) {
	c, ok := n.table.leader(g.ID)
	if !ok || c.epoch != g.Epoch {
		return leaderDigest{}, false
	}
	node, known := s.Node(c.node)
	h, heard := n.table.last(c.node)
	if !known || !heard || !n.answers(node) {
		return leaderDigest{}, false
	}
	for _, r := range h.digest.replicas {
		if r.group == g.ID && r.epoch == g.Epoch && r.serving {
			return leaderDigest{r, c.node, h.digest.up}, true
		}
	}
	return leaderDigest{}, false
}

// replicaStatus describes one replica, and what is wrong with it, if anything.
func (n *Node) replicaStatus(s *control.State, g control.Group, m control.Replica, leader leaderDigest, led bool) (*pb.ReplicaStatus, string) {
	r := &pb.ReplicaStatus{Node: m.Node, Serial: m.Serial, Incarnation: m.Incarnation, Role: m.Role.String()}
	d, heard := n.table.replica(m.Node, g.ID, g.Epoch, m.Serial)
	r.Applied, r.Chain = d.applied, d.chain
	node, known := s.Node(m.Node)
	current := known && !node.Removed && node.Incarnation == m.Incarnation
	r.Reachable = current && n.answers(node) && heard
	switch {
	case m.Role == control.Missing:
		return r, "missing: its node was removed and no other node is left to take its place"
	case s.Lost(m):
		return r, "its process has ended, and what it held in memory with it"
	case !current:
		return r, "its node has started with another --data-dir since"
	case m.Role != control.Voter:
		return r, m.Role.String()
	case !n.answers(node):
		return r, "its node does not answer"
	case !heard:
		return r, "not running yet"
	case led && !slices.Contains(leader.voters, m.Serial):
		return r, "not a voter yet"
	case led && m.Node != leader.node && !slices.Contains(leader.up, m.Node):
		return r, "its leader has no link to it"
	case led && d.applied+lagAllowed < leader.applied:
		return r, fmt.Sprintf("%d entries behind", leader.applied-d.applied)
	}
	return r, ""
}
