package cluster

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/internal/slotfile"
	"github.com/ringlimit/ringlimit/policy"
)

// A node with a data directory writes every --checkpoint-interval what a new epoch
// would salvage from the groups whose replicas it hosts: the buckets of policies
// with on_state_loss: salvage. Every replica's node does, each for itself and at its
// own time, so that a checkpoint survives any one disk, and each file is whole by
// itself: one per group and epoch, written aside, synced and renamed.
//
// The table is held up only while a frozen view of it begins; a copy is made from
// that, and read. Slots that have not changed are taken from the last file.
const (
	checkpointDir  = "checkpoints"
	checkpointTick = time.Second
	// idleCheckpoints is after how many intervals one is written though no bucket has
	// changed, because time has passed in it.
	idleCheckpoints = 10
	// strayFor is how many intervals a file stays whose replica is not here any more.
	strayFor = 3
)

// checkpoints writes this node's checkpoints. Its fields but those of mu are used by
// checkpointLoop only.
type checkpoints struct {
	n     *Node
	due   map[string]time.Time // by replica
	last  map[string]*written  // by replica
	stray map[string]time.Time // files without a replica here, since when

	mu       sync.Mutex // guards what follows, which metrics read
	done     map[uint32]time.Time
	bytes    map[uint32]int64
	failures int
}

// written is what the last checkpoint of a replica was made of.
type written struct {
	look     group.Look
	policies *policy.Set
	at       time.Time // when it was found to be so
	made     time.Time // when it was written
}

func newCheckpoints(n *Node) *checkpoints {
	return &checkpoints{
		n: n, due: make(map[string]time.Time), last: make(map[string]*written), stray: make(map[string]time.Time),
		done: make(map[uint32]time.Time), bytes: make(map[uint32]int64),
	}
}

// salvages says whether any policy wants to be salvaged.
func salvages(s *policy.Set) bool {
	return s != nil && slices.ContainsFunc(s.Policies, func(p *policy.Policy) bool { return p.OnStateLoss == policy.Salvage })
}

// checkpointPath is the file of a group's epoch.
func (n *Node) checkpointPath(group, epoch uint32) string {
	return filepath.Join(n.dir.Path(), checkpointDir, fmt.Sprintf("g%de%d.rlslots", group, epoch))
}

// checkpointLoop writes checkpoints until ctx ends, one at a time.
func (n *Node) checkpointLoop(ctx context.Context) error {
	c := n.checkpoints
	tick := time.NewTicker(checkpointTick)
	defer tick.Stop()
	defer n.shelf.close()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		n.shelf.tidy()
		if err := n.checkRestored(); err != nil {
			return err
		}
		if n.dir == nil || n.cfg.CheckpointInterval <= 0 || n.control.State().ClusterID == "" {
			continue
		}
		for _, x := range n.hosts.all() {
			if ctx.Err() == nil && c.isDue(x) {
				c.attempt(x)
			}
		}
		c.clean()
	}
}

// isDue says whether it is time for a checkpoint of a replica, the first one at a
// moment that differs from node to node and group to group.
func (c *checkpoints) isDue(x *hosted) bool {
	every, now := c.n.cfg.CheckpointInterval, time.Now()
	at, known := c.due[x.id]
	if !known {
		h := fnv.New32a()
		_, _ = fmt.Fprintf(h, "%s/%d", c.n.self.name, x.parsed.Group)
		at = now.Add(time.Duration(uint64(every) * uint64(h.Sum32()%1024) / 1024))
		c.due[x.id] = at
	}
	if now.Before(at) {
		return false
	}
	// By the time when this one begins: it is as of then.
	c.due[x.id] = now.Add(every - checkpointTick/2)
	return true
}

// attempt makes a checkpoint of a replica, if there is something to keep.
func (c *checkpoints) attempt(x *hosted) {
	s := c.n.control.State()
	g, ok := s.Group(x.parsed.Group)
	if !ok || g.Epoch != x.parsed.Epoch || !member(g, x.parsed.Serial) || !g.Formed || !salvages(s.Policies) {
		return
	}
	err := c.checkpoint(s, g, x)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failures++
		c.n.log.Error("cannot write a checkpoint; what it would keep could not be salvaged", "group", g.ID, "error", err)
	}
}

