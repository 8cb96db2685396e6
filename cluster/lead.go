package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/policy"
)

// stepEvery is how often the leader of a group compares it with the control state.
const stepEvery = 100 * time.Millisecond

// stepTime is how long one step may take.
const stepTime = 10 * time.Second

// stepper remembers what one replica's leader duty has done.
type stepper struct {
	lastLog time.Time
	cut     *policy.Set // the policies that the group has cut over to, in this leadership
	term    uint64      // of that leadership

	salvager salvager // of the slots that a new epoch has yet to hold
}

// lead does the duties of a group's leader for one replica, whenever it leads:
// forming the group, taking hold of its slots, moving them, and the small steps that
// bring the raft configuration in line with the control state. Any leader resumes
// where another stopped: all that is done is read from the two states.
func (n *Node) lead(ctx context.Context, x *hosted) {
	var moves sync.WaitGroup
	defer moves.Wait()
	moves.Go(func() { n.runMoves(ctx, x) })
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if why := x.broken.Load(); why != nil {
			n.replaceBroken(ctx, x, *why)
		}
		st := x.replica.Status()
		if !st.Serving || n.stopping.Load() {
			continue
		}
		if err := n.step(ctx, x, &st); err != nil && ctx.Err() == nil {
			if time.Since(x.steps.lastLog) > 5*time.Second {
				x.steps.lastLog = time.Now()
				n.log.Info("group step will be tried again", "group", x.parsed.Group, "error", err)
			}
		}
	}
}

// step does at most one change of the group. It returns nil when there is nothing to do.
func (n *Node) step(ctx context.Context, x *hosted, st *group.Status) error {
	s := n.control.State()
	g, ok := s.Group(x.parsed.Group)
	if !ok || g.Epoch != x.parsed.Epoch {
		return nil
	}
	runs := ctx
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	if !g.Formed {
		// Only after this may slots be held: a group that never formed may be made anew.
		return n.propose(ctx, control.Form{Group: g.ID, Epoch: g.Epoch})
	}
	done, err := n.stepSlots(ctx, x, s, g, st)
	if len(g.Births) > 0 {
		// Slots may wait for long for what they begin with. Replicas do not wait for them.
		return errors.Join(err, n.tend(runs, x, s, g, st))
	}
	if !done || err != nil {
		return err
	}
	return n.tend(ctx, x, s, g, st)
}

// tend takes the next step of policies and replicas.
func (n *Node) tend(ctx context.Context, x *hosted, s *control.State, g control.Group, st *group.Status) error {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	if err := n.stepPolicies(ctx, x, s, st); err != nil {
		return err
	}
	return n.stepReplicas(ctx, x.replica, s, g, st)
}

// stepSlots makes the group hold the slots that no move brings: those of the first
// placement, and in a new epoch those of the epoch that was lost. It says whether
// there was nothing to do.
func (n *Node) stepSlots(ctx context.Context, x *hosted, s *control.State, g control.Group, st *group.Status) (done bool, err error) {
	if len(g.Births) > 0 {
		return false, n.stepEpoch(ctx, x, s, g, st.Term)
	}
	if st.HeldSlots >= s.CountSlots(g.ID) {
		return true, nil
	}
	initial := x.replica.Untouched(s.Initial(g))
	if len(initial) == 0 {
		return true, nil
	}
	err = x.replica.Hold(ctx, initial)
	n.views.fire()
	return false, err
}

// birthBatch is how many slots begin by one entry.
const birthBatch = 256

// stepBirths lets slots begin whose state was lost with the last epoch, and reports
// those that have begun.
func (n *Node) stepBirths(ctx context.Context, x *hosted, g control.Group) error {
	var due []bucket.Move
	var born []uint16
	for _, slot := range g.Births {
		switch info, ok := x.replica.Slot(slot); {
		case !ok:
			return fault.NotLeader
		case info.State == bucket.SlotHeld:
			born = append(born, slot)
		case len(due) < birthBatch:
			due = append(due, bucket.Move{Slot: slot, Revision: g.BirthRevision})
		}
	}
	if len(due) > 0 {
		if _, err := x.replica.Birth(ctx, due); err != nil {
			return err
		}
		n.log.Warn("slots begin without what they held", "group", g.ID, "epoch", g.Epoch, "slots", len(due), "because", g.Reason)
		n.views.fire()
		return nil
	}
	return n.propose(ctx, control.Born{Group: g.ID, Epoch: g.Epoch, Slots: born})
}

// stepPolicies makes changed policies effective in a group, so that what elapses
// from here on is priced anew also where nobody asks. A new leader does not know
// how far the last one came: it begins with all of them.
func (n *Node) stepPolicies(ctx context.Context, x *hosted, s *control.State, st *group.Status) error {
	if x.recut.Swap(false) || x.steps.term != st.Term {
		x.steps.term, x.steps.cut = st.Term, nil
	}
	if x.steps.cut == s.Policies {
		return nil
	}
	if err := x.replica.Cutover(ctx, policy.Rules(x.steps.cut, s.Policies, s.PolicyVersion)); err != nil {
		return err
	}
	x.steps.cut = s.Policies
	return nil
}

