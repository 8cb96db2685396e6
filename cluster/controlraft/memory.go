package controlraft

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"
)

// memSnapshots keeps the newest snapshot in memory. Unlike raft's own in-memory
// store it publishes a snapshot only when it is closed: a transfer that breaks
// off never replaces a good snapshot.
type memSnapshots struct {
	mu     sync.Mutex // guards newest
	newest *memSnapshot
}

type memSnapshot struct {
	meta raft.SnapshotMeta
	data []byte
}

func (s *memSnapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, cIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if v != 1 {
		return nil, fmt.Errorf("snapshot version %d: want 1", v)
	}
	return &memSink{store: s, snap: memSnapshot{meta: raft.SnapshotMeta{
		Version: v, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term,
		Configuration: c, ConfigurationIndex: cIndex,
	}}}, nil
}

func (s *memSnapshots) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil {
		return nil, nil
	}
	meta := s.newest.meta
	return []*raft.SnapshotMeta{&meta}, nil
}

func (s *memSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil || s.newest.meta.ID != id {
		return nil, nil, fmt.Errorf("snapshot %s is gone", id)
	}
	meta := s.newest.meta
	return &meta, io.NopCloser(bytes.NewReader(s.newest.data)), nil
}

// memSink gathers one snapshot; raft writes it from one goroutine.
type memSink struct {
	store *memSnapshots
	snap  memSnapshot
	done  bool
}

func (k *memSink) ID() string { return k.snap.meta.ID }

func (k *memSink) Write(p []byte) (int, error) {
	k.snap.data = append(k.snap.data, p...)
	return len(p), nil
}

func (k *memSink) Close() error {
	if k.done {
		return nil
	}
	k.done = true
	k.snap.meta.Size = int64(len(k.snap.data))
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	k.store.newest = &k.snap
	return nil
}

func (k *memSink) Cancel() error {
	k.done = true
	return nil
}
