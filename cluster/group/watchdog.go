package group

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/bucket"
)

// monitorEvery is how often a replica looks at itself.
const monitorEvery = 250 * time.Millisecond

// pruneLooks is how many looks pass from one look at the age of the log to the next.
const pruneLooks = 40

// installsPerMinute is how many snapshots a replica may be sent before it counts
// as caught in a loop (hashicorp/raft issue 697).
const installsPerMinute = 6

// watchdog is what the monitor remembers from one look to the next.
type watchdog struct {
	stage    int           // of the present stall: 0 none, 1 handed over, 2 reported, 3 given up
	stuck    [2]int64      // what was being proposed and applied at the last look
	stalled  time.Duration // how long it has been the same, as far as looked at
	applied  uint64
	installs int
	minute   time.Time
	looks    uint
}

// monitor looks after the replica until ctx ends: its log's memory, a stalled
// commit, and whose leadership it is.
func (r *Replica) monitor(ctx context.Context) {
	tick := time.NewTicker(monitorEvery)
	defer tick.Stop()
	w := &watchdog{minute: time.Now()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.pressed:
			r.shorten(ctx)
			continue
		case <-tick.C:
		}
		r.shorten(ctx)
		r.prune(ctx, w)
		r.watchStall(ctx, w)
		r.watchInstalls(w)
		at := r.fsm.view.load().index
		r.moves.pace.Store(at - min(w.applied, at))
		w.applied = at
		r.watchOwner()
		r.returnToOwner(ctx)
	}
}

// shorten keeps the log within its bound.
func (r *Replica) shorten(ctx context.Context) {
	switch p := r.store.Pressure(); {
	case p > 0.5:
		r.shortenTo(ctx, r.store.Fit())
	case p < 0.25:
		r.relax()
	}
}

// prune is shorten for entries that are too old, at every so many looks.
func (r *Replica) prune(ctx context.Context, w *watchdog) {
	if w.looks++; w.looks%pruneLooks != 0 {
		return
	}
	if keep, yes := r.stale(); yes {
		r.shortenTo(ctx, keep)
	}
}

func (r *Replica) shortenTo(ctx context.Context, keep uint64) {
	short, cancel := context.WithTimeout(ctx, monitorEvery)
	defer cancel()
	_ = r.await(short, func() error { r.relieve(keep); return nil })
}

// watchStall acts when this replica leads and heartbeats but does not commit, or
// when it does not get on with applying: it hands leadership over, then reports
// itself broken, then gives up; the only voter waits, since what it holds nobody else
// does, and whoever came in its place would have it from nobody. It counts looks rather than time, so that a
// process that was paused does not find itself stalled when it goes on.
func (r *Replica) watchStall(ctx context.Context, w *watchdog) {
	at := [2]int64{r.inflight.begun.Load(), r.fsm.busy.Load()}
	same := at[0] != 0 && at[0] == w.stuck[0] || at[1] != 0 && at[1] == w.stuck[1]
	w.stuck = at
	if !same {
		w.stage, w.stalled = 0, 0
		return
	}
	w.stalled += monitorEvery
	t := &r.timers
	if w.stage == 0 && w.stalled >= t.Stall {
		w.stage = 1
		r.metrics.Stalls.Add(1)
		r.logger.Error("the commit path is stalled", "for", w.stalled)
		r.dropLeadership(ctx)
	}
	if w.stage == 1 && w.stalled >= t.Stall+t.Broken && !r.alone() {
		w.stage = 2
		r.inflight.abandon(r.gather, "the replica cannot commit")
		r.cfg.Broken(fmt.Errorf("replica %s has not committed or applied for %v", r.cfg.ID, w.stalled))
	}
	if w.stage == 2 && w.stalled >= t.Stall+t.Broken+t.Fatal {
		w.stage = 3
		r.cfg.Fatal(fmt.Errorf("replica %s has been stalled for %v and was not replaced", r.cfg.ID, w.stalled))
	}
}

// alone says whether the group has no other voter.
func (r *Replica) alone() bool {
	v := r.fsm.view.load()
	return v.confAt != 0 && len(v.servers.voters) == 1
}

// dropLeadership hands leadership to whoever is in reach, beside the driver,
// which is what hangs. Before that it writes the time into the log, as TransferTo does:
// the entry in flight is as old as the stall, and group time would go on from there.
func (r *Replica) dropLeadership(ctx context.Context) {
	to := r.heir(false)
	rf := r.raft.Load()
	if rf.State() != raft.Leader || to == "" || !r.moves.try(r.timers.TransferGap) {
		return
	}
	short, cancel := context.WithTimeout(ctx, monitorEvery)
	defer cancel()
	_ = r.await(short, func() error {
		gen, _ := r.lead.current()
		c := r.lead.clock.Load() // of this leadership, or one before that it has begun to serve anew
		if r.servesNow() && r.lead.is(gen) {
			// It is in the log when this returns; whether it commits is up to the next leader.
			rf.Apply(bucket.StampEntry(c.now(), 0), r.timers.Enqueue)
		}
		return r.handTo(to)
	})
}

// watchInstalls reports a replica that is sent one snapshot after the other.
func (r *Replica) watchInstalls(w *watchdog) {
	w.installs += r.snaps.arrivals()
	if w.installs > installsPerMinute {
		r.cfg.Broken(fmt.Errorf("replica %s was sent %d snapshots within a minute", r.cfg.ID, w.installs))
		w.installs = 0
	}
	if time.Since(w.minute) >= time.Minute {
		w.installs, w.minute = 0, time.Now()
	}
}