// stepReplicas brings the raft configuration one step nearer to the replicas
// listed for g in s. A joining replica comes first: while its predecessor lives
// that stays a voter until the new one is.
func (n *Node) stepReplicas(ctx context.Context, r *group.Replica, s *control.State, g control.Group, st *group.Status) error {
	voters, members := set(st.Voters), set(st.Voters, st.NonVoters)
	for _, m := range g.Replicas {
		if m.Role == control.Leaving && g.ReplicaID(m) == st.ID {
			// It cannot remove itself, nor reach its successor: no link leads to the own node.
			return r.HandOver(ctx)
		}
	}
	for _, m := range g.Replicas {
		if m.Role == control.Joining {
			return n.stepJoining(ctx, r, g, m, voters, members)
		}
	}
	for _, m := range g.Replicas {
		id := g.ReplicaID(m)
		switch m.Role {
		case control.Voter:
			if !voters[id] && n.replicaLink(id) > 0 {
				return n.stepJoining(ctx, r, g, m, voters, members)
			}
		case control.Leaving, control.Missing:
			if members[id] {
				return r.Remove(ctx, id)
			}
			if m.Role == control.Leaving {
				return n.propose(ctx, control.Dropped{Group: g.ID, Epoch: g.Epoch, Serial: m.Serial})
			}
		}
	}
	return removeStrangers(ctx, r, s, g, members)
}

// stepJoining adds a fresh replica, waits until it is caught up, and gives it a
// vote. A dead predecessor is removed before the promotion, a live one after it:
// the group then never counts on more dead voters than it must.
func (n *Node) stepJoining(ctx context.Context, r *group.Replica, g control.Group, m control.Replica, voters, members map[string]bool) error {
	id := g.ReplicaID(m)
	switch {
	case voters[id]:
		return n.propose(ctx, control.Promoted{Group: g.ID, Epoch: g.Epoch, Serial: m.Serial})
	case !members[id]:
		return r.AddNonvoter(ctx, id)
	case !r.CaughtUp(id):
		return nil
	}
	for _, old := range g.Replicas {
		oldID := g.ReplicaID(old)
		if old.Role == control.Leaving && members[oldID] && n.replicaLink(oldID) == 0 {
			return r.Remove(ctx, oldID)
		}
	}
	return r.Promote(ctx, id)
}

// removeStrangers removes members the control state no longer lists. A member
// that is newer than the state is none: this node has yet to learn of it.
func removeStrangers(ctx context.Context, r *group.Replica, s *control.State, g control.Group, members map[string]bool) error {
	listed := make(map[string]bool, len(g.Replicas))
	for _, m := range g.Replicas {
		listed[g.ReplicaID(m)] = true
	}
	for id := range members {
		if m, ok := control.ParseReplicaID(id); ok && m.Serial >= s.NextSerial {
			return nil
		}
		if !listed[id] {
			return r.Remove(ctx, id)
		}
	}
	return nil
}

func set(lists ...[]string) map[string]bool {
	out := make(map[string]bool)
	for _, list := range lists {
		for _, id := range list {
			out[id] = true
		}
	}
	return out
}

// ownerReplica is the id of the replica that should lead a group, empty when its
// owner has none that votes, or is stopping.
func (n *Node) ownerReplica(groupID, epoch uint32) string {
	g, ok := n.control.State().Group(groupID)
	if !ok || g.Epoch != epoch {
		return ""
	}
	if h, heard := n.table.last(g.Owner); !heard || h.digest.stopping {
		return ""
	}
	for _, r := range g.Replicas {
		if r.Node == g.Owner && r.Role == control.Voter {
			return g.ReplicaID(r)
		}
	}
	return ""
}

// replicaLink is how long the link to a replica's process has been up; 0 when
// it is down, or another process has that node's name now.
func (n *Node) replicaLink(id string) time.Duration {
	parsed, ok := control.ParseReplicaID(id)
	if !ok {
		return 0
	}
	if parsed.Node == n.self.name {
		if parsed.Incarnation == n.self.incarnation {
			return time.Since(n.ready.born)
		}
		return 0
	}
	if h, ok := n.table.last(parsed.Node); !ok || h.incarnation != parsed.Incarnation || h.digest.stopping {
		return 0
	}
	since, up := n.peers.Link(parsed.Node)
	if !up || n.peers.Process(parsed.Node) != parsed.Incarnation {
		return 0
	}
	return since
}

// replicaApplied is what a replica said last about how far it is.
func (n *Node) replicaApplied(id string) (uint64, bool) {
	parsed, ok := control.ParseReplicaID(id)
	if !ok {
		return 0, false
	}
	d, ok := n.table.replica(parsed.Node, parsed.Group, parsed.Epoch, parsed.Serial)
	return d.applied, ok
}
