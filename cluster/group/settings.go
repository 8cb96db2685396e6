package group

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/internal/slogadapt"
)

const (
	// maxTrailing is how many entries stay in the log behind a snapshot, so that a
	// follower that was away for a while needs no dump: 30 s at 4,000 entries/s.
	// The log's bound in bytes lowers it.
	maxTrailing = 120_000
	// snapshotEvery is how many entries make a snapshot worth while. It costs nothing.
	snapshotEvery = 2048
	// maxAppend is how many entries go in one message. Raft allocates slices of this
	// size for every message, and the driver has one entry in flight.
	maxAppend = 64
)

// raftConfig is how raft runs a replica; notify must be drained always.
func (r *Replica) raftConfig(notify chan<- bool) *raft.Config {
	t := &r.timers
	c := raft.DefaultConfig()
	c.ProtocolVersion = raft.ProtocolVersionMax
	c.LocalID = raft.ServerID(r.cfg.ID)
	c.HeartbeatTimeout, c.ElectionTimeout = t.Heartbeat, t.Election
	c.LeaderLeaseTimeout, c.CommitTimeout = t.Lease, t.Commit
	c.MaxAppendEntries = maxAppend
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = t.Snapshot, snapshotEvery, maxTrailing
	c.ShutdownOnRemove = false // the host decides over a replica's life
	c.BatchApplyCh = false     // would make the timeout of Apply meaningless
	c.NoLegacyTelemetry = true
	c.NotifyCh = notify
	c.Logger = slogadapt.New(r.logger, "raft")
	return c
}

// bootstrap forms the group with the given first voters.
func (r *Replica) bootstrap(c *raft.Config) error {
	if r.cfg.Bootstrap == nil {
		return nil
	}
	var first raft.Configuration
	for _, id := range r.cfg.Bootstrap {
		first.Servers = append(first.Servers, raft.Server{
			Suffrage: raft.Voter, ID: raft.ServerID(id), Address: raft.ServerAddress(id),
		})
	}
	return raft.BootstrapCluster(c, r.store, r.store, r.snaps, r.cfg.Transport, first)
}

const (
	// logAge is for how long entries stay, if the log's bound lets them: a follower
	// that was away for longer is sent a dump.
	logAge = time.Minute
	// pruneOver is the memory of a log, in bytes, below which its age does not matter.
	pruneOver = 128 << 10
)

// stale says whether entries that nobody will ask for take memory, and if so how
// many to keep.
func (r *Replica) stale() (keep uint64, yes bool) {
	if r.store.Bytes() <= pruneOver {
		return 0, false
	}
	younger, older := r.store.Younger(logAge)
	return younger, older > younger
}

// relieve lets raft drop old entries: all but so many, one at least, and at most what
// the snapshot that it takes first covers.
func (r *Replica) relieve(keep uint64) {
	keep = min(max(keep, 1), maxTrailing) // a log without any would say that another leader overruled it all: see ringlog.Hold
	rf := r.raft.Load()
	c := rf.ReloadableConfig()
	if c.TrailingLogs != keep {
		c.TrailingLogs = keep
		if err := rf.ReloadConfig(c); err != nil {
			r.logger.Error("cannot shorten the log", "error", err)
			return
		}
	}
	if err := rf.Snapshot().Error(); err != nil {
		r.logger.Debug("cannot take a snapshot to shorten the log", "error", err)
	}
}

// relax undoes what relieve set, when the log is well below its bound.
func (r *Replica) relax() {
	rf := r.raft.Load()
	if c := rf.ReloadableConfig(); c.TrailingLogs != maxTrailing {
		c.TrailingLogs = maxTrailing
		if err := rf.ReloadConfig(c); err != nil {
			r.logger.Error("cannot lengthen the log", "error", err)
		}
	}
}
