package ringlog

import (
	"errors"
	"slices"
)

// errNotFound has the text that raft compares with.
var errNotFound = errors.New("not found")

// Set stores a value of raft's own: the candidate voted for.
func (s *Store) Set(key, val []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kv[string(key)] = slices.Clone(val)
	return nil
}

// Get returns what Set stored, or an error that reads "not found".
func (s *Store) Get(key []byte) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.kv[string(key)]
	if !ok {
		return nil, errNotFound
	}
	return slices.Clone(v), nil
}

// SetUint64 stores a number of raft's own: a term.
func (s *Store) SetUint64(key []byte, val uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nums[string(key)] = val
	return nil
}

// GetUint64 returns what SetUint64 stored, or an error that reads "not found".
func (s *Store) GetUint64(key []byte) (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.nums[string(key)]
	if !ok {
		return 0, errNotFound
	}
	return v, nil
}
