package boltlog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

func open(t *testing.T) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "raft.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, path
}

func fill(t *testing.T, s *Store, from, to uint64) {
	t.Helper()
	var logs []*raft.Log
	for i := from; i <= to; i++ {
		logs = append(logs, &raft.Log{Index: i, Term: 1, Data: []byte{byte(i)}})
	}
	if err := s.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
}

func wantRange(t *testing.T, s *Store, first, last uint64) {
	t.Helper()
	f, err1 := s.FirstIndex()
	l, err2 := s.LastIndex()
	if f != first || l != last || err1 != nil || err2 != nil {
		t.Errorf("entries %d … %d (%v, %v), want %d … %d", f, l, err1, err2, first, last)
	}
}

func TestEmptyStore(t *testing.T) {
	s, _ := open(t)
	wantRange(t, s, 0, 0)
	if err := s.GetLog(1, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("GetLog: %v, want %v", err, raft.ErrLogNotFound)
	}
	if err := s.DeleteRange(1, 10); err != nil {
		t.Errorf("DeleteRange: %v", err)
	}
}

// Raft compares this text.
func TestMissingKeysAreNotFound(t *testing.T) {
	s, _ := open(t)
	if _, err := s.Get([]byte("k")); err == nil || err.Error() != "not found" {
		t.Errorf("Get: %v, want not found", err)
	}
	if _, err := s.GetUint64([]byte("k")); err == nil || err.Error() != "not found" {
		t.Errorf("GetUint64: %v, want not found", err)
	}
}

func TestStableValues(t *testing.T) {
	s, _ := open(t)
	key := []byte("CurrentTerm")
	for _, want := range []uint64{0, 7, 1<<64 - 1} {
		if err := s.SetUint64(key, want); err != nil {
			t.Fatal(err)
		}
		if got, err := s.GetUint64(key); got != want || err != nil {
			t.Errorf("GetUint64: %d, %v, want %d", got, err, want)
		}
	}
	if err := s.Set(key, []byte("abc")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(key); string(got) != "abc" || err != nil {
		t.Errorf("Get: %q, %v", got, err)
	}
	if _, err := s.GetUint64(key); err == nil {
		t.Error("GetUint64 of three bytes: no error")
	}
	if err := s.Set(key, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(key); len(got) != 0 || err != nil {
		t.Errorf("Get of an empty value: %q, %v", got, err)
	}
}

func TestEntriesComeBackWhole(t *testing.T) {
	s, path := open(t)
	logs := []*raft.Log{
		{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: []byte("c"), Extensions: []byte("ext"), AppendedAt: time.Unix(1, 2)},
		{Index: 2, Term: 1, Type: raft.LogNoop},
		{Index: 3, Term: 1 << 60, Type: raft.LogCommand, Data: bytes.Repeat([]byte("x"), 100_000)},
	}
	if err := s.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantRange(t, s, 1, 3)
	for _, want := range logs {
		got := raft.Log{Data: []byte("left over"), Extensions: []byte("left over")}
		if err := s.GetLog(want.Index, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(*want, got); d != "" {
			t.Errorf("entry %d: %s", want.Index, d)
		}
	}
}

func TestStoreLogOverwrites(t *testing.T) {
	s, _ := open(t)
	fill(t, s, 1, 3)
	if err := s.StoreLog(&raft.Log{Index: 2, Term: 9}); err != nil {
		t.Fatal(err)
	}
	var got raft.Log
	if err := s.GetLog(2, &got); err != nil || got.Term != 9 {
		t.Errorf("entry 2: term %d, %v, want 9", got.Term, err)
	}
	wantRange(t, s, 1, 3)
}

func TestReplaceLeavesNothingBehind(t *testing.T) {
	s, _ := open(t)
	fill(t, s, 1, 2000) // some pages of them
	if err := s.Replace([]*raft.Log{{Index: 3, Term: 9}, {Index: 4, Term: 9}}); err != nil {
		t.Fatal(err)
	}
	wantRange(t, s, 1, 4)
	for i, term := range []uint64{1, 1, 9, 9} {
		var got raft.Log
		if err := s.GetLog(uint64(i+1), &got); err != nil || got.Term != term {
			t.Errorf("entry %d: term %d, %v, want %d", i+1, got.Term, err, term)
		}
	}
	for i := uint64(5); i <= 2000; i++ {
		if err := s.GetLog(i, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
			t.Fatalf("entry %d is still there: %v", i, err)
		}
	}
}

func TestDeleteRangeIsInclusiveAndComplete(t *testing.T) {
	const n = 5000 // many pages
	for name, c := range map[string]struct{ min, max, first, last uint64 }{
		"head":    {1, 10, 11, n},
		"tail":    {11, n, 1, 10},
		"one":     {1, 1, 2, n},
		"all":     {0, n + 5, 0, 0},
		"nothing": {n + 1, n + 9, 1, n},
		"inverse": {10, 9, 1, n},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := open(t)
			fill(t, s, 1, n)
			if err := s.DeleteRange(c.min, c.max); err != nil {
				t.Fatal(err)
			}
			wantRange(t, s, c.first, c.last)
			for i := uint64(1); i <= n; i++ {
				err := s.GetLog(i, new(raft.Log))
				if gone := i >= c.min && i <= c.max; gone != errors.Is(err, raft.ErrLogNotFound) {
					t.Fatalf("entry %d: %v, deleted %v", i, err, gone)
				}
			}
		})
	}
}

func TestLockedFileIsAClearError(t *testing.T) {
	_, path := open(t)
	_, err := Open(path)
	if err == nil || !strings.Contains(err.Error(), "another process is using it") {
		t.Errorf("second Open: %v", err)
	}
}

func TestUnreadableFilesAreErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "no", "raft.db")); err == nil {
		t.Error("in a directory that is not there: no error")
	}
	path := filepath.Join(dir, "raft.db")
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Open of a text file: %v, want an error with its path", err)
	}
}

func TestClosedStoreIsAnError(t *testing.T) {
	s, _ := open(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := s.LastIndex(); err == nil {
		t.Error("LastIndex of a closed store: no error")
	}
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add(encode(&raft.Log{Index: 1, Term: 2, Data: []byte("d"), Extensions: []byte("e"), AppendedAt: time.Unix(5, 5)}))
	f.Add([]byte{entryVersion, 0, 1, 1, 0, 200, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var log raft.Log
		if decode(b, &log) != nil {
			return
		}
		var again raft.Log
		if err := decode(encode(&log), &again); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(log, again); d != "" {
			t.Fatal(d)
		}
	})
}

// bbolt maps what its head says the file has, and reads past the end of it.
func TestFileThatIsCutOffIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var logs []*raft.Log
	for i := range uint64(200) {
		logs = append(logs, &raft.Log{Index: i + 1, Term: 1, Data: bytes.Repeat([]byte("x"), 1000)})
	}
	if err := s.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{40_000, 12_288, 8_192, 4_096, 100} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(path); err == nil {
			t.Errorf("%d bytes are left of it, and it opens", size)
			_ = s.Close()
		}
	}
}
