package client

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/ringlimit/ringlimit/client/internal/fallback"
)

const nobodyID = 65534

// asNobody has f do what it does with files as a user without rights. Only this thread
// changes, and it ends with f.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		if os.Getuid() == 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobodyID, 0, 0)
		}
		f()
	}()
	<-done
}

// TestCacheWhereTheDirectoryCannotBeSynced: a directory that may be written and not be read
// keeps its file all the same, and nothing else.
func TestCacheWhereTheDirectoryCannotBeSynced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub")
	if err := os.Mkdir(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := errors.Join(os.Chown(dir, nobodyID, -1), os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "cache.json")
	k := kept{cluster: "c", version: 3, digest: 4, policies: []byte(`{"policies":[]}`), share: fallback.Share{Clients: 2}}
	asNobody(t, func() {
		if _, err := os.Open(dir); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("the directory can be opened: %v", err)
		}
		for range 2 { // made, and replaced
			if err := writeCache(path, k); err != nil {
				t.Error(err)
			}
		}
		got, err := readCache(path)
		if err != nil || got.version != 3 || string(got.policies) != string(k.policies) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
