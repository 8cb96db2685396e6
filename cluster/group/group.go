// Package group is one replica of one raft group: it gathers takes into log
// entries, commits them, applies them to its bucket table, and answers.
//
// The life of a take on the leader: Take joins the batch being gathered; the one
// driver goroutine stamps the batch with group time and proposes it as a single
// raft entry, one entry in flight at a time; while that entry is being committed
// the next batch gathers; when the table has applied it, all waiters wake at
// once. There is no timer on this path: the first take goes at once.
//
// Everything lives in memory: the log (internal/ringlog), the votes and the
// table. Hence a replica must never come back under an identity it had before:
// a restarted node opens fresh replicas under fresh ids, which join as non-voters
// and are promoted once they have caught up.
//
// An answer is honest. An error kind other than fault.OutcomeUnknown means that
// nothing was charged; OutcomeUnknown means that the entry may still commit, and
// a retry with the same request id settles it.
package group

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/internal/ringlog"
)

// Config says who a replica is and whom it asks and tells. ID, Slots and
// Transport are required; every function may be nil. The functions are called
// from the replica's own goroutines and must neither block nor call back into
// methods that wait for the group.
type Config struct {
	ID        string         // ServerID and ServerAddress; never used before by any replica
	Bootstrap []string       // ids of all first voters; only while the group is being formed
	Slots     int            // slots of the ring, the same on all replicas
	Transport raft.Transport // refuses what is meant for another id; see transport.Peers.Raft
	Logger    *slog.Logger   // nil: slog.Default

	Owner   func() string                                // replica that should lead; "" if there is none
	LinkUp  func(replica string) time.Duration           // how long the link to that replica has been up; 0: it is down
	Applied func(replica string) (index uint64, ok bool) // what that replica last reported as applied
	Fatal   func(error)                                  // this process must not go on with this replica
	Broken  func(error)                                  // this replica must be replaced by a fresh one
	OnLead  func(term uint64, serving bool)              // this replica began or stopped serving as leader

	MaxBuckets int // above it takes get no new bucket; 0: no cap. May be passed by what two entries hold
	MaxPerHome int // above it takes of one home get no new bucket; 0: no cap. Counted by a sketch that may count a little more
	LogBytes   int // memory of the raft log that a snapshot is asked to bound; 0: 64 MiB
	Timers     Timers
	Now        func() time.Time // the clock that group time goes by, with a monotonic reading; nil: time.Now
	Applying   func()           // called before each entry is applied, and may block: for tests of a replica that is slow
	Metrics    *Metrics         // nil: the replica makes its own
}

const defaultLogBytes = 64 << 20

// Replica is one replica of a group. Its methods may be called by any number of
// goroutines, before, during and after Run.
type Replica struct {
	cfg     Config
	timers  Timers
	logger  *slog.Logger
	metrics *Metrics

	store  *ringlog.Store
	fsm    *fsm
	driven raft.FSM // what raft drives: fsm; tests put themselves between
	snaps  *snapshots
	gather *gather
	raft   atomic.Pointer[raft.Raft] // nil until Run has started it

	lead     lead
	inflight inflight
	moves    moves
	suspects suspects              // buckets found empty of late
	failed   atomic.Pointer[error] // why it stopped for good
	failure  chan error            // tells Run the same
	pressed  chan struct{}         // the log asks for a snapshot
	ops      chan *op
	ran      atomic.Bool
	ended    chan struct{} // closed when nothing is proposed any more
	helpers  helpers
}

// Open checks cfg and makes a replica, which does nothing before Run.
func Open(cfg Config) (*Replica, error) {
	switch {
	case cfg.ID == "":
		return nil, errors.New("group: Config.ID is empty")
	case cfg.Slots <= 0:
		return nil, errors.New("group: Config.Slots must be at least 1")
	case cfg.Transport == nil:
		return nil, errors.New("group: Config.Transport is nil")
	}
	cfg = cfg.withDefaults()
	r := &Replica{
		cfg: cfg, timers: cfg.Timers, metrics: cfg.Metrics, gather: newGather(),
		logger:  cfg.Logger.With("replica", cfg.ID),
		failure: make(chan error, 1), pressed: make(chan struct{}, 1),
		ops: make(chan *op), ended: make(chan struct{}),
	}
	r.store = ringlog.New(cfg.LogBytes, bucket.EntryStamp, func() { notify(r.pressed) })
	r.store.GoBy(cfg.Now)
	r.fsm = &fsm{log: r.store, epoch: time.Now(), failed: r.fail, applying: cfg.Applying, table: cfg.newTable()}
	r.snaps = &snapshots{fsm: r.fsm, hold: r.store.Hold, table: cfg.newTable, metrics: cfg.Metrics}
	r.driven, r.fsm.taken = r.fsm, r.snaps.take
	r.fsm.view.v.servers = &servers{}
	r.inflight.epoch = r.fsm.epoch
	r.moves.delay = cfg.Timers.OwnerDelay
	return r, nil
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Applying == nil {
		c.Applying = func() {}
	}
	if c.Owner == nil {
		c.Owner = func() string { return "" }
	}
	if c.LinkUp == nil {
		c.LinkUp = func(string) time.Duration { return 0 }
	}
	if c.Applied == nil {
		c.Applied = func(string) (uint64, bool) { return 0, false }
	}
	if c.Fatal == nil {
		c.Fatal = func(error) {}
	}
	if c.Broken == nil {
		c.Broken = func(error) {}
	}
	if c.OnLead == nil {
		c.OnLead = func(uint64, bool) {}
	}
	if c.LogBytes <= 0 {
		c.LogBytes = defaultLogBytes
	}
	if c.Metrics == nil {
		c.Metrics = new(Metrics)
	}
	c.Timers = c.Timers.withDefaults()
	return c
}

// notify puts a token into a channel of one.
func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Metrics returns the counters of the replica.
func (r *Replica) Metrics() *Metrics { return r.metrics }

// fail stops the replica for good: it answers nothing further, and Run ends with err.
func (r *Replica) fail(err error) {
	if r.failed.CompareAndSwap(nil, &err) {
		r.failure <- err
	}
}

// newTable makes an empty table as this replica needs it.
func (c *Config) newTable() *bucket.Table {
	if c.MaxPerHome > 0 {
		return bucket.NewTable(c.Slots, bucket.WithHomeCounts())
	}
	return bucket.NewTable(c.Slots)
}
