// Package controlraft runs the control group's replica of one node: the durable
// raft group that agrees on nodes, placement, policies and the cluster id. It
// drives the pure state machine of package control; what is proposed, and when,
// is decided elsewhere.
package controlraft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/internal/boltlog"
	"github.com/ringlimit/ringlimit/internal/slogadapt"
)

// Transport carries the RPCs of the group. Committed tells the other replicas at once
// that an entry is committed, instead of after raft's calm CommitTimeout.
// Serve tells it whose it is.
// Release ends what waits for the links of nodes: raft is being shut down.
type Transport interface {
	raft.Transport
	Committed(index uint64)
	Serve(r *raft.Raft)
	Release()
}

// Config is what a control replica needs.
type Config struct {
	ID        string    // ServerID and ServerAddress, <node>/<directory>/control
	Dir       string    // where log and snapshots are kept; empty: in memory
	Member    bool      // Dir has belonged to a cluster: a log must be there
	Transport Transport // carries the group's RPCs
	Logger    *slog.Logger
	OnChange  func()       // the state, the leader or the configuration changed; must not block
	Storing   func() error // called before entries are stored, and may block or fail; nil: nothing
	Entries   int          // that stay in the log, with a snapshot every second or two; 0: 1,024, and a minute
	Fatal     func(error)  // the replica met an entry it cannot read and stands still
}

// Group is this node's replica of the control group.
type Group struct {
	cfg      Config
	raft     *raft.Raft
	machine  *machine
	bolt     *boltlog.Store // nil in memory
	existing bool
	ready    atomic.Uint64 // term in which it leads and has applied everything before; 0: none
	notify   chan bool
	storage  storage
	leading  sync.WaitGroup // barriers of new leaderships; they end by themselves
}

type storage struct {
	logs      raft.LogStore
	stable    raft.StableStore
	snapshots raft.SnapshotStore
}

// Open starts the replica. It is a member of nothing until Bootstrap is called
// here, or a leader adds it.
func Open(cfg Config) (*Group, error) {
	g := &Group{cfg: cfg, notify: make(chan bool, 64)}
	g.machine = &machine{m: control.New(), onChange: cfg.OnChange, fatal: cfg.Fatal}
	g.machine.publish()
	if err := g.openStorage(); err != nil {
		return nil, err
	}
	g.storage.logs = &replaced{LogStore: g.storage.logs, fatal: cfg.Fatal}
	if cfg.Storing != nil {
		g.storage.logs = guarded{g.storage.logs, cfg.Storing}
	}
	existing, err := raft.HasExistingState(g.storage.logs, g.storage.stable, g.storage.snapshots)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read control state: %w", err), g.closeStorage())
	}
	if cfg.Member && !existing {
		return nil, errors.Join(fmt.Errorf("the data directory %s belongs to a cluster, but its control log is gone, and with it the votes "+
			"this node has given: start with an empty directory, to join as a new node", cfg.Dir), g.closeStorage())
	}
	g.existing = existing
	g.raft, err = raft.NewRaft(g.raftConfig(), g.machine, g.storage.logs, g.storage.stable, g.storage.snapshots, cfg.Transport)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start control replica: %w", err), g.closeStorage())
	}
	cfg.Transport.Serve(g.raft)
	return g, nil
}

func (g *Group) openStorage() error {
	if g.cfg.Dir == "" {
		mem := raft.NewInmemStore()
		g.storage = storage{mem, mem, &memSnapshots{}}
		return nil
	}
	dir := filepath.Join(g.cfg.Dir, "control")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("control state: %w", err)
	}
	bolt, err := boltlog.Open(filepath.Join(dir, "log.db"))
	if err != nil {
		return fmt.Errorf("control log: %w", err)
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(dir, 2, slogadapt.New(g.cfg.Logger, "control raft"))
	if err != nil {
		return errors.Join(fmt.Errorf("control snapshots: %w", err), bolt.Close())
	}
	g.bolt = bolt
	g.storage = storage{bolt, bolt, snaps}
	return nil
}

func (g *Group) closeStorage() error {
	if g.bolt == nil {
		return nil
	}
	return g.bolt.Close()
}

// raftConfig keeps the timers calm: the control group decides no request.
func (g *Group) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(g.cfg.ID)
	c.HeartbeatTimeout = 500 * time.Millisecond
	c.ElectionTimeout = 500 * time.Millisecond
	c.LeaderLeaseTimeout = 500 * time.Millisecond
	c.CommitTimeout = time.Second
	c.SnapshotInterval = time.Minute
	c.SnapshotThreshold = 1024
	c.TrailingLogs = 1024
	if n := g.cfg.Entries; n > 0 { // a test of replicas that were away
		c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = time.Second, uint64(n), uint64(n)
	}
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	c.NotifyCh = g.notify
	c.Logger = slogadapt.New(g.cfg.Logger, "control raft")
	return c
}

// Existing says whether the storage held a raft state when it was opened.
func (g *Group) Existing() bool { return g.existing }

// Bootstrap makes this replica the only voter of a new control group.
func (g *Group) Bootstrap() error {
	err := g.raft.BootstrapCluster(raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: raft.ServerID(g.cfg.ID), Address: raft.ServerAddress(g.cfg.ID),
	}}}).Error()
	if err != nil {
		return fmt.Errorf("bootstrap control group: %w", err)
	}
	return nil
}

// Run follows leadership until ctx ends, then stops the replica and closes its storage.
func (g *Group) Run(ctx context.Context) error {
	for {
		select {
		case leads := <-g.notify:
			// raft sends from its main loop: this channel is always drained.
			g.ready.Store(0)
			if leads {
				g.leading.Go(g.lead)
			}
			g.cfg.OnChange()
		case <-ctx.Done():
			return g.stop()
		}
	}
}