// checkpoint writes one, unless the last one says the same.
func (c *checkpoints) checkpoint(s *control.State, g control.Group, x *hosted) error {
	look, begun := x.replica.Look(), time.Now()
	last := c.last[x.id]
	stale := func(slot int) bool {
		return last == nil || last.policies != s.Policies || !look.Same(&last.look, slot)
	}
	changed := false
	for slot, info := range look.Slots {
		changed = changed || stale(slot) && (has(info) || last != nil)
	}
	if look.Index == 0 {
		return nil // nothing has reached this replica yet
	}
	if !changed && last != nil && begun.Sub(last.made) < idleCheckpoints*c.n.cfg.CheckpointInterval {
		last.at = begun
		c.note(g.ID, begun, -1)
		return nil
	}
	path := c.n.checkpointPath(g.ID, g.Epoch)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	before, behind := c.before(path, s, &look)
	if behind {
		return nil // this replica has yet to catch up with what an earlier one wrote
	}
	w := checkpointWriter{last: before, each: runtime.Gosched, stale: stale, look: &look}
	if before != nil {
		defer before.close()
	}
	if changed || before == nil {
		copied, err := x.replica.Copy(false)
		if err != nil {
			return err
		}
		w.copy, look = copied, copied.Look
	}
	size, err := commitCheckpoint(path, fileHead{
		Cluster: s.ClusterID, Slots: s.Slots, Version: c.n.cfg.Version, Group: g.ID, Epoch: g.Epoch, Index: look.Index, Term: look.Term,
	}, w)
	if err != nil {
		delete(c.last, x.id) // what it was made of may be what is wrong
		return err
	}
	c.last[x.id] = &written{look: look, policies: s.Policies, at: begun, made: begun}
	c.note(g.ID, begun, size)
	return nil
}

// before opens the checkpoint that is to be replaced. behind says that it is further
// than the replica. One that cannot be used counts as none.
func (c *checkpoints) before(path string, s *control.State, look *group.Look) (f *slotsFile, behind bool) {
	f, err := openSlots(path, checkpointFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil:
		c.n.log.Warn("a checkpoint is not usable and will be replaced", "error", err)
		return nil, false
	case f.head.Cluster != s.ClusterID || f.head.Slots != s.Slots:
		c.n.log.Warn("a checkpoint of another cluster will be replaced", "file", path, "cluster", f.head.Cluster)
		f.close()
		return nil, false
	case f.head.Term > look.Term || f.head.Term == look.Term && f.head.Index > look.Index:
		f.close()
		return nil, true
	}
	return f, false
}

func (c *checkpoints) note(group uint32, at time.Time, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[group] = at
	if size >= 0 {
		c.bytes[group] = size
	}
}

// clean forgets replicas that are gone, and removes files that nobody will ask for:
// of epochs whose slots are all in a later one, and of groups that are not here.
func (c *checkpoints) clean() {
	s := c.n.control.State()
	here, groups := make(map[string]bool), make(map[uint32]bool)
	for _, x := range c.n.hosts.all() {
		here[x.id], groups[x.parsed.Group] = true, true
	}
	c.mu.Lock()
	for group := range c.done {
		if !groups[group] {
			delete(c.done, group)
			delete(c.bytes, group)
		}
	}
	c.mu.Unlock()
	for id := range c.due {
		if !here[id] {
			delete(c.due, id)
			delete(c.last, id)
		}
	}
	files, _ := filepath.Glob(filepath.Join(c.n.dir.Path(), checkpointDir, "g*e*.rlslots"))
	for _, path := range files {
		if c.wanted(s, path) {
			delete(c.stray, path)
			continue
		}
		since, known := c.stray[path]
		if !known {
			c.stray[path] = time.Now()
		} else if time.Since(since) > strayFor*c.n.cfg.CheckpointInterval {
			c.n.log.Info("a checkpoint is removed: its slots are kept elsewhere", "file", path)
			_ = os.Remove(path)
			delete(c.stray, path)
		}
	}
	for path := range c.stray {
		if !slices.Contains(files, path) {
			delete(c.stray, path)
		}
	}
}

// wanted says whether a file is that of a replica here, or may be needed by a new
// epoch that has not begun to hold all its slots.
func (c *checkpoints) wanted(s *control.State, path string) bool {
	var group, epoch uint32
	if _, err := fmt.Sscanf(strings.TrimSuffix(filepath.Base(path), ".rlslots"), "g%de%d", &group, &epoch); err != nil {
		return true // not ours to judge
	}
	if !s.Placed() || slices.ContainsFunc(s.Groups, func(g control.Group) bool { return len(g.Births) > 0 || !g.Formed }) {
		return true
	}
	g, ok := s.Group(group)
	return ok && g.Epoch == epoch && slices.ContainsFunc(g.Replicas, func(r control.Replica) bool { return r.Node == c.n.self.name })
}

// dropAsides removes what a crash has left half written.
func (n *Node) dropAsides() {
	left, _ := filepath.Glob(filepath.Join(n.dir.Path(), checkpointDir, "*"+slotfile.AsideSuffix))
	for _, path := range left {
		_ = os.Remove(path)
	}
}
