package group

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/internal/ringlog"
)

const maxDumps = 4 // that may be sent at once

// snapshots is raft's snapshot store without snapshots. A periodic one keeps its
// metadata, which is enough for raft to shorten the log; Open dumps the table as
// it is then, with the index, term and configuration it has then. A received one
// is decoded into a second table while it arrives, and takes the first one's
// place only once it is complete.
type snapshots struct {
	fsm     *fsm
	hold    func(index uint64, d time.Duration) *ringlog.Hold // of the log
	table   func() *bucket.Table                              // an empty one, to receive a snapshot
	metrics *Metrics

	mu      sync.Mutex // guards what follows; held for memory operations only
	meta    *raft.SnapshotMeta
	pending *received // complete, not yet restored
	next    uint64    // number of the next id
	dumps   int       // being sent
	arrived int       // restored since the watchdog asked
}

// Create begins a snapshot: one of our own or one that is being received; which
// of the two shows when it is persisted or written to.
func (s *snapshots) Create(v raft.SnapshotVersion, index, term uint64, conf raft.Configuration,
	confAt uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return &sink{store: s, meta: raft.SnapshotMeta{
		Version: v, ID: fmt.Sprintf("%d-%d-%d", term, index, s.next), Index: index, Term: term,
		Configuration: conf, ConfigurationIndex: confAt,
	}}, nil
}

// List names the newest snapshot, if there is one.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta == nil {
		return nil, nil
	}
	m := *s.meta
	return []*raft.SnapshotMeta{&m}, nil
}

// Open returns a token for a received snapshot that is about to be restored, and
// else a dump of the table as it is now, whatever the id.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	if p := s.pending; p != nil && p.meta.ID == id {
		m := p.meta
		s.mu.Unlock()
		return &m, io.NopCloser(strings.NewReader("")), nil
	}
	if s.dumps >= maxDumps {
		s.mu.Unlock()
		return nil, nil, fmt.Errorf("%d dumps are being sent already", maxDumps)
	}
	s.dumps++
	s.mu.Unlock()
	d, err := s.fsm.dump()
	if err != nil {
		s.dumpEnded()
		return nil, nil, err
	}
	meta := d.meta(id)
	s.metrics.SnapshotsSent.Add(1)
	return &meta, &sent{ReadCloser: d.stream(s.dumpEnded), began: time.Now(), hold: s.hold(d.index, patience), left: meta.Size}, nil
}

func (s *snapshots) dumpEnded() {
	s.mu.Lock()
	s.dumps--
	s.mu.Unlock()
}

var errSuperseded = errors.New("a newer snapshot was received meanwhile")

// keep makes the metadata of one of our own snapshots the newest. Refusing an
// older one keeps raft from setting its last snapshot back (hashicorp/raft issue 248).
func (s *snapshots) keep(m raft.SnapshotMeta) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta != nil && m.Index < s.meta.Index || s.pending != nil {
		return errSuperseded
	}
	s.meta = &m
	return nil
}

// offer makes a complete snapshot the one to be restored.
func (s *snapshots) offer(r *received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = r
}

// take hands out the snapshot to be restored, nil if there is none.
func (s *snapshots) take() *received {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending
	if p == nil {
		return nil
	}
	s.pending = nil
	if s.meta == nil || p.meta.Index >= s.meta.Index {
		m := p.meta
		s.meta = &m
	}
	s.arrived++
	s.metrics.SnapshotsReceived.Add(1)
	return p
}

// arrivals is how many snapshots were restored since it was called last.
func (s *snapshots) arrivals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.arrived
	s.arrived = 0
	return n
}
