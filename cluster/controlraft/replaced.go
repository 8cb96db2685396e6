package controlraft

import (
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// replaced is a log store whose suffix is replaced by the entries that come in its place
// or not at all. A follower deletes what its new leader does not have, and stores what it
// has, in two calls. In raft 1.8.0 one that could do the first and not the second, with a
// full disk, goes on counting with entries that are gone, and takes nothing more from its
// leader until it is started anew. So what is deleted at the end stays until there is
// something to store.
//
// Nobody reads the log between the two calls, which the main loop of raft makes one after
// the other. What a compaction deletes never reaches the end: entries trail it.
type replaced struct {
	raft.LogStore

	fatal func(error) // what raft takes for the configuration is not that of the log any more

	mu         sync.Mutex // guards what follows
	last       uint64     // of the suffix to be replaced; 0: there is none
	configures bool       // there is a configuration in it, which raft has forgotten already
}

// replacer is a store that can replace its suffix in one transaction.
type replacer interface {
	Replace(logs []*raft.Log) error
}

// DeleteRange deletes the entries first … last. At the end of the log it waits for the
// next StoreLogs.
func (s *replaced) DeleteRange(first, last uint64) error {
	end, err := s.LastIndex()
	if err != nil {
		return err
	}
	if last < end {
		return s.LogStore.DeleteRange(first, last)
	}
	configures := false
	for i := first; i <= end; i++ {
		var l raft.Log
		if err := s.GetLog(i, &l); err != nil {
			return err
		}
		configures = configures || l.Type == raft.LogConfiguration
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.configures = end, configures
	return nil
}

func (s *replaced) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs writes entries, over the suffix that was to be deleted if there is one. If raft
// goes on behind it, since it could not be replaced and this node leads now, it stays; but
// not if raft counts by another configuration than that in it: then nothing is stored, and
// the process is to end.
func (s *replaced) StoreLogs(logs []*raft.Log) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == 0 || len(logs) == 0 {
		return s.LogStore.StoreLogs(logs)
	}
	if logs[0].Index > s.last {
		if s.configures {
			err := fmt.Errorf("control log: entries up to %d were to be replaced and could not be, a configuration among them", s.last)
			s.fatal(err)
			return err
		}
		s.last = 0
		return s.LogStore.StoreLogs(logs)
	}
	if err := s.replace(logs); err != nil {
		return err
	}
	s.last = 0
	return nil
}

func (s *replaced) replace(logs []*raft.Log) error {
	if r, ok := s.LogStore.(replacer); ok {
		return r.Replace(logs)
	}
	if err := s.LogStore.StoreLogs(logs); err != nil { // in memory: nothing is left half done by a crash
		return err
	}
	end := logs[len(logs)-1].Index
	if s.last <= end {
		return nil
	}
	return s.LogStore.DeleteRange(end+1, s.last)
}
