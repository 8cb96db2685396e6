package control

import (
	"cmp"
	"slices"

	"github.com/ringlimit/ringlimit/api/fault"
)

// NewEpoch gives up a group that has lost its majority for good, and makes it
// anew: the next epoch, fresh voters, not formed. All its slots stay its own and
// become Births.
//
// It is refused unless a majority is lost (see Lost): in every configuration that
// raft can have by the steps the State knows of; or, where a step was in flight,
// in Configuration, which the proposer has asked from all replicas that are not
// lost. Never by elapsed time, and never because a node does not answer.
//
// Its open moves end as follows. Copying ones are cancelled: the slot is among
// the births of the source's new epoch, or the source, if the target is the group
// given up, unseals and serves on. Flipped ones stay flipped: a target given up
// gets the slot by birth, since it may have served it already, and the source
// forgets. In each case the group given up has nothing to settle any more, and
// only the other side must: it forgets, owns, unseals or drops as ever.
type NewEpoch struct {
	Group uint32   `json:"group"`
	Epoch uint32   `json:"epoch"` // the one it has now
	Nodes []string `json:"nodes"` // of the fresh voters, up to the replication; live ones, as the proposer sees it
	// Configuration are the serials of the voters in the newest configuration that
	// any replica which is not lost knows, and every such replica was asked. Empty:
	// the State alone must tell.
	Configuration []uint64 `json:"configuration,omitempty"`
	Reason        string   `json:"reason,omitempty"` // at most maxText bytes
}

// Born says that an epoch holds slots of its Births.
type Born struct {
	Group uint32   `json:"group"`
	Epoch uint32   `json:"epoch"`
	Slots []uint16 `json:"slots"`
}

func (NewEpoch) kind() string { return "new_epoch" }
func (Born) kind() string     { return "born" }

// Lost says whether what a replica holds is lost for good: its node was removed,
// or the data directory that its process had locked was opened anew. A process
// that another directory took the name from is Gone, but may still run.
func (s *State) Lost(r Replica) bool {
	n, ok := s.Node(r.Node)
	if !ok || n.Removed {
		return true
	}
	unsure := slices.ContainsFunc(n.Unsure, func(p Process) bool { return p.Incarnation == r.Incarnation })
	return n.Incarnation != r.Incarnation && !unsure
}

// MajorityLost says whether no configuration that the group can be in, by the
// steps known here, has a majority that is not lost for good. Raft may have done
// a step that was not reported yet, so replicas joining or leaving count when
// that helps.
func (s *State) MajorityLost(g Group) bool {
	total, left := 0, 0
	for _, r := range g.Replicas {
		lost := s.Lost(r)
		if r.Role == Voter || !lost {
			total++
		}
		if !lost {
			left++
		}
	}
	return left < total/2+1
}

// lostIn is MajorityLost of a configuration that was asked for. A serial that is
// no longer listed was taken out of the group for good.
func (s *State) lostIn(g Group, serials []uint64) bool {
	left := 0
	for _, serial := range serials {
		if r, ok := g.Replica(serial); ok && !s.Lost(r) {
			left++
		}
	}
	return len(serials) > 0 && left < len(serials)/2+1
}

func (c NewEpoch) apply(s *State) (bool, error) {
	g, err := s.find(c.Group, c.Epoch)
	if err != nil {
		return false, err
	}
	if err := s.mayGiveUp(*g, c); err != nil {
		return false, err
	}
	g.Survivors = slices.DeleteFunc(slices.Clone(g.Survivors), func(r Survivor) bool { return s.Lost(r.Replica) })
	for _, r := range g.Replicas {
		if !s.Lost(r) {
			g.Survivors = append(g.Survivors, Survivor{g.Epoch, r})
		}
	}
	g.Epoch++
	g.Formed, g.Reason = false, c.Reason
	g.Replicas = s.fresh(c.Nodes)
	g.Births, g.BirthRevision = s.SlotsOf(g.ID), s.revision()
	if len(g.Births) == 0 {
		g.Survivors = nil
	}
	s.giveUpMoves(g.ID)
	s.settleOwner(g)
	s.Revision++
	return true, nil
}

// mayGiveUp says why a group may not get a new epoch.
func (s *State) mayGiveUp(g Group, c NewEpoch) error {
	switch {
	case len(c.Reason) > maxText:
		return fault.Field("reason", "%d bytes, want at most %d", len(c.Reason), maxText)
	case !g.Formed:
		return fault.New(fault.Conflict, "group %d has not formed, so nothing is lost with it", g.ID)
	case !s.MajorityLost(g) && !s.lostIn(g, c.Configuration):
		return fault.New(fault.Conflict, "group %d has not lost a majority for good", g.ID)
	case !slices.IsSortedFunc(c.Configuration, func(a, b uint64) int { return cmp.Compare(a, b) }):
		return fault.Field("configuration", "%v, want serials in order", c.Configuration)
	}
	return s.checkVoters(c.Nodes)
}

// giveUpMoves ends the part of a group, which is given up, in its open moves: see NewEpoch.
func (s *State) giveUpMoves(group uint32) {
	s.Moves = slices.Clone(s.Moves)
	for i := range s.Moves {
		m := &s.Moves[i]
		if m.From != group && m.To != group {
			continue
		}
		if m.Phase == Copying {
			m.Phase = Cancelled
		}
		m.FromSettled = m.FromSettled || m.From == group
		m.ToSettled = m.ToSettled || m.To == group
	}
	s.close()
}

func (c Born) apply(s *State) (bool, error) {
	g, err := s.find(c.Group, c.Epoch)
	if err != nil {
		return false, err
	}
	born := slices.Sorted(slices.Values(c.Slots))
	left := slices.DeleteFunc(slices.Clone(g.Births), func(slot uint16) bool {
		_, ok := slices.BinarySearch(born, slot)
		return ok
	})
	if len(left) == len(g.Births) {
		return false, nil
	}
	g.Births = left
	g.Restoring = slices.DeleteFunc(slices.Clone(g.Restoring), func(slot uint16) bool {
		_, waits := slices.BinarySearch(left, slot)
		return !waits
	})
	if len(g.Restoring) == 0 {
		g.Restoring = nil
	}
	if len(left) == 0 {
		g.Births, g.Survivors = nil, nil
	}
	s.Revision++
	return true, nil
}

// Initial returns the slots, ascending, that a group holds from the first
// placement on, without a birth or a move: in a group that never had a new epoch
// and was not added later, those it has now that no open move brings. Hold those
// of them of which the group's table has never seen a revision.
func (s *State) Initial(g Group) []uint16 {
	if g.Added || g.BirthRevision > 0 {
		return nil
	}
	return slices.DeleteFunc(s.SlotsOf(g.ID), func(slot uint16) bool {
		m, ok := s.Move(slot)
		return ok && m.To == g.ID
	})
}
