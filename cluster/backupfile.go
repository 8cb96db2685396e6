package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/internal/slotfile"
)

// BackupInfo is what a backup says of itself.
type BackupInfo struct {
	ID, Cluster string
	Made        string // RFC 3339, by the wall clock of the node that made it
	Slots       int
	Policies    int
	Buckets     int
	Bytes       int64 // uncompressed
}

// BackupFile is a backup on its way to a file: what a node sends is checked,
// compressed with zstd, and put in its place when it is whole. It is used by one
// goroutine.
type BackupFile struct {
	file *slotfile.File
	zip  *zstd.Encoder
	pipe *io.PipeWriter // to what checks
	done chan struct{}  // closed when that has ended
	read *slotsFile
	err  error
}

// CreateBackup begins a file, which only its owner may read.
func CreateBackup(path string) (*BackupFile, error) {
	file, err := slotfile.Create(path)
	if err != nil {
		return nil, err
	}
	zip, err := zstd.NewWriter(file, zstd.WithEncoderConcurrency(1))
	if err != nil {
		file.Abort()
		return nil, err
	}
	r, w := io.Pipe()
	b := &BackupFile{file: file, zip: zip, pipe: w, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		if b.read, b.err = indexSlots(r, backupFile); b.err == nil {
			_, b.err = b.read.content()
		}
		_ = r.CloseWithError(b.err) // nil: io.ErrClosedPipe
	}()
	return b, nil
}

// Write takes the next bytes that the node sent.
func (b *BackupFile) Write(p []byte) (int, error) {
	if _, err := b.pipe.Write(p); err != nil {
		return 0, err
	}
	return b.zip.Write(p)
}

// Commit puts the file in its place if all of it has come.
func (b *BackupFile) Commit() (BackupInfo, error) {
	_ = b.pipe.Close()
	<-b.done
	if b.err == nil {
		b.err = b.zip.Close()
	}
	if b.err != nil {
		b.Abort()
		return BackupInfo{}, fmt.Errorf("the backup is not whole: %w", b.err)
	}
	return b.read.info(), b.file.Commit()
}

// Abort gives the file up. After Commit it does nothing.
func (b *BackupFile) Abort() {
	_ = b.pipe.CloseWithError(slotfile.ErrTruncated)
	<-b.done
	b.file.Abort()
}

// content is what the backup says of policies, keys and settings, checked.
func (s *slotsFile) content() (*control.Content, error) {
	c := new(control.Content)
	if err := json.Unmarshal(s.head.Control, c); err != nil {
		return nil, fmt.Errorf("%w: its policies: %w", slotfile.ErrDamaged, err)
	}
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", slotfile.ErrDamaged, err)
	}
	if c.Slots != s.head.Slots || len(s.at) != s.head.Slots || s.head.ID == "" {
		return nil, fmt.Errorf("%w: %d slots of %d", slotfile.ErrDamaged, len(s.at), s.head.Slots)
	}
	return c, nil
}

func (s *slotsFile) info() BackupInfo {
	i := BackupInfo{ID: s.head.ID, Cluster: s.head.Cluster, Made: s.head.Made, Slots: s.head.Slots, Bytes: s.size}
	for _, x := range s.at {
		i.Buckets += x.Buckets
	}
	if c, err := s.content(); err == nil {
		i.Policies = len(c.Policies.Policies)
	}
	return i
}

// openBackupFile unpacks a backup into a file without a name in dir ("": that for
// temporary files), where its slots can be found, and checks all of it.
func openBackupFile(path, dir string) (*slotsFile, error) {
	packed, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	unzip, err := zstd.NewReader(newBuffered(packed), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer unzip.Close()
	flat, err := os.CreateTemp(dir, "restore-*"+slotfile.AsideSuffix)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(flat.Name()) // it ends with the process
	s, err := indexSlots(io.TeeReader(unzip, flat), backupFile)
	switch {
	case errors.Is(err, zstd.ErrMagicMismatch):
		err = slotfile.ErrForeign
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = slotfile.ErrTruncated
	case err == nil:
		_, err = s.content()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w%s", path, err, remedy(err)), flat.Close())
	}
	s.f = flat
	return s, nil
}

// remedy says what would be right in place of a backup that cannot be used. The
// file is compressed: offsets in errors are of what is in it.
func remedy(err error) string {
	switch {
	case errors.Is(err, slotfile.ErrForeign), errors.Is(err, errKind):
		return ": want a file that rlnode backup wrote"
	case errors.Is(err, slotfile.ErrTruncated):
		return ": want the whole file; copy it again, or take an older backup"
	case errors.Is(err, slotfile.ErrVersion):
		return ": restore it with that version"
	case errors.As(err, new(*fs.PathError)): // of the disk
		return ""
	case errors.Is(err, slotfile.ErrDamaged):
		return " (offsets are of the decompressed data): copy the file again, or take an older backup"
	}
	return ": copy the file again, or take an older backup"
}
