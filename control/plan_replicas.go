package control

import (
	"cmp"
	"slices"

	"github.com/ringlimit/ringlimit/ring"
)

// planGroup plans at most one command about the replicas of a group.
func (p *planner) planGroup(id uint32) {
	g, _ := p.s.Group(id)
	switch {
	case !g.Formed:
		p.planForming(g)
		return
	case p.s.MajorityLost(g), p.s.lostIn(g, p.look.Configurations[id]):
		p.do(NewEpoch{
			Group: g.ID, Epoch: g.Epoch, Nodes: p.voters(g.Owner, g.Replicas),
			Configuration: slices.Sorted(slices.Values(p.look.Configurations[id])),
			Reason:        "a majority of its replicas is lost for good",
		})
		return
	}
	if r, ok := g.with(Joining); ok {
		p.planStep(g, r)
		return
	}
	if _, ok := g.with(Leaving); ok {
		return
	}
	for _, r := range g.Replicas {
		if p.mend(g, r) {
			return
		}
	}
	if !p.frozen && p.stays(g) {
		p.planSize(g)
	}
}

// planForming makes a group anew that cannot form any more: it holds nothing yet.
func (p *planner) planForming(g Group) {
	left := 0
	for _, r := range g.Replicas {
		if n, ok := p.s.Node(r.Node); ok && !p.s.Gone(r) && !n.Retired {
			left++
		}
	}
	if left < len(g.Replicas)/2+1 {
		p.do(Reform{g.ID, g.Epoch})
	}
}

// mend gives the place of a replica to a live node if its own is gone for good,
// or if its node leaves: drains, or is retired. It says whether it planned anything.
func (p *planner) mend(g Group, r Replica) bool {
	gone := r.Role == Missing || p.s.Gone(r)
	if !gone && (p.frozen || !p.leaves(g, r)) {
		return false
	}
	node, ok := p.target(g, r, gone)
	switch {
	case ok && p.safe(g, r, true):
		return p.do(Replace{g.ID, g.Epoch, r.Serial, node})
	case ok || r.Role == Missing || !gone:
		return false
	}
	return p.do(Miss{g.ID, g.Epoch, r.Serial}) // refused while the node is registered
}

// leaves says whether a replica shall go to another node though it is not lost.
func (p *planner) leaves(g Group, r Replica) bool {
	n, _ := p.s.Node(r.Node)
	return (n.Retired || n.Draining) && p.stays(g)
}

// stays says whether a group is worth more than repairs: it is not to be dissolved.
func (p *planner) stays(g Group) bool {
	owner, _ := p.s.Node(g.Owner)
	return p.s.keeps(g) && owner.member()
}

// target returns the node to replace a replica on: its own, if a new process of
// it is a member there; else another member; else, for what is lost, its own
// also if it drains.
func (p *planner) target(g Group, r Replica, gone bool) (string, bool) {
	own := gone && p.alive(r.Node) && !g.occupied(r.Node, r.Serial)
	if n, _ := p.s.Node(r.Node); own && n.member() {
		return r.Node, true
	}
	var free []string
	for _, name := range p.s.Members() {
		if name != r.Node && p.alive(name) && !g.occupied(name, r.Serial) {
			free = append(free, name)
		}
	}
	if ranked := p.rank(groupKey(g.ID), free); len(ranked) > 0 {
		return ranked[0], true
	}
	return r.Node, own
}

// planSize brings the number of replicas nearer to the replication.
func (p *planner) planSize(g Group) {
	switch n := len(g.Replicas); {
	case n > p.s.Replication:
		if r, ok := p.spare(g); ok {
			p.do(DropReplica{g.ID, g.Epoch, r.Serial})
		}
	case n < p.s.Replication && p.live(g) >= quorum(g.voters()):
		if node, ok := p.target(g, Replica{}, false); ok {
			p.do(AddReplica{g.ID, g.Epoch, node})
		}
	}
}

// spare returns the replica that a group can best do without.
func (p *planner) spare(g Group) (Replica, bool) {
	worth := func(r Replica) int {
		n, _ := p.s.Node(r.Node)
		switch {
		case r.Role == Missing:
			return 0
		case !p.fit(r):
			return 1
		case !n.member():
			return 2
		case r.Node != g.Owner:
			return 3
		}
		return 4
	}
	safe := slices.DeleteFunc(slices.Clone(g.Replicas), func(r Replica) bool { return !p.safe(g, r, false) })
	if len(safe) == 0 {
		return Replica{}, false
	}
	return slices.MinFunc(safe, func(a, b Replica) int { return cmp.Compare(worth(a), worth(b)) }), true
}

// fit says whether a replica can be counted on now.
func (p *planner) fit(r Replica) bool {
	return r.Role == Voter && !p.s.Gone(r) && p.alive(r.Node) && !p.look.Unfit[r.Serial]
}

// live counts the voters of a group that can be counted on.
func (p *planner) live(g Group) int {
	n := 0
	for _, r := range g.Replicas {
		if p.fit(r) {
			n++
		}
	}
	return n
}

func quorum(voters int) int { return voters/2 + 1 }

// safe says whether a group has a live majority now and in each configuration on
// the way when old goes, and with grows when a fresh replica takes its place: a
// dead one is removed before the fresh one gets its vote, a live one after it.
func (p *planner) safe(g Group, old Replica, grows bool) bool {
	if old.Role == Joining {
		return true // the step began when it was safe, and another target changes no votes
	}
	voters, live := g.voters(), p.live(g)
	if voters == 0 || live < quorum(voters) {
		return false
	}
	if old.Role != Voter {
		return true // it has no vote
	}
	if !p.fit(old) {
		return live >= quorum(voters-1) && (voters > 1 || grows)
	}
	if grows {
		return true // one live voter more, then one less
	}
	return voters > 1 && live-1 >= quorum(voters-1)
}

// voters returns the nodes for the fresh voters of a group: its owner, then those
// that have it now, then other members, all alive; a node that drains only if
// there is no member.
func (p *planner) voters(owner string, now []Replica) []string {
	class := func(name string) int {
		switch {
		case name == owner:
			return 0
		case slices.ContainsFunc(now, func(r Replica) bool { return r.Node == name }):
			return 1
		}
		return 2
	}
	nodes := slices.DeleteFunc(p.s.Members(), func(name string) bool { return !p.alive(name) })
	if len(nodes) == 0 {
		nodes = slices.DeleteFunc(p.s.Registered(), func(name string) bool { return !p.alive(name) })
	}
	nodes = p.rank(owner, nodes)
	slices.SortStableFunc(nodes, func(a, b string) int { return cmp.Compare(class(a), class(b)) })
	return nodes[:min(len(nodes), p.s.Replication)]
}

// rank orders nodes by how few replicas they have, then by rendezvous. Groups that
// will be dissolved do not count.
func (p *planner) rank(key string, nodes []string) []string {
	load := make(map[string]int)
	homes := p.homes()
	for _, g := range p.s.Groups {
		for _, r := range g.Replicas {
			if home, ok := homes[g.Owner]; ok && home.ID == g.ID && r.Role != Leaving {
				load[r.Node]++
			}
		}
	}
	ranked := ring.Rendezvous(key, nodes)
	slices.SortStableFunc(ranked, func(a, b string) int { return cmp.Compare(load[a], load[b]) })
	return ranked
}
