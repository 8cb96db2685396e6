package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/control"
)

// Failure is seen per pair of nodes, not per group: raft's own timers stay calm,
// and nodes ping each other on their links. When a majority of a group's voters
// has lost the link to its leader, the one with the freshest log stands for
// election at once, and the next in line a while later if there is still no
// leader. A leader that a minority cannot reach is left alone.
const (
	standAfter   = 200 * time.Millisecond // from one candidate in line to the next: more than settled and what digests are late by
	standEvery   = time.Second            // at most one election a second in a group, and …
	standBackoff = 30 * time.Second       // … at most so far apart when one after the other brings no lasting leader
	lastingReign = 3 * time.Second        // a leader that was followed for so long without a break was one; a flapping link is never up for longer
	settled      = 2 * digestEvery        // a log that has not grown for so long is known to the other voters
)

// vigil is one replica's watch over its leader.
type vigil struct {
	leader string    // that raft knew last
	agreed time.Time // when its loss was agreed on; zero: it is not
	calm   time.Time // since when a leader is followed without a break, or is this replica; zero: none is
	backoff

	own   candidate   // the own log, as seen last
	line  []candidate // the line, as seen last; nil: not agreed
	moved time.Time   // when either was seen to grow last
}

// watchLeaders looks after the leader of every replica that runs here.
func (n *Node) watchLeaders() {
	for _, x := range n.hosts.all() {
		st := x.replica.Status()
		if st.Leading {
			x.vigil.lead(time.Now())
			continue
		}
		if x.replica.CanStand() && x.vigil.due(n, &st, x, time.Now()) && x.raft.StandForElection() {
			n.log.Info("leader is lost to a majority: standing for election", "group", x.parsed.Group, "lost", x.vigil.leader)
		}
	}
}

// due says whether this replica should stand for election now.
func (v *vigil) due(n *Node, st *group.Status, x *hosted, now time.Time) bool {
	if own := (candidate{x.parsed.Serial, st.LastTerm, st.LastIndex}); v.own != own {
		v.own, v.moved = own, now
	}
	if st.Leader != "" && st.Leader != v.leader {
		v.leader, v.agreed = st.Leader, time.Time{}
	}
	// Without a leader somebody stands, and has not won yet: it may lack entries. That may
	// be known here before the loss is.
	line := n.standing(st, v.leader, x, now)
	v.follow(st.Leader != "" && line == nil, now)
	if line == nil {
		v.agreed, v.line = time.Time{}, nil
		return false
	}
	if v.line != nil && !slices.Equal(v.line, line) {
		v.moved = now
	}
	v.line = line
	if v.agreed.IsZero() {
		v.agreed = now
	}
	wait := time.Duration(slices.Index(line, v.own)) * standAfter
	if n.mayAppend(v.leader) {
		wait += min(max(v.moved.Add(settled).Sub(v.agreed), 0), standAfter)
	}
	if st.Leader == "" {
		wait += standAfter // give who stands its turn
	}
	if now.Before(v.agreed.Add(wait)) {
		return false
	}
	return v.may(now)
}

// lead forgets whom this replica followed, now that it leads itself: a loss from before
// says nothing of who leads after it.
func (v *vigil) lead(now time.Time) {
	v.leader, v.agreed, v.line = "", time.Time{}, nil
	v.follow(true, now)
}

// follow takes down whether there is a leader. After a lasting one elections are no
// longer held back by those before it.
func (v *vigil) follow(led bool, now time.Time) {
	switch {
	case led && v.calm.IsZero():
		v.calm = now
	case !led && !v.calm.IsZero():
		if now.Sub(v.calm) >= lastingReign {
			v.reset()
		}
		v.calm = time.Time{}
	}
}

// backoff keeps the elections that one replica calls apart: the longer, the more of
// them in a row brought no lasting leader.
type backoff struct {
	stood time.Time     // when the last one was called
	wait  time.Duration // from that one to the next
}

// may says whether an election may be called now, and counts it if so.
func (b *backoff) may(now time.Time) bool {
	if now.Sub(b.stood) < b.wait {
		return false
	}
	b.stood, b.wait = now, min(max(standEvery, 2*b.wait), standBackoff)
	return true
}

// reset forgets how many there were: the last is further back than standEvery.
func (b *backoff) reset() { b.wait = 0 }

// candidate is a voter that has lost the leader too.
type candidate struct {
	serial              uint64
	lastTerm, lastIndex uint64
}

// standing returns, if a majority of the group's voters has lost this leader,
// this one among them, the line of those: the freshest log first. Else nil.
//
// The word of another voter counts only if it itself reports the loss: what it
// says of its log is then final, if nobody can append to it any more, so that all
// voters who agree compute the same line. A leader that hears nothing may still be
// heard, and append: two voters would each see itself in front, and split the
// votes. So due waits for the log to come to rest while mayAppend.
func (n *Node) standing(st *group.Status, lost string, x *hosted, now time.Time) []candidate {
	leader, ok := control.ParseReplicaID(lost)
	if !ok || st.Leading || leader.Node == n.self.name || n.linkTo(leader) {
		return nil
	}
	voters := x.replica.Electorate()
	line := []candidate{{x.parsed.Serial, st.LastTerm, st.LastIndex}}
	for _, id := range voters {
		v, ok := control.ParseReplicaID(id)
		if !ok || v.Node == n.self.name || v.Node == leader.Node {
			continue
		}
		h, ok := n.table.last(v.Node)
		if !ok || h.incarnation != v.Incarnation || now.Sub(h.at) > 4*digestEvery || slices.Contains(h.digest.up, leader.Node) {
			continue
		}
		if d, ok := n.table.replica(v.Node, v.Group, v.Epoch, v.Serial); ok {
			line = append(line, candidate{v.Serial, d.lastTerm, d.lastIndex})
		}
	}
	if len(line) < len(voters)/2+1 {
		return nil
	}
	slices.SortFunc(line, func(a, b candidate) int {
		return cmp.Or(-cmp.Compare(a.lastTerm, b.lastTerm), -cmp.Compare(a.lastIndex, b.lastIndex), cmp.Compare(a.serial, b.serial))
	})
	return line
}

// linkTo says whether there is a live link to the process of a replica.
func (n *Node) linkTo(id control.ID) bool {
	_, up := n.peers.Link(id.Node)
	return up && n.peers.Process(id.Node) == id.Incarnation
}

// mayAppend says whether the connection to the process of a lost leader still
// stands: what it sends may yet arrive, though it may not hear us.
func (n *Node) mayAppend(leader string) bool {
	id, ok := control.ParseReplicaID(leader)
	return ok && n.peers.Process(id.Node) == id.Incarnation
}
