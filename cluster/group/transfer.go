package group

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/api/fault"
)

// moves is what a replica remembers about handing leadership over.
type moves struct {
	pace atomic.Uint64 // entries applied in the last quarter of a second

	mu      sync.Mutex // guards what follows; held for memory operations only
	last    time.Time  // the last attempt
	delay   time.Duration
	ownerAt time.Time // since when the owner has been seen leading; zero: it is not
}

// try begins an attempt, unless the last one was less than gap ago.
func (m *moves) try(gap time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.last.IsZero() && time.Since(m.last) < gap {
		return false
	}
	m.last = time.Now()
	return true
}

// TransferTo hands leadership to a voter that has caught up and whose link is
// up, else it refuses (Conflict), as it does within 5 s of the last attempt: an
// attempt that fails can leave raft refusing everything (hashicorp/raft issue 696).
// The driver does it between two entries, after a stamp: takes wait meanwhile, and
// are answered NotLeader, uncharged, when it has worked.
func (r *Replica) TransferTo(ctx context.Context, id string) error {
	if err := r.mayTransfer(id); err != nil {
		return err
	}
	if !r.moves.try(r.timers.TransferGap) {
		return fault.New(fault.Conflict, "the last attempt to hand leadership over is too recent")
	}
	return r.ask(ctx, func(ctx context.Context, d *driver, gen uint64) error {
		var out applied
		if err := d.propose(ctx, gen, stampWith(0), &out); err != nil {
			return r.outcome(err)
		}
		r.inflight.begin() // so that the watchdog sees it if raft does not answer
		defer r.inflight.end()
		return r.handTo(id)
	})
}

// mayTransfer refuses a replica that should not lead.
func (r *Replica) mayTransfer(id string) error {
	switch {
	case !r.servesNow():
		return r.notLeading()
	case id == r.cfg.ID:
		return fault.New(fault.Conflict, "%s leads already", id)
	case !r.fsm.view.load().servers.voter(id):
		return fault.New(fault.Conflict, "%s is not a voter", id)
	case !r.CaughtUp(id):
		return fault.New(fault.Conflict, "%s has not caught up or is out of reach", id)
	}
	return nil
}

// handTo asks raft to hand leadership to id and waits: raft gives up after two
// election timeouts at most.
func (r *Replica) handTo(id string) error {
	err := r.raft.Load().LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(id)).Error()
	if err != nil {
		r.logger.Warn("cannot hand leadership over", "to", id, "error", err)
		return fault.New(fault.Conflict, "hand leadership to %s: %v", id, err)
	}
	r.metrics.Transfers.Add(1)
	r.logger.Info("handed leadership over", "to", id)
	return nil
}

// HandOver makes this replica stop leading: it waits until another voter has
// caught up, stamps and hands over, as often as it takes. It returns nil once
// this replica does not lead (any more), and Unavailable at once if the group has
// no other voter. Use it before a planned stop.
func (r *Replica) HandOver(ctx context.Context) error {
	for {
		if _, leading := r.lead.current(); !leading {
			return nil
		}
		if r.alone() {
			return fault.New(fault.Unavailable, "the group has no other voter")
		}
		if to := r.heir(true); to != "" {
			if err := r.TransferTo(ctx, to); err != nil {
				r.logger.Debug("handing over", "to", to, "error", err)
			}
		}
		if !pause(ctx, 10*time.Millisecond) {
			return fault.New(fault.Deadline, "still leading: %v", context.Cause(ctx))
		}
	}
}

// heir is the voter that should lead next: the owner if it can, else the one that
// reported the most. With caughtUp only those that CaughtUp agrees to.
func (r *Replica) heir(caughtUp bool) string {
	best, most := "", uint64(0)
	owner := r.cfg.Owner()
	for _, id := range r.fsm.view.load().servers.voters {
		at, _ := r.cfg.Applied(id)
		if id == r.cfg.ID || r.cfg.LinkUp(id) == 0 || caughtUp && !r.CaughtUp(id) {
			continue
		}
		if id == owner {
			return id
		}
		if best == "" || at > most {
			best, most = id, at
		}
	}
	return best
}

// CanStand says whether this replica may be told to stand for election at once,
// because its leader was seen to be gone: a voter that follows and can serve.
func (r *Replica) CanStand() bool {
	rf := r.raft.Load()
	return rf != nil && r.failed.Load() == nil && rf.State() == raft.Follower &&
		slices.Contains(r.Electorate(), r.cfg.ID) && r.fsm.stuckFor() < r.timers.Stall
}
