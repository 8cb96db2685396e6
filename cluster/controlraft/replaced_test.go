package controlraft

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/internal/boltlog"
)

// TestSuffixIsReplacedOrStays: a follower whose disk is full after it has deleted what its
// leader does not have must be able to go on from there.
func TestSuffixIsReplacedOrStays(t *testing.T) {
	bolt, err := boltlog.Open(filepath.Join(t.TempDir(), "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer bolt.Close()
	for name, inner := range map[string]raft.LogStore{"on disk": bolt, "in memory": raft.NewInmemStore()} {
		t.Run(name, func(t *testing.T) {
			full := false
			ends := 0
			s := guarded{&replaced{LogStore: inner, fatal: func(error) { ends++ }}, func() error {
				if full {
					return errors.New("no space left on device")
				}
				return nil
			}}
			entries := func(term, first, last uint64) (logs []*raft.Log) {
				for i := first; i <= last; i++ {
					logs = append(logs, &raft.Log{Index: i, Term: term})
				}
				return logs
			}
			want := func(last uint64, terms ...uint64) {
				t.Helper()
				if at, err := s.LastIndex(); at != last || err != nil {
					t.Errorf("the log ends at %d (%v), want %d", at, err, last)
				}
				for i, term := range terms {
					var l raft.Log
					if err := s.GetLog(uint64(i+1), &l); err != nil || l.Term != term {
						t.Errorf("entry %d is of term %d (%v), want %d", i+1, l.Term, err, term)
					}
				}
			}
			if err := s.StoreLogs(entries(1, 1, 5)); err != nil {
				t.Fatal(err)
			}
			full = true
			if err := errors.Join(s.DeleteRange(3, 5), s.StoreLogs(entries(2, 3, 3))); err == nil {
				t.Fatal("a full disk has stored entries")
			}
			want(5, 1, 1, 1, 1, 1)
			full = false
			if err := errors.Join(s.DeleteRange(3, 5), s.StoreLogs(entries(2, 3, 3))); err != nil {
				t.Fatal(err)
			}
			want(3, 1, 1, 2)
			if err := errors.Join(s.StoreLogs(entries(2, 4, 6)), s.DeleteRange(1, 2)); err != nil { // a compaction
				t.Fatal(err)
			}
			want(6)
			// Then it leads before anybody replaces them.
			full = true
			if err := errors.Join(s.DeleteRange(6, 6), s.StoreLogs(entries(3, 6, 6))); err == nil {
				t.Fatal("a full disk has stored entries")
			}
			full = false
			if err := s.StoreLogs(entries(4, 7, 7)); err != nil || ends > 0 {
				t.Errorf("what could not be replaced: %v, ended %d times", err, ends)
			}
			want(7)
			if err := s.StoreLogs([]*raft.Log{{Index: 8, Term: 4, Type: raft.LogConfiguration}}); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.DeleteRange(8, 8), s.StoreLogs(entries(5, 9, 9))); err == nil || ends != 1 {
				t.Errorf("behind a configuration that raft has forgotten: %v, ended %d times", err, ends)
			}
			if first, err := s.FirstIndex(); first != 3 || err != nil {
				t.Errorf("the log begins at %d (%v), want 3", first, err)
			}
		})
	}
}
