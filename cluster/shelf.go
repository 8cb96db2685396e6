package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/control"
)

// shelf holds what others read slots from: copies of replicas, and files.
type shelf struct {
	n  *Node
	mu sync.Mutex // guards at
	at map[string]*shelved
}

// shelved is one source that is being read.
type shelved struct {
	mu       sync.Mutex // guards what follows; held while a copy is made or a chunk read
	away     bool       // not on the shelf any more
	used     time.Time
	copy     *group.Copy
	file     *slotsFile // nil: the copy is a replica's
	readings map[uint16]*shelfReading
}

type shelfReading struct {
	reading  *group.Reading
	slotTime int64
	pass     uint64
	next     uint32
}

// shelfTime is how long a source stays ready that nobody reads.
const shelfTime = 30 * time.Second

func newShelf(n *Node) *shelf { return &shelf{n: n, at: make(map[string]*shelved)} }

// tidy puts away what was not read for a while.
func (h *shelf) tidy() { h.drop(func(s *shelved) bool { return time.Since(s.used) > shelfTime }) }

// close puts all away.
func (h *shelf) close() { h.drop(func(*shelved) bool { return true }) }

func (h *shelf) drop(which func(*shelved) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, s := range h.at {
		if !s.mu.TryLock() {
			continue // it is being read
		}
		if which(s) {
			if s.file != nil && s.file != h.n.backup {
				s.file.close()
			}
			s.file, s.copy, s.away = nil, nil, true
			delete(h.at, key)
		}
		s.mu.Unlock()
	}
}

// get returns a source, locked.
func (h *shelf) get(ctx context.Context, c *readCall) (*shelved, error) {
	s := h.source(c.Kind + " " + c.Name + " " + c.Reader)
	if s.copy == nil {
		if err := h.open(ctx, s, c); err != nil {
			s.mu.Unlock()
			return nil, err
		}
	}
	s.used = time.Now()
	return s, nil
}

// source returns what is on the shelf under a key, locked; something new, if need be.
func (h *shelf) source(key string) *shelved {
	for {
		h.mu.Lock()
		s := h.at[key]
		if s == nil {
			s = &shelved{readings: make(map[uint16]*shelfReading), used: time.Now()}
			h.at[key] = s
		}
		h.mu.Unlock()
		if s.mu.Lock(); !s.away {
			return s
		}
		s.mu.Unlock() // it was put away just now
	}
}

// open makes a source ready to be read.
func (h *shelf) open(ctx context.Context, s *shelved, c *readCall) (err error) {
	n := h.n
	switch c.Kind {
	case fromReplica:
		x := n.hosts.find(c.Name)
		if x == nil {
			return fault.New(fault.NotFound, "no replica %s runs here", c.Name)
		}
		if c.Whole && !x.replica.Serving() {
			return fault.New(fault.NotLeader, "replica %s does not serve", c.Name)
		}
		if c.Whole {
			// What was answered before is in the copy then, and this leader is one.
			if err = x.replica.Stamp(ctx); err != nil {
				return err
			}
		}
		s.copy, err = x.replica.Copy(!c.Whole)
	case fromCheckpoint:
		if n.dir == nil || c.Name != filepath.Base(c.Name) {
			return fault.New(fault.NotFound, "there is no checkpoint %q", c.Name)
		}
		s.file, err = openSlots(filepath.Join(n.dir.Path(), checkpointDir, c.Name), checkpointFile)
	case fromBackup:
		if n.backup == nil || n.backup.head.ID != c.Name {
			return fault.New(fault.NotFound, "this node does not have backup %s", c.Name)
		}
		s.file = n.backup
	default:
		return fault.New(fault.InvalidArgument, "a source of kind %q is not known here", c.Kind)
	}
	if err != nil {
		return fault.New(fault.Unavailable, "%v", err)
	}
	if s.file != nil {
		s.copy = group.NewCopy(s.file.head.Slots)
	}
	return nil
}

// read reads the next chunk of a slot.
func (s *shelved) read(c *readCall) (a readAnswer, err error) {
	r := s.readings[c.Slot]
	if c.Number == 0 {
		if r, err = s.begin(c); err != nil {
			return a, err
		}
	}
	if r == nil || r.next != c.Number || r.pass != c.Pass {
		return a, fault.New(fault.Conflict, "chunk %d of slot %d does not follow what was read before", c.Number, c.Slot)
	}
	chunk, last, err := r.reading.Next(chunkBytes)
	if err != nil {
		return a, err
	}
	r.next++
	a = readAnswer{slotTime: r.slotTime, last: last, chunk: chunk}
	if last {
		a.chunk = append([]byte(nil), chunk...)
		s.end(c.Slot)
	}
	return a, nil
}

