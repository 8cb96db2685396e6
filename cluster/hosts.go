package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/transport"
)

// hosts runs this node's replicas: those the control state lists under this
// incarnation. A replica is started at most once: its state dies with it.
type hosts struct {
	n       *Node
	kick    chan struct{}
	started map[string]bool // ids ever started by this process; used by run only

	mu      sync.Mutex // guards what follows
	running map[string]*hosted
	sorted  []*hosted // running, by id; nil: to be made anew
}

// hosted is one replica that runs here.
type hosted struct {
	id        string
	parsed    control.ID
	replica   *group.Replica
	raft      *transport.RaftTransport
	vigil     vigil                 // used by watchLoop only
	broken    atomic.Pointer[error] // why it must be replaced by a fresh one
	stop      context.CancelFunc
	steps     stepper
	recut     atomic.Bool // slots came: all policies are to be made effective again
	replacing bool        // used by lead only
}

func newHosts(n *Node) *hosts {
	return &hosts{n: n, kick: make(chan struct{}, 1), started: make(map[string]bool), running: make(map[string]*hosted)}
}

func (h *hosts) wake() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// run starts and stops replicas as the control state says, until ctx ends.
func (h *hosts) run(ctx context.Context) error {
	g, run := errgroup.WithContext(ctx)
	g.Go(func() error {
		for {
			h.follow(run, g)
			select {
			case <-h.kick:
			case <-run.Done():
				return run.Err()
			}
		}
	})
	return g.Wait()
}

// follow brings what runs here in line with the control state.
func (h *hosts) follow(ctx context.Context, g *errgroup.Group) {
	s := h.n.control.State()
	wanted := make(map[string]bool)
	for _, grp := range s.Groups {
		for _, r := range grp.Replicas {
			if r.Node != h.n.self.name || r.Incarnation != h.n.self.incarnation || r.Role == control.Missing {
				continue
			}
			id := grp.ReplicaID(r)
			wanted[id] = true
			if h.started[id] || ctx.Err() != nil {
				continue
			}
			h.started[id] = true
			if err := h.start(ctx, g, s, grp, r); err != nil {
				h.n.fail(fmt.Errorf("start replica %s: %w", id, err))
				return
			}
		}
	}
	for id := range h.survivors(s) {
		wanted[id] = true
	}
	for _, x := range h.all() {
		if !wanted[x.id] {
			h.n.log.Info("replica is no longer wanted here", "replica", x.id)
			x.stop()
		}
	}
	h.n.refreshView()
}

// survivors are the ids of replicas here of epochs that were given up, from which
// a new epoch may still salvage. They lead nothing any more: they run on to be read.
func (h *hosts) survivors(s *control.State) map[string]bool {
	ids := make(map[string]bool)
	for _, g := range s.Groups {
		for _, v := range g.Survivors {
			if v.Node == h.n.self.name && v.Incarnation == h.n.self.incarnation {
				ids[control.Group{ID: g.ID, Epoch: v.Epoch}.ReplicaID(v.Replica)] = true
			}
		}
	}
	return ids
}

func (h *hosts) start(ctx context.Context, g *errgroup.Group, s *control.State, grp control.Group, r control.Replica) error {
	id := grp.ReplicaID(r)
	n := h.n
	tr := n.peers.Raft(id)
	parsed, _ := control.ParseReplicaID(id)
	run, stop := context.WithCancel(ctx)
	x := &hosted{id: id, parsed: parsed, raft: tr, stop: stop}
	cfg := group.Config{
		ID: id, Slots: s.Slots, Transport: tr,
		Logger:     n.log.With("group", grp.ID),
		Owner:      func() string { return n.ownerReplica(grp.ID, grp.Epoch) },
		LinkUp:     n.replicaLink,
		Applied:    n.replicaApplied,
		MaxBuckets: n.bucketCap(len(s.Groups)),
		MaxPerHome: n.cfg.MaxPerTenant,
		OnLead:     func(uint64, bool) { n.wake() },
		Broken:     x.breaks,
		Fatal:      n.fail,
		Now:        n.cfg.Seams.Now, Applying: n.cfg.Seams.applying(grp.ID),
		LogBytes: n.cfg.Seams.LogBytes, Metrics: n.cfg.Seams.Counts,
	}
	if !grp.Formed && r.Role == control.Voter {
		for _, v := range grp.Replicas {
			cfg.Bootstrap = append(cfg.Bootstrap, grp.ReplicaID(v))
		}
	}
	replica, err := group.Open(cfg)
	if err != nil {
		stop()
		return err
	}
	x.replica = replica
	h.mu.Lock()
	h.running[id], h.sorted = x, nil
	h.mu.Unlock()
	n.log.Info("replica starts", "replica", id, "role", r.Role, "forming", cfg.Bootstrap != nil)
	g.Go(func() error {
		defer stop()
		err := replica.Run(run)
		h.mu.Lock()
		delete(h.running, id)
		h.sorted = nil
		h.mu.Unlock()
		n.wake()
		if err != nil && run.Err() != nil {
			n.log.Warn("replica did not end well", "replica", id, "error", err)
			return nil
		}
		return err
	})
	g.Go(func() error {
		n.lead(run, x)
		return nil
	})
	return nil
}

// all returns the replicas that run here, by id. The slice is everybody's: nobody
// changes it.
func (h *hosts) all() []*hosted {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sorted == nil {
		h.sorted = slices.SortedFunc(maps.Values(h.running), func(a, b *hosted) int { return strings.Compare(a.id, b.id) })
	}
	return h.sorted
}

// breaks notes that the replica can do no good any more. It never blocks.
func (x *hosted) breaks(why error) { x.broken.CompareAndSwap(nil, &why) }

// replaceBroken asks for a fresh replica in place of one that can do no good. It
// is asked again until the control state no longer lists that one.
func (n *Node) replaceBroken(ctx context.Context, x *hosted, why error) {
	if !x.replacing {
		n.log.Error("replica is broken and asks to be replaced", "replica", x.id, "because", why)
		x.replacing = true
	}
	if g, ok := n.control.State().Group(x.parsed.Group); !ok || g.Epoch != x.parsed.Epoch || !g.Replaceable(x.parsed.Serial) {
		return
	}
	err := n.propose(ctx, control.Replace{
		Group: x.parsed.Group, Epoch: x.parsed.Epoch, OldSerial: x.parsed.Serial, Node: n.self.name,
	})
	if err != nil && !errors.Is(err, fault.Conflict) {
		n.log.Info("cannot replace the broken replica yet", "replica", x.id, "error", err)
	}
}

// bucketCap is this node's share of buckets for one replica.
func (n *Node) bucketCap(groups int) int {
	if n.cfg.MaxBuckets == 0 || groups == 0 {
		return 0
	}
	return max(1, n.cfg.MaxBuckets/min(groups, 3))
}