// lead makes the replica ready once everything before its term is applied. It
// ends by itself: a barrier of a deposed leader fails.
func (g *Group) lead() {
	term := g.raft.CurrentTerm()
	if err := g.raft.Barrier(10 * time.Second).Error(); err != nil {
		g.cfg.Logger.Info("control leadership lost before it began", "error", err)
		return
	}
	g.ready.Store(term)
	g.cfg.OnChange()
}

// Close stops a replica that Run never ran.
func (g *Group) Close() error { return g.stop() }

func (g *Group) stop() error {
	g.cfg.Transport.Release()
	done := make(chan error, 1)
	go func() { done <- g.raft.Shutdown().Error() }()
	for {
		select {
		case err := <-done:
			g.leading.Wait()
			return errors.Join(err, g.closeStorage())
		case <-g.notify:
		case <-time.After(5 * time.Second):
			return errors.New("control replica did not stop within 5 s")
		}
	}
}

// State is the newest applied state. It is immutable.
func (g *Group) State() *control.State { return g.machine.state.Load() }

// Leads says whether this replica leads and has applied everything before its term.
func (g *Group) Leads() bool {
	term := g.ready.Load()
	return term != 0 && g.raft.State() == raft.Leader && g.raft.CurrentTerm() == term
}

// Leader returns the leader's id, empty when none is known.
func (g *Group) Leader() string {
	_, id := g.raft.LeaderWithID()
	return string(id)
}

// Applied is the index of the last command applied here.
func (g *Group) Applied() uint64 { return g.machine.index.Load() }

// Propose commits one command. See ProposeAt.
func (g *Group) Propose(ctx context.Context, c control.Command) error {
	_, err := g.ProposeAt(ctx, c)
	return err
}

// ProposeAt commits one command and returns its index. See ProposeEntry.
func (g *Group) ProposeAt(ctx context.Context, c control.Command) (index uint64, err error) {
	if !g.Leads() {
		return 0, fault.Leader(nil) // before the work of encoding
	}
	return g.ProposeEntry(ctx, control.Encode(c))
}

// ProposeEntry commits a command that control.Encode wrote and returns its
// index. It fails with fault.NotLeader if this replica does not lead, and with
// fault.OutcomeUnknown if leadership was lost meanwhile; a refusal by the state
// machine is its error.
func (g *Group) ProposeEntry(ctx context.Context, entry []byte) (index uint64, err error) {
	if !g.Leads() {
		return 0, fault.Leader(nil)
	}
	timeout := Patience(entry)
	if dl, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(dl))
	}
	if timeout <= 0 {
		return 0, fault.New(fault.Deadline, "no time left for a control command") // raft would wait for ever
	}
	if err := g.readable(entry); err != nil {
		return 0, err
	}
	if len(entry) > maxCommand {
		return 0, fault.New(fault.InvalidArgument, "the change takes %d bytes, at most %d may; make it in several", len(entry), maxCommand)
	}
	f := g.raft.Apply(entry, timeout)
	if err := wait(ctx, f); err != nil {
		if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			return 0, fault.Leader(nil)
		}
		return 0, fault.New(fault.OutcomeUnknown, "control command: %v", err)
	}
	g.cfg.Transport.Committed(f.Index())
	result, ok := f.Response().(control.Result)
	if !ok {
		return 0, fault.New(fault.Internal, "control replica stands still: %v", f.Response())
	}
	return f.Index(), result.Err
}

// maxCommand bounds one entry of the control log: with the MiB of entries that
// may go before it in an append, it fits into one frame of a link.
const maxCommand = 12 << 20

// readable refuses a command in a format that some registered node cannot read:
// it would stand still.
func (g *Group) readable(entry []byte) error {
	needs := control.EntryFormat(entry)
	for _, node := range g.State().Nodes {
		if !node.Removed && node.FormatMax < needs {
			return fault.New(fault.Conflict, "node %s reads formats up to %d, this change needs %d: upgrade it first", node.Name, node.FormatMax, needs)
		}
	}
	return nil
}

// wait bounds a raft future by ctx: a future of a hung replica never returns.
func wait(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Servers returns the group's configuration: id → voter.
func (g *Group) Servers() (map[string]bool, error) {
	f := g.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, err
	}
	servers := make(map[string]bool)
	for _, s := range f.Configuration().Servers {
		servers[string(s.ID)] = s.Suffrage == raft.Voter
	}
	return servers, nil
}

// AddNonvoter lets a replica follow the log.
func (g *Group) AddNonvoter(ctx context.Context, id string) error {
	return wait(ctx, g.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(id), 0, 5*time.Second))
}

// Promote gives a caught-up replica a vote.
func (g *Group) Promote(ctx context.Context, id string) error {
	return wait(ctx, g.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(id), 0, 5*time.Second))
}

// Demote takes a replica's vote; it goes on following the log. raft lets a leader
// demote itself, which costs an election: hand leadership over before.
func (g *Group) Demote(ctx context.Context, id string) error {
	return wait(ctx, g.raft.DemoteVoter(raft.ServerID(id), 0, 5*time.Second))
}

// Remove takes a replica out of the group.
func (g *Group) Remove(ctx context.Context, id string) error {
	return wait(ctx, g.raft.RemoveServer(raft.ServerID(id), 0, 5*time.Second))
}

// HandOver gives leadership to the voter id, which must be within reach: raft
// may hang in a transfer to one that is not.
func (g *Group) HandOver(ctx context.Context, id string) error {
	return wait(ctx, g.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(id)))
}

// Log is the index of the newest entry of the group's log here.
func (g *Group) Log() uint64 { return g.raft.LastIndex() }
