package sim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Where data directories are: a file system in memory, that no disk slows down. A name
// is the prefix, the process's id and a random part.
const (
	memory    = "/dev/shm"
	dirPrefix = "ringlimit-sim-"
)

var sweepOnce sync.Once

// shm makes a directory that goes with the test. Those of processes that were killed
// are swept before the first.
func shm(t *testing.T) string {
	sweepOnce.Do(func() { sweep(memory) })
	dir, err := os.MkdirTemp(memory, fmt.Sprintf("%s%d-*", dirPrefix, os.Getpid()))
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// sweep removes the directories in root that a process which is no more has left.
func sweep(root string) {
	dirs, _ := filepath.Glob(filepath.Join(root, dirPrefix+"*-*"))
	for _, dir := range dirs {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix), "-")
		pid, err := strconv.Atoi(number)
		if err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}

// TestSweep: what a dead process left goes, what belongs to a living one stays.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	dead := filepath.Join(root, dirPrefix+strconv.Itoa(1<<30)+"-1") // beyond any process's id
	mine := filepath.Join(root, fmt.Sprintf("%s%d-1", dirPrefix, os.Getpid()))
	for _, dir := range []string{dead, mine} {
		if err := os.MkdirAll(filepath.Join(dir, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sweep(root)
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a dead process left: %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("what a living process uses: %v", err)
	}
}
