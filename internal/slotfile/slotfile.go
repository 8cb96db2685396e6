// Package slotfile is the format of files that hold slots, checkpoints and backups
// alike: records with a checksum each, behind a magic word, with a last record that
// proves that none is missing. What the records say is the caller's.
//
//	magic 8 "RLSLOTS" and the version 1 · records
//	record: kind 1 · length of body 4, little endian · body · CRC-32C of all that 4
//
// The last record is of kind End; its body is the number of records before it, 8
// bytes. A file without one was cut off.
package slotfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	magic   = "RLSLOTS"
	version = 1

	headBytes = 5
	sumBytes  = 4

	// MaxBody bounds the body of a record, in bytes.
	MaxBody = 256 << 20
)

// Kind says what a record is.
type Kind byte

// The kinds of records, in the order in which they come.
const (
	Header Kind = 1 // what the file is; the first record
	Slot   Kind = 2 // begins a slot
	Chunk  Kind = 3 // a part of the slot that was begun last
	End    Kind = 4 // written by Writer.End; a Reader gives io.EOF instead
)

// The errors of a Reader, which say more when they are printed.
var (
	ErrForeign   = errors.New("not a file of ringlimit slots")           // it does not begin as one
	ErrVersion   = errors.New("written by a newer version of ringlimit") // its format is not known here
	ErrTruncated = errors.New("cut off")                                 // it has no end
	ErrDamaged   = errors.New("damaged")                                 // a checksum, length, kind or count is wrong
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes a file. The first error counts, and ends it.
type Writer struct {
	w     io.Writer
	buf   []byte
	count uint64
	bytes int64
	err   error
}

// NewWriter begins a file. Who writes many small records gives it a buffer.
func NewWriter(w io.Writer) *Writer {
	f := &Writer{w: w}
	f.put(append([]byte(magic), version))
	return f
}

func (f *Writer) put(b []byte) {
	if f.err != nil {
		return
	}
	var n int
	n, f.err = f.w.Write(b)
	f.bytes += int64(n)
}

// Write writes one record. It returns the error of this or an earlier one.
func (f *Writer) Write(kind Kind, body []byte) error {
	if len(body) > MaxBody {
		return fmt.Errorf("slotfile: record of %d bytes, want at most %d", len(body), MaxBody)
	}
	b := append(f.buf[:0], byte(kind))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	f.buf = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	f.put(f.buf)
	f.count++
	return f.err
}

// End writes the last record.
func (f *Writer) End() error {
	return f.Write(End, binary.LittleEndian.AppendUint64(nil, f.count))
}

// Bytes is how much was written.
func (f *Writer) Bytes() int64 { return f.bytes }

// Reader reads a file, or records out of the middle of one.
type Reader struct {
	r     io.Reader
	part  bool // records only: neither magic nor End
	count uint64
	bytes int64
	done  bool
	buf   bytes.Buffer
}

// NewReader begins to read a file: ErrForeign, ErrVersion or ErrTruncated.
func NewReader(r io.Reader) (*Reader, error) {
	f := &Reader{r: r}
	head := make([]byte, len(magic)+1)
	n, err := io.ReadFull(r, head)
	f.bytes = int64(n)
	switch {
	case err != nil && !short(err):
		return nil, err
	case n == 0 && errors.Is(err, io.ErrUnexpectedEOF): // of what it was packed in
		return nil, ErrTruncated
	case n == 0 || string(head[:min(n, len(magic))]) != magic[:min(n, len(magic))]:
		return nil, ErrForeign
	case n < len(head):
		return nil, ErrTruncated
	case head[len(magic)] != version:
		return nil, fmt.Errorf("%w: format %d, this one knows %d", ErrVersion, head[len(magic)], version)
	}
	return f, nil
}

// NewPart reads records that begin at an Offset of a file; it ends, with io.EOF,
// where r ends.
func NewPart(r io.Reader) *Reader { return &Reader{r: r, part: true} }

// Offset is where the next record begins, in bytes from the start of the file.
func (f *Reader) Offset() int64 { return f.bytes }

func short(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// Next reads one record; body is valid until the next call. io.EOF comes only
// behind a sound End, with nothing after it. Memory grows with what arrives, not
// with what a length claims.
func (f *Reader) Next() (kind Kind, body []byte, err error) {
	if f.done {
		return 0, nil, io.EOF
	}
	f.buf.Reset()
	n, err := io.CopyN(&f.buf, f.r, headBytes)
	f.bytes += n
	switch {
	case err == io.EOF && n == 0 && f.part:
		f.done = true
		return 0, nil, io.EOF
	case err != nil:
		return 0, nil, cut(err)
	}
	size := binary.LittleEndian.Uint32(f.buf.Bytes()[1:])
	if size > MaxBody {
		return 0, nil, fmt.Errorf("%w: a record of %d bytes at offset %d", ErrDamaged, size, f.bytes-n)
	}
	n, err = io.CopyN(&f.buf, f.r, int64(size)+sumBytes)
	f.bytes += n
	if err != nil {
		return 0, nil, cut(err)
	}
	b := f.buf.Bytes()
	end := len(b) - sumBytes
	if crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return 0, nil, fmt.Errorf("%w: wrong checksum before offset %d", ErrDamaged, f.bytes)
	}
	return f.judge(Kind(b[0]), b[headBytes:end])
}

// judge lets only a record through that may come now.
func (f *Reader) judge(kind Kind, body []byte) (Kind, []byte, error) {
	switch {
	case kind < Header || kind > End || !f.part && (kind == Header) != (f.count == 0):
		return 0, nil, fmt.Errorf("%w: record %d is of kind %d", ErrDamaged, f.count, kind)
	case kind != End:
		f.count++
		return kind, body, nil
	case len(body) != 8 || !f.part && binary.LittleEndian.Uint64(body) != f.count:
		return 0, nil, fmt.Errorf("%w: it ends after %d records, which is not what it says", ErrDamaged, f.count)
	}
	f.done = true
	if n, err := io.ReadFull(f.r, make([]byte, 1)); n > 0 {
		return 0, nil, fmt.Errorf("%w: more after the end", ErrDamaged)
	} else if err != nil && !short(err) {
		return 0, nil, err
	}
	return 0, nil, io.EOF
}

// cut marks an end that came too early and leaves other errors.
func cut(err error) error {
	if short(err) {
		return ErrTruncated
	}
	return err
}
