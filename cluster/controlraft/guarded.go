package controlraft

import "github.com/hashicorp/raft"

// guarded is a log store in whose writes a test may get in between: a disk that is
// full, or hangs.
type guarded struct {
	raft.LogStore
	before func() error
}

func (g guarded) StoreLog(l *raft.Log) error { return g.StoreLogs([]*raft.Log{l}) }

func (g guarded) StoreLogs(logs []*raft.Log) error {
	if err := g.before(); err != nil {
		return err
	}
	return g.LogStore.StoreLogs(logs)
}
