package group

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/api/fault"
)

// lagAllowed is how many entries a replica that counts as caught up may be
// behind, beside those of the last quarter of a second: what it reported is a
// little old, and it learns late what was committed.
const lagAllowed = 64

// changeTimeout is how long a change waits for the change before it.
const changeTimeout = 2 * time.Second

// AddNonvoter adds a fresh replica that gets the log but has no vote. Every
// replica joins this way. Adding one that is a member already changes nothing.
func (r *Replica) AddNonvoter(ctx context.Context, id string) error {
	v, err := r.mayChange()
	if err != nil || v.servers.voter(id) || v.servers.nonVoter(id) {
		return err
	}
	return r.change(ctx, func(rf *raft.Raft) raft.Future {
		return rf.AddNonvoter(raft.ServerID(id), raft.ServerAddress(id), v.confAt, changeTimeout)
	})
}

// Promote gives a non-voter a vote. It refuses (Conflict) unless that replica has
// caught up, its link is up, and the voters then would have a live majority.
// Before, the group's time is committed, so that the new voter knows it.
func (r *Replica) Promote(ctx context.Context, id string) error {
	v, err := r.mayChange()
	switch {
	case err != nil || v.servers.voter(id):
		return err
	case !v.servers.nonVoter(id):
		return fault.New(fault.Conflict, "%s is not a member", id)
	case !r.CaughtUp(id):
		return fault.New(fault.Conflict, "%s has not caught up", id)
	}
	if err := r.majority(append(slices.Clone(v.servers.voters), id)); err != nil {
		return err
	}
	if err := r.Stamp(ctx); err != nil {
		return err
	}
	return r.change(ctx, func(rf *raft.Raft) raft.Future {
		return rf.AddVoter(raft.ServerID(id), raft.ServerAddress(id), v.confAt, changeTimeout)
	})
}

// Remove takes a replica out of the group. It refuses (Conflict) to remove this
// leader, which must hand leadership over first, and to leave voters without a
// live majority. Removing one that is no member changes nothing.
func (r *Replica) Remove(ctx context.Context, id string) error {
	v, err := r.mayChange()
	switch {
	case err != nil || !v.servers.voter(id) && !v.servers.nonVoter(id):
		return err
	case id == r.cfg.ID:
		return fault.New(fault.Conflict, "a leader does not remove itself; hand leadership over first")
	}
	if v.servers.voter(id) {
		left := slices.DeleteFunc(slices.Clone(v.servers.voters), func(s string) bool { return s == id })
		if err := r.majority(left); err != nil {
			return err
		}
	}
	return r.change(ctx, func(rf *raft.Raft) raft.Future {
		return rf.RemoveServer(raft.ServerID(id), v.confAt, changeTimeout)
	})
}

// CaughtUp says whether the link to a replica is up and what it last reported as
// applied is close to what is applied here.
func (r *Replica) CaughtUp(id string) bool {
	at, ok := r.cfg.Applied(id)
	return ok && r.cfg.LinkUp(id) > 0 && at+lagAllowed+r.moves.pace.Load() >= r.fsm.view.load().index
}

// mayChange says whether this replica may change the members, from which
// configuration on.
func (r *Replica) mayChange() (view, error) {
	if !r.servesNow() {
		return view{}, r.notLeading()
	}
	v := r.fsm.view.load()
	if v.confAt == 0 {
		return view{}, fault.New(fault.NotReady, "no configuration is applied yet")
	}
	return v, nil
}

// majority refuses voters of whom fewer than a majority are in reach.
func (r *Replica) majority(voters []string) error {
	live := 0
	for _, id := range voters {
		if id == r.cfg.ID || r.cfg.LinkUp(id) > 0 {
			live++
		}
	}
	if live < len(voters)/2+1 {
		return fault.New(fault.Conflict, "only %d of the %d voters there would be are in reach", live, len(voters))
	}
	return nil
}

// change runs a membership change. Conflict: the members have changed meanwhile.
func (r *Replica) change(ctx context.Context, f func(*raft.Raft) raft.Future) error {
	err := r.await(ctx, func() error { return f(r.raft.Load()).Error() })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errStopping):
		return errStopped
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return fault.New(fault.NotReady, "another change of members is not committed yet")
	case notAppended(err):
		return r.notLeading()
	case strings.HasPrefix(err.Error(), "configuration changed since"):
		return fault.New(fault.Conflict, "%v", err) // raft has no value for it; nothing depends on the match
	default:
		return fault.New(fault.OutcomeUnknown, "%v", err)
	}
}
