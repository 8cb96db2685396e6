package slotfile

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
)

// AsideSuffix ends the name of a file that is being written.
const AsideSuffix = ".new"

// File is a file that is written aside and takes its place only when it is whole
// and on the disk: a crash leaves the old one or the new one.
type File struct {
	path string
	f    *os.File
	buf  *bufio.Writer
	over bool
}

// Create begins to write a file, readable by its owner only.
func Create(path string) (*File, error) {
	f, err := os.OpenFile(path+AsideSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil { // it may have been there before
		return nil, errors.Join(err, f.Close())
	}
	return &File{path: path, f: f, buf: bufio.NewWriterSize(f, 256<<10)}, nil
}

// Write is io.Writer's.
func (f *File) Write(p []byte) (int, error) { return f.buf.Write(p) }

// Commit puts the file in its place, and returns once it is on the disk. On an
// error what was in its place is still there.
func (f *File) Commit() error {
	if f.over {
		return os.ErrClosed
	}
	f.over = true
	err := errors.Join(f.buf.Flush(), f.f.Sync())
	if err = errors.Join(err, f.f.Close()); err == nil {
		err = os.Rename(f.path+AsideSuffix, f.path)
	}
	if err != nil {
		_ = os.Remove(f.path + AsideSuffix)
		return err
	}
	return SyncDir(filepath.Dir(f.path))
}

// Abort gives the file up. After Commit it does nothing.
func (f *File) Abort() {
	if f.over {
		return
	}
	f.over = true
	_ = f.f.Close()
	_ = os.Remove(f.path + AsideSuffix)
}

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
