// Package datadir is a node's data directory: locked by one process at a time,
// with an identity of its own and the cluster it belongs to.
//
// The node's identity in the control group is its name and the directory's id.
// Because the lock is held for the life of the process, a node that comes with
// the same directory proves that its predecessor is gone.
package datadir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// The files of a directory that this package owns; all else in it is the caller's.
const (
	lockFile    = "LOCK"
	idFile      = "ID"
	clusterFile = "CLUSTER"
	asideSuffix = ".new" // a file being written
)

// Dir is an open, locked data directory. Its methods may be called from any goroutine.
type Dir struct {
	path string
	id   string
	lock *os.File

	mu      sync.Mutex // guards cluster and the file that holds it
	cluster string
}

// Open locks a directory, making it and its identity if they do not exist yet.
// It refuses a directory that another process holds, and one with content that
// is not a node's. The lock ends with Close or with the process.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	if err := refuseForeign(path); err != nil { // before anything is written there
		return nil, err
	}
	lock, err := acquire(filepath.Join(path, lockFile))
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	d := &Dir{path: path, lock: lock}
	if err := d.load(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return d, nil
}

// refuseForeign accepts a directory with an identity and an empty one.
func refuseForeign(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", path, err)
	}
	own := []string{lockFile, idFile + asideSuffix, "lost+found"} // of a first start cut short; of a mount point
	for _, e := range entries {
		if e.Name() == idFile {
			return nil
		}
	}
	for _, e := range entries {
		if !slices.Contains(own, e.Name()) {
			return fmt.Errorf("data directory %s: not empty and not a node's (it has %q and no file %s): name an empty or new directory",
				path, e.Name(), idFile)
		}
	}
	return nil
}

// load reads the identity and the cluster, making the identity if it is new.
func (d *Dir) load() error {
	id, err := d.read(idFile)
	if errors.Is(err, fs.ErrNotExist) {
		var random [16]byte
		_, _ = rand.Read(random[:]) // never fails
		id = hex.EncodeToString(random[:])
		err = d.write(idFile, id)
	}
	if err != nil {
		return err
	}
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != 16 {
		return fmt.Errorf("data directory %s: file %s holds %q, want 32 hexadecimal digits: it is damaged or not a node's", d.path, idFile, id)
	}
	d.id = id
	d.cluster, err = d.read(clusterFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !isClusterID(d.cluster) {
		return fmt.Errorf("data directory %s: file %s holds %q, want the id of a cluster, a word: it is damaged", d.path, clusterFile, d.cluster)
	}
	return err
}

// isClusterID says whether id is a word of printable ASCII of bearable length.
func isClusterID(id string) bool {
	const longest = 128
	return id != "" && len(id) <= longest && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Path returns the absolute path of the directory.
func (d *Dir) Path() string { return d.path }

// ID returns the random id that the directory got when it was made: 32 hexadecimal digits.
func (d *Dir) ID() string { return d.id }

// ClusterID returns the cluster that the directory belongs to, "" if none yet.
func (d *Dir) ClusterID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cluster
}

// SetClusterID makes the directory belong to a cluster, for ever. When it
// returns nil the id is on disk. It refuses another than the one it has.
func (d *Dir) SetClusterID(id string) error {
	if !isClusterID(id) {
		return fmt.Errorf("cluster id %q: want a word", id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.cluster {
	case id:
		return nil
	case "":
	default:
		return fmt.Errorf("data directory %s belongs to cluster %s, not to %s: name the directory of that cluster, or a new one", d.path, d.cluster, id)
	}
	if err := d.write(clusterFile, id); err != nil {
		return err
	}
	d.cluster = id
	return nil
}

// Close releases the lock. The directory may be opened again then.
func (d *Dir) Close() error { return d.lock.Close() }

// read returns the line of one of our files.
func (d *Dir) read(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(d.path, name))
	if err != nil {
		return "", fmt.Errorf("data directory %s: %w", d.path, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// write replaces one of our files: written aside, synced, renamed, and the
// directory synced, so that a crash leaves the old content or the new.
func (d *Dir) write(name, line string) error {
	aside := filepath.Join(d.path, name+asideSuffix)
	err := writeSynced(aside, line+"\n")
	if err == nil {
		err = os.Rename(aside, filepath.Join(d.path, name))
	}
	if err == nil {
		err = syncDir(d.path)
	}
	if err != nil {
		return fmt.Errorf("data directory %s: write %s: %w", d.path, name, err)
	}
	return nil
}

func writeSynced(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// ReadFile returns the content of a file that WriteFile wrote.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(d.path, name))
}

// WriteFile replaces a file of the node's own, as write does.
func (d *Dir) WriteFile(name string, content []byte) error {
	return d.write(name, string(content))
}
