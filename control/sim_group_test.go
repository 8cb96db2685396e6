package control

// reconfigure changes the voters unless the new configuration would not live.
func (s *sim) reconfigure(x *simRaft, change func(voters map[uint64]bool)) bool {
	next := map[uint64]bool{}
	for serial := range x.voters {
		next[serial] = true
	}
	change(next)
	if len(next) == 0 || s.live(x, next) < quorum(len(next)) {
		return false
	}
	x.voters = next
	return true
}

// act lets the leader of an instance, if it has one, do what it finds to do by
// the State it believes in. It says whether it did anything.
func (s *sim) act(id instance, st *State) bool {
	x := s.groups[id]
	g, ok := st.Group(id.group)
	if !ok || g.Epoch != id.epoch || !s.commits(x) {
		return false
	}
	if !g.Formed {
		return s.report(Form{g.ID, g.Epoch})
	}
	for _, slot := range st.Initial(g) {
		if x.slot(slot).revision == 0 && x.slot(slot).state == "" {
			x.slot(slot).state = "held"
		}
	}
	return s.actReplicas(x, st, g) || s.actBirths(x, g) || s.actMoves(x, st, g)
}

func (x *simRaft) slot(slot uint16) *simSlot {
	if x.slots[slot] == nil {
		x.slots[slot] = new(simSlot)
	}
	return x.slots[slot]
}

// report proposes; a report may also arrive again later.
func (s *sim) report(c Command) bool {
	before := s.m.State()
	s.sent = append(s.sent[max(0, len(s.sent)-30):], c)
	s.apply(c)
	return s.m.State() != before
}

// actReplicas is what cluster's leader does for the replicas of its group.
func (s *sim) actReplicas(x *simRaft, st *State, g Group) bool {
	for _, r := range g.Replicas {
		if r.Role == Joining || r.Role == Voter && !x.voters[r.Serial] && s.procs[x.where[r.Serial]] {
			return s.actJoining(x, g, r)
		}
	}
	for _, r := range g.Replicas {
		if r.Role != Leaving && r.Role != Missing {
			continue
		}
		if x.members[r.Serial] {
			return s.expel(x, r.Serial)
		}
		if r.Role == Leaving {
			return s.report(Dropped{g.ID, g.Epoch, r.Serial})
		}
	}
	for serial := range x.members {
		if _, listed := g.Replica(serial); !listed && serial < st.NextSerial {
			return s.expel(x, serial)
		}
	}
	return false
}

func (s *sim) actJoining(x *simRaft, g Group, r Replica) bool {
	switch {
	case x.voters[r.Serial]:
		return s.report(Promoted{g.ID, g.Epoch, r.Serial})
	case !x.members[r.Serial]:
		x.members[r.Serial] = true
		return true
	case !s.procs[x.where[r.Serial]]:
		return false // never caught up
	}
	for _, old := range g.Replicas {
		if old.Role == Leaving && x.members[old.Serial] && !s.procs[x.where[old.Serial]] {
			return s.expel(x, old.Serial)
		}
	}
	return s.reconfigure(x, func(voters map[uint64]bool) { voters[r.Serial] = true })
}

func (s *sim) expel(x *simRaft, serial uint64) bool {
	if !s.reconfigure(x, func(voters map[uint64]bool) { delete(voters, serial) }) {
		return false
	}
	delete(x.members, serial)
	return true
}

func (s *sim) actBirths(x *simRaft, g Group) bool {
	var born []uint16
	for _, slot := range g.Births {
		if c := x.slot(slot); c.revision < g.BirthRevision {
			*c = simSlot{"held", g.BirthRevision, g.BirthRevision}
		}
		if born = append(born, slot); len(born) == 7 {
			break
		}
	}
	return len(born) > 0 && s.report(Born{g.ID, g.Epoch, born})
}

func (s *sim) actMoves(x *simRaft, st *State, g Group) (any bool) {
	for _, m := range st.MovesOf(g.ID) {
		if m.From == g.ID {
			any = s.actFrom(x, st, g, m) || any
		} else {
			any = s.actTo(x, g, m) || any
		}
	}
	return any
}

// actFrom is the source's part of a move.
func (s *sim) actFrom(x *simRaft, st *State, g Group, m Move) bool {
	c := x.slot(m.Slot)
	settle := func() bool { return s.report(Settled{g.ID, g.Epoch, []MoveID{m.ID()}}) }
	switch m.Phase {
	case Copying:
		if c.state == "held" && m.Revision > c.revision {
			c.state, c.revision = "sealed", m.Revision
		}
		if c.state != "sealed" || c.revision != m.Revision {
			return false
		}
		to, _ := st.Group(m.To)
		target := s.groups[instance{to.ID, to.Epoch}]
		if target == nil || !s.commits(target) {
			return false
		}
		if d := target.slot(m.Slot); d.state == "" && d.ended < m.Revision && d.revision <= m.Revision {
			d.state, d.revision = "complete", m.Revision
		}
		if d := target.slot(m.Slot); d.state != "complete" || d.revision != m.Revision {
			return false
		}
		return s.report(Flip{g.ID, g.Epoch, []MoveID{m.ID()}})
	case Cancelled:
		if m.FromSettled {
			return false
		}
		if c.revision <= m.Revision {
			if c.state == "sealed" {
				c.state = "held"
			}
			c.revision, c.ended = m.Revision, m.Revision
		}
		return settle()
	case Flipped:
		if m.FromSettled || !m.ToSettled {
			return false
		}
		if c.revision == m.Revision && c.state == "sealed" {
			*c = simSlot{"", m.Revision, m.Revision}
		}
		return settle()
	}
	return false
}

// actTo is the target's part of a move.
func (s *sim) actTo(x *simRaft, g Group, m Move) bool {
	c := x.slot(m.Slot)
	if m.Phase == Copying || m.ToSettled || c.revision > m.Revision {
		return false
	}
	switch {
	case m.Phase == Cancelled:
		*c = simSlot{"", m.Revision, m.Revision}
	case c.state == "complete" && c.revision == m.Revision:
		*c = simSlot{"held", m.Revision, m.Revision}
	case c.ended != m.Revision:
		s.t.Fatalf("%+v was flipped before its target had it: %+v", m, c)
	}
	return s.report(Settled{g.ID, g.Epoch, []MoveID{m.ID()}})
}
