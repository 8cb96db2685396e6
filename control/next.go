package control

import (
	"strconv"

	"github.com/ringlimit/ringlimit/ring"
)

// Next returns the commands that the leader of the control group should propose
// now, none when nothing is to do. At most one concerns each group. Applying
// them and asking again leads, with what the groups report (Form, Promoted,
// Dropped), to the wanted placement; asking twice on one State gives the same.
func Next(s *State) []Command {
	if s.ClusterID == "" {
		return nil
	}
	if !s.Placed() {
		if n := len(s.Registered()); n > 0 && n >= s.Expect {
			return []Command{Place{}}
		}
		return nil
	}
	var out []Command
	for _, g := range s.Groups {
		if c := s.step(g); c != nil {
			out = append(out, c)
		}
	}
	return out
}

// step returns what is to do for one group, nil if nothing is.
func (s *State) step(g Group) Command {
	if !g.Formed {
		live := 0
		for _, r := range g.Replicas {
			if !s.Gone(r) {
				live++
			}
		}
		if live < len(g.Replicas)/2+1 && len(s.Registered()) > 0 {
			return Reform{g.ID, g.Epoch}
		}
		return nil
	}
	if r, ok := g.with(Joining); ok {
		return s.mend(g, r) // the step in flight, unless its target is gone too
	}
	if _, ok := g.with(Leaving); ok {
		return nil
	}
	for _, r := range g.Replicas {
		if c := s.mend(g, r); c != nil {
			return c
		}
	}
	return nil
}

// mend returns what gives a replica's place to a live one; nil if it is live, or
// missing with no node left for it.
func (s *State) mend(g Group, r Replica) Command {
	if r.Role != Missing && !s.Gone(r) {
		return nil
	}
	if node, ok := s.target(g, r); ok {
		return Replace{g.ID, g.Epoch, r.Serial, node}
	}
	if r.Role == Missing {
		return nil
	}
	return Miss{g.ID, g.Epoch, r.Serial}
}

// target returns the node to replace a replica on: its own if that is
// registered, else the one that rendezvous ranks first among those not in the group.
func (s *State) target(g Group, r Replica) (string, bool) {
	if _, ok := s.registered(r.Node); ok && !g.occupied(r.Node, r.Serial) {
		return r.Node, true
	}
	for _, name := range ring.Rendezvous(groupKey(g.ID), s.Registered()) {
		if !g.occupied(name, r.Serial) {
			return name, true
		}
	}
	return "", false
}

// groupKey is a group in rendezvous.
func groupKey(id uint32) string { return strconv.FormatUint(uint64(id), 10) }
