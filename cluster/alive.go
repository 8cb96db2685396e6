package cluster

import (
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/control"
)

// sightings is what the control leader remembers of how nodes looked, by its own
// monotonic clock and only since it leads: a new leader begins anew, so that it
// never takes its predecessor's silence for a node's. Used by controlLoop only.
type sightings struct {
	met     map[string]silence   // the present process of each node, and since when it is known
	silent  map[string]silence   // nodes that look dead
	lost    map[uint32]time.Time // groups to give up, since when; only those of the last look
	members []string             // that count for placement …
	changed time.Time            // … and since when they are these
	steady  time.Time            // since when all of them have answered
}

// silence is a process, and since when it does not answer, or is known.
type silence struct {
	incarnation string
	since       time.Time
}

const (
	// freshAfter is how long a process that has just registered is taken to be
	// alive: it was heard by its registration, and links take a moment.
	freshAfter = 3 * time.Second
	// epochAfter is how long a group must have lost its majority before it gets a
	// new epoch: nodes that start at one time come back together, to their places.
	epochAfter = 3 * time.Second
)

// newSightings begins with what is registered: those nodes are not fresh.
func newSightings(s *control.State, now time.Time) *sightings {
	at := &sightings{met: make(map[string]silence), lost: make(map[uint32]time.Time), changed: now, steady: now, members: s.Members()}
	for _, node := range s.Nodes {
		at.met[node.Name] = silence{incarnation: node.Incarnation}
	}
	return at
}

// fresh says whether a node's process has registered a moment ago.
func (at *sightings) fresh(node control.Node, now time.Time) bool {
	if known, ok := at.met[node.Name]; !ok || known.incarnation != node.Incarnation {
		at.met[node.Name] = silence{node.Incarnation, now}
	}
	return now.Sub(at.met[node.Name].since) < freshAfter
}

// judge takes the groups that the planner would give up now. A group that it would
// not, at one look, has to be lost for the whole of epochAfter again.
func (at *sightings) judge(steps []control.Command, now time.Time) {
	lost := make(map[uint32]time.Time)
	for _, c := range steps {
		if e, ok := c.(control.NewEpoch); ok {
			lost[e.Group] = now
			if since, known := at.lost[e.Group]; known {
				lost[e.Group] = since
			}
		}
	}
	at.lost = lost
}

// patient says whether the majority of a group has been lost for long enough.
func (at *sightings) patient(group uint32, now time.Time) bool {
	since, lost := at.lost[group]
	return lost && now.Sub(since) >= epochAfter
}

// survey looks at all nodes and groups again, and returns what the planner is told.
func (n *Node) survey(s *control.State, now time.Time) control.Look {
	if n.sight == nil {
		n.sight = newSightings(s, now)
	}
	at := n.sight
	silent := make(map[string]silence)
	look := control.Look{
		Silent: make(map[string]time.Duration), ReplaceAfter: n.cfg.ReplaceAfter,
		Unfit: make(map[uint64]bool), Configurations: make(map[uint32][]uint64),
	}
	for _, node := range s.Nodes {
		if node.Removed || at.fresh(node, now) || n.looksAlive(s, node) {
			continue
		}
		before, known := at.silent[node.Name]
		if !known || before.incarnation != node.Incarnation {
			before = silence{node.Incarnation, now}
		}
		silent[node.Name] = before
		look.Silent[node.Name] = now.Sub(before.since)
	}
	at.silent = silent
	if m := s.Members(); !slices.Equal(m, at.members) {
		at.members, at.changed = m, now
	}
	look.Quiet = now.Sub(at.changed)
	if slices.ContainsFunc(at.members, func(name string) bool { _, silent := silent[name]; return silent }) {
		at.steady = now
	}
	look.Steady = now.Sub(at.steady)
	for _, g := range s.Groups {
		n.surveyGroup(s, g, &look)
	}
	return look
}

// surveyGroup adds what is to be told of one group.
func (n *Node) surveyGroup(s *control.State, g control.Group, look *control.Look) {
	leader, led := n.groupLeader(s, g)
	for _, r := range g.Replicas {
		if r.Role != control.Voter || !led {
			continue
		}
		if _, wrong := n.replicaStatus(s, g, r, leader, led); wrong != "" {
			look.Unfit[r.Serial] = true
		}
	}
	if led || !g.Formed {
		return
	}
	if serials, ok := n.configuration(s, g); ok {
		look.Configurations[g.ID] = serials
	}
}

// configuration is the voters by which a group without a leader is to be judged:
// ok is false unless every replica that is not lost for good has told which it
// knows. Where they differ it is one that still has a majority, if there is any:
// then the group is not given up.
func (n *Node) configuration(s *control.State, g control.Group) (serials []uint64, ok bool) {
	for _, r := range g.Replicas {
		if r.Role == control.Missing || s.Lost(r) {
			continue
		}
		node, known := s.Node(r.Node)
		if !known || node.Incarnation != r.Incarnation || !n.answers(node) {
			return nil, false
		}
		d, heard := n.table.replica(r.Node, g.ID, g.Epoch, r.Serial)
		if !heard || len(d.voters) == 0 && r.Role == control.Voter {
			return nil, false
		}
		if len(d.voters) == 0 {
			continue // joining, and not reached by a leader yet
		}
		if told := slices.Sorted(slices.Values(d.voters)); serials == nil || hasMajority(s, g, told) {
			serials = told
		}
	}
	return serials, serials != nil
}

// hasMajority says whether a majority of some voters is not lost for good.
func hasMajority(s *control.State, g control.Group, serials []uint64) bool {
	left := 0
	for _, serial := range serials {
		if r, ok := g.Replica(serial); ok && !s.Lost(r) {
			left++
		}
	}
	return left >= len(serials)/2+1
}

// looksAlive says whether a majority of the nodes that this one hears, itself
// included, have a link to the registered process of a node. One broken link, or
// one node that nobody but this one hears, is not enough either way.
func (n *Node) looksAlive(s *control.State, node control.Node) bool {
	if node.Name == n.self.name {
		return n.answers(node)
	}
	seeing, observers := n.seenBy(s, node)
	return 2*seeing > observers
}

// seenBy counts the nodes that this one hears, itself included and the node in
// question not, and those of them that have a link to its registered process.
func (n *Node) seenBy(s *control.State, node control.Node) (seeing, observers int) {
	for _, o := range s.Nodes {
		if o.Removed || o.Name == node.Name || !n.answers(o) {
			continue
		}
		observers++
		if o.Name == n.self.name {
			seeing += int(flag(n.linkTo(control.ID{Node: node.Name, Incarnation: node.Incarnation})))
		} else if h, ok := n.table.last(o.Name); ok && slices.Contains(h.digest.up, node.Name) {
			seeing++
		}
	}
	return seeing, observers
}