// begin begins to read a slot, also anew.
func (s *shelved) begin(c *readCall) (*shelfReading, error) {
	s.end(c.Slot)
	if s.file != nil {
		x, ok := s.file.at[c.Slot]
		if !ok {
			return nil, fault.New(fault.NotFound, "%s has no slot %d", c.Name, c.Slot)
		}
		chunks, err := s.file.chunks(x)
		if err == nil {
			err = s.copy.Load(c.Slot, x.Time, chunks)
		}
		if err != nil {
			return nil, fault.New(fault.Unavailable, "%s: %v", c.Name, err)
		}
	}
	info := s.copy.Slot(c.Slot)
	if !has(info) {
		return nil, fault.New(fault.NotFound, "%s has no slot %d: it is %s", c.Name, c.Slot, info.State)
	}
	r := &shelfReading{slotTime: info.Time, pass: c.Pass}
	if !c.Whole {
		r.reading = s.copy.Salvage(c.Slot, c.Pass)
	} else {
		var err error
		if r.reading, err = s.copy.Whole(c.Slot, c.Pass); err != nil {
			return nil, fault.New(fault.Internal, "%v", err)
		}
	}
	s.readings[c.Slot] = r
	return r, nil
}

// end ends the reading of a slot, and makes its place in the copy free if it came
// from a file.
func (s *shelved) end(slot uint16) {
	r := s.readings[slot]
	if r == nil {
		return
	}
	r.reading.Close()
	delete(s.readings, slot)
	if s.file != nil {
		s.copy.Drop(slot)
	}
}

// handleRead reads a chunk for another node.
func (n *Node) handleRead(ctx context.Context, body []byte) ([]byte, error) {
	c, err := parseCall(body, func(c *readCall) int { return c.Version })
	if err != nil {
		return nil, err
	}
	s, err := n.shelf.get(ctx, c)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	a, err := s.read(c)
	if err != nil {
		return nil, err
	}
	return a.encode(), nil
}

// handleOffers tells what this node has of the slots that a new epoch lacks.
func (n *Node) handleOffers(_ context.Context, body []byte) ([]byte, error) {
	c, err := parseCall(body, func(c *offerCall) int { return c.Version })
	if err != nil {
		return nil, err
	}
	s := n.control.State()
	g, ok := s.Group(c.Group)
	if !ok || g.Epoch < c.Epoch {
		return nil, fault.New(fault.NotReady, "group %d is not known here in epoch %d", c.Group, c.Epoch)
	}
	return encodeCall(slices.Concat(n.replicaOffers(g), n.checkpointOffers(s, g), n.backupOffers(s, g))), nil
}

// replicaOffers are replicas here of epochs of a group that were given up.
func (n *Node) replicaOffers(g control.Group) (all []offer) {
	for _, x := range n.hosts.all() {
		if x.parsed.Group != g.ID || x.parsed.Epoch >= g.Epoch {
			continue
		}
		st, look := x.replica.Status(), x.replica.Look()
		o := offer{Kind: fromReplica, Name: x.id, Group: g.ID}
		for _, slot := range g.Births {
			if info := look.Slots[slot]; has(info) {
				o.Slots = append(o.Slots, offeredSlot{slot, info.Revision, st.LastTerm, st.LastIndex})
			}
		}
		all = append(all, o)
	}
	return all
}

// checkpointOffers are files of this node, of whatever group had the slots then.
func (n *Node) checkpointOffers(s *control.State, g control.Group) (all []offer) {
	if n.dir == nil {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(n.dir.Path(), checkpointDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.log.Error("checkpoints cannot be read", "error", err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".rlslots") {
			continue
		}
		f, err := openSlots(filepath.Join(n.dir.Path(), checkpointDir, entry.Name()), checkpointFile)
		if err != nil {
			n.log.Warn("a checkpoint is ignored", "error", err)
			continue
		}
		if o, ok := n.checkpointOffer(s, g, f, entry.Name()); ok {
			all = append(all, o)
		}
		f.close()
	}
	return all
}

func (n *Node) checkpointOffer(s *control.State, g control.Group, f *slotsFile, name string) (o offer, ok bool) {
	if f.head.Cluster != s.ClusterID || f.head.Slots != s.Slots {
		n.log.Warn("a checkpoint of another cluster is ignored", "file", name, "cluster", f.head.Cluster)
		return o, false
	}
	if f.head.Group == g.ID && f.head.Epoch >= g.Epoch {
		return o, false // of the very epoch that is being filled
	}
	o = offer{Kind: fromCheckpoint, Name: name, Group: f.head.Group}
	for slot, x := range f.at {
		if _, wanted := slices.BinarySearch(g.Births, slot); wanted {
			o.Slots = append(o.Slots, offeredSlot{slot, x.Revision, x.Term, x.Index})
		}
	}
	return o, len(o.Slots) > 0
}

// find is a replica that runs here, nil if there is none of that id.
func (h *hosts) find(id string) *hosted {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running[id]
}
