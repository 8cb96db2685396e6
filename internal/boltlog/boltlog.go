// Package boltlog keeps raft's log and stable values in one bbolt file. It
// behaves as raft-boltdb does, which does not build with this project's other
// modules. Every write is synced to disk before it returns.
package boltlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// ErrKeyNotFound is what Get and GetUint64 return for a key that was never set.
// Raft compares its text.
var ErrKeyNotFound = errors.New("not found")

// lockTimeout is how long Open waits for another process to let go of the file.
const lockTimeout = time.Second

// The two buckets of the file: index → entry, and key → value.
var (
	logBucket    = []byte("logs")
	stableBucket = []byte("conf")
)

// Store is a raft.LogStore and raft.StableStore. Its methods may be called from
// any goroutine; those of a closed one return an error.
type Store struct {
	db *bbolt.DB
}

var (
	_ raft.LogStore    = (*Store)(nil)
	_ raft.StableStore = (*Store)(nil)
)

// Open opens a file, or makes it. Its directory must exist. Close it when raft
// has ended. A file that another process holds for longer than a second, or
// that is no such file, is an error.
func Open(path string) (s *Store, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // bbolt reads past the end of a map of one that was cut off
	defer func() {
		if p := recover(); p != nil { // bbolt panics on some damaged files
			s, err = nil, fmt.Errorf("open the raft log %s: damaged: %v", path, p)
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("open the raft log %s: another process is using it; stop that process or name another data directory", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open the raft log %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{logBucket, stableBucket} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("prepare the raft log %s: %w", path, err)
	}
	if err := check(db); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("read the raft log %s: %w", path, err)
	}
	return &Store{db}, nil
}

// check reads the whole log, so that damage shows at the start and not as a
// panic or a wrong answer later.
func check(db *bbolt.DB) error {
	return db.View(func(tx *bbolt.Tx) error {
		var log raft.Log
		return tx.Bucket(logBucket).ForEach(func(key, value []byte) error {
			if len(key) != 8 {
				return fmt.Errorf("a key of %d bytes, want 8", len(key))
			}
			if err := decode(value, &log); err != nil {
				return fmt.Errorf("entry %d: %w", binary.BigEndian.Uint64(key), err)
			}
			return nil
		})
	})
}

// Close syncs and closes the file. A second call does nothing.
func (s *Store) Close() error { return s.db.Close() }

// FirstIndex returns the index of the oldest entry, 0 without any.
func (s *Store) FirstIndex() (uint64, error) {
	return s.edge((*bbolt.Cursor).First)
}

// LastIndex returns the index of the newest entry, 0 without any.
func (s *Store) LastIndex() (uint64, error) {
	return s.edge((*bbolt.Cursor).Last)
}

func (s *Store) edge(end func(*bbolt.Cursor) (key, value []byte)) (index uint64, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		if key, _ := end(tx.Bucket(logBucket).Cursor()); key != nil {
			index = binary.BigEndian.Uint64(key)
		}
		return nil
	})
	return index, err
}

// GetLog reads one entry into log, raft.ErrLogNotFound if there is none.
func (s *Store) GetLog(index uint64, log *raft.Log) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(logBucket).Get(keyOf(index))
		if value == nil {
			return raft.ErrLogNotFound
		}
		if err := decode(value, log); err != nil {
			return fmt.Errorf("raft log entry %d: %w", index, err)
		}
		return nil
	})
}

// StoreLog is StoreLogs for one entry.
func (s *Store) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs writes entries, all or none, over those of the same indexes.
func (s *Store) StoreLogs(logs []*raft.Log) error {
	return s.db.Update(func(tx *bbolt.Tx) error { return put(tx, logs) })
}

// Replace is StoreLogs that makes the last of logs the newest entry of all: what came
// after it goes in the same transaction.
func (s *Store) Replace(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		if err := put(tx, logs); err != nil {
			return err
		}
		return cut(tx, logs[len(logs)-1].Index+1, math.MaxUint64)
	})
}

// DeleteRange deletes the entries first … last, both included.
func (s *Store) DeleteRange(first, last uint64) error {
	return s.db.Update(func(tx *bbolt.Tx) error { return cut(tx, first, last) })
}

func put(tx *bbolt.Tx, logs []*raft.Log) error {
	b := tx.Bucket(logBucket)
	for _, log := range logs {
		if err := b.Put(keyOf(log.Index), encode(log)); err != nil {
			return err
		}
	}
	return nil
}

// cut seeks anew after each deletion: where the transaction has written before, Next
// would pass over the entry behind it.
func cut(tx *bbolt.Tx, first, last uint64) error {
	c := tx.Bucket(logBucket).Cursor()
	for key, _ := c.Seek(keyOf(first)); key != nil; key, _ = c.Seek(keyOf(first)) {
		index := binary.BigEndian.Uint64(key)
		if index > last {
			break
		}
		if err := c.Delete(); err != nil {
			return err
		}
		first = index + 1
	}
	return nil
}

// Set writes a value.
func (s *Store) Set(key, value []byte) error {
	return s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(stableBucket).Put(key, value) })
}

// Get reads a value, ErrKeyNotFound if it was never set.
func (s *Store) Get(key []byte) (value []byte, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		v := tx.Bucket(stableBucket).Get(key)
		if v == nil {
			return ErrKeyNotFound
		}
		value = append([]byte{}, v...) // v lives as long as the transaction
		return nil
	})
	return value, err
}

// SetUint64 writes a number.
func (s *Store) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 reads a number, ErrKeyNotFound if it was never set.
func (s *Store) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("stable value %q has %d bytes, want 8", key, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// keyOf orders entries by index.
func keyOf(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }
