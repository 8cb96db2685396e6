//go:build unix

package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// acquire opens a file and takes an exclusive lock on it, without waiting. The
// lock belongs to the open file, so two Dirs of one process exclude each other
// too. The file holds the process id, for the message of the one that is refused.
func acquire(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		holder := "another process"
		if pid := holderOf(f); pid != "" {
			holder += " (pid " + pid + ")"
		}
		_ = f.Close()
		return nil, fmt.Errorf("%s is using it: stop that process or name another directory", holder)
	case err != nil:
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // for a message only
	}
	return f, nil
}

// holderOf returns the process id in a lock file, "" if there is none.
func holderOf(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	pid := strings.TrimSpace(string(b))
	if _, perr := strconv.Atoi(pid); err != nil || perr != nil {
		return ""
	}
	return pid
}
