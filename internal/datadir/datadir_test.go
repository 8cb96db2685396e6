package datadir

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func mustOpen(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// wantError wants one line that holds each of parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%v, want %q in it", err, p)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than one line", err)
	}
}

func TestIdentityOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "data")
	d := mustOpen(t, path)
	id := d.ID()
	if len(id) != 32 || d.ClusterID() != "" || d.Path() != path {
		t.Errorf("id %q, cluster %q, path %q", id, d.ClusterID(), d.Path())
	}
	if err := d.SetClusterID("c-1"); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, path)
	if again.ID() != id || again.ClusterID() != "c-1" {
		t.Errorf("id %q, cluster %q, want %q and c-1", again.ID(), again.ClusterID(), id)
	}
	if other := mustOpen(t, t.TempDir()); other.ID() == id {
		t.Error("two directories have one id")
	}
}

func TestClusterIsForEver(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	for _, bad := range []string{"", "a b", "a\n"} {
		if d.SetClusterID(bad) == nil {
			t.Errorf("cluster id %q: no error", bad)
		}
	}
	for range 2 {
		if err := d.SetClusterID("one"); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, d.SetClusterID("two"), "belongs to cluster one", "not to two", d.Path())
	if d.ClusterID() != "one" {
		t.Errorf("cluster %q", d.ClusterID())
	}
}

func TestSecondOpenIsRefused(t *testing.T) {
	path := t.TempDir()
	d := mustOpen(t, path)
	_, err := Open(path)
	wantError(t, err, path, "is using it", fmt.Sprintf("pid %d", os.Getpid()), "name another directory")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path)
}

func TestForeignDirectoryIsRefusedAndLeftAlone(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	wantError(t, err, path, "not empty", "thesis.txt")
	if entries, _ := os.ReadDir(path); len(entries) != 1 {
		t.Errorf("%v were written into a foreign directory", entries)
	}
}

func TestFirstStartCutShortIsTakenUp(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{lockFile, idFile + asideSuffix} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("00"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(path, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	if d := mustOpen(t, path); len(d.ID()) != 32 {
		t.Errorf("id %q", d.ID())
	}
}

func TestDamagedFilesAreErrors(t *testing.T) {
	for file, content := range map[string]string{idFile: "zz", clusterFile: "7c \x02\xff"} {
		path := t.TempDir()
		d := mustOpen(t, path)
		_ = d.Close()
		if err := os.WriteFile(filepath.Join(path, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		wantError(t, err, path, file, "damaged")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	wantError(t, err, path)
}

// TestLockDiesWithItsProcess kills a process that holds a directory.
func TestLockDiesWithItsProcess(t *testing.T) {
	path := os.Getenv("DATADIR_HOLD")
	if path != "" { // the child
		d, err := Open(path)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until killed
		_ = d.Close()
		return
	}
	path = t.TempDir()
	child := exec.Command(os.Args[0], "-test.run", "^TestLockDiesWithItsProcess$")
	child.Env = append(os.Environ(), "DATADIR_HOLD="+path)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4)
	if _, err := stdout.Read(line); err != nil || !bytes.Equal(line, []byte("held")) {
		t.Fatalf("child says %q, %v", line, err)
	}
	_, err = Open(path)
	wantError(t, err, fmt.Sprintf("pid %d", child.Process.Pid))
	_ = child.Process.Kill()
	_ = child.Wait()
	mustOpen(t, path)
}
