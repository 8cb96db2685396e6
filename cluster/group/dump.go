package group

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/bucket"
)

// header precedes the table in a snapshot.
type header struct {
	index, term uint64
	conf        raft.Configuration
	confAt      uint64 // ≤ index
}

const (
	headerMagic   = 0x31474c52 // "RLG1"
	headerFixed   = 4 + 4 + 3*8
	maxConfLength = 1 << 20
)

// encode gives the header's wire form: magic, length of the configuration,
// index, term, index of the configuration, the configuration, CRC-32 of all that.
func (h *header) encode() []byte {
	conf := raft.EncodeConfiguration(h.conf)
	b := make([]byte, 0, headerFixed+len(conf)+4)
	b = binary.LittleEndian.AppendUint32(b, headerMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(conf)))
	b = binary.LittleEndian.AppendUint64(b, h.index)
	b = binary.LittleEndian.AppendUint64(b, h.term)
	b = binary.LittleEndian.AppendUint64(b, h.confAt)
	b = append(b, conf...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// readHeader is the inverse of encode.
func readHeader(r io.Reader) (header, error) {
	fixed := make([]byte, headerFixed)
	if _, err := io.ReadFull(r, fixed); err != nil {
		return header{}, err
	}
	n := binary.LittleEndian.Uint32(fixed[4:])
	if m := binary.LittleEndian.Uint32(fixed); m != headerMagic {
		return header{}, fmt.Errorf("unknown format %#x", m)
	}
	if n > maxConfLength {
		return header{}, fmt.Errorf("configuration of %d bytes", n)
	}
	rest := make([]byte, n+4)
	if _, err := io.ReadFull(r, rest); err != nil {
		return header{}, err
	}
	sum := crc32.Update(crc32.ChecksumIEEE(fixed), crc32.IEEETable, rest[:n])
	if sum != binary.LittleEndian.Uint32(rest[n:]) {
		return header{}, errors.New("checksum differs")
	}
	return header{
		index:  binary.LittleEndian.Uint64(fixed[8:]),
		term:   binary.LittleEndian.Uint64(fixed[16:]),
		confAt: binary.LittleEndian.Uint64(fixed[24:]),
		conf:   raft.DecodeConfiguration(rest[:n]),
	}, nil
}

// dump is a frozen view of a replica's state. It must be streamed or closed.
type dump struct {
	header
	head  []byte
	table *bucket.Dump
}

// dump freezes the present state: index, term, configuration and table of one moment.
func (f *fsm) dump() (*dump, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	if f.confAt == 0 {
		return nil, errors.New("no configuration is applied yet")
	}
	d := &dump{header: header{index: f.index, term: f.term, conf: f.conf, confAt: f.confAt}}
	d.head = d.encode()
	d.table = f.table.BeginDump()
	return d, nil
}

func (d *dump) size() int64 { return int64(len(d.head)) + d.table.Size() }

func (d *dump) meta(id string) raft.SnapshotMeta {
	return raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: id, Index: d.index, Term: d.term,
		Configuration: d.conf, ConfigurationIndex: d.confAt, Size: d.size(),
	}
}

// stream returns a reader of the dump. A goroutine feeds it and calls ended when
// all was read or the reader was closed.
func (d *dump) stream(ended func()) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		defer ended()
		defer d.table.Close()
		_, err := io.Copy(w, bytes.NewReader(d.head))
		if err == nil {
			_, err = d.table.WriteTo(yieldingWriter{w})
		}
		w.CloseWithError(err)
	}()
	return r
}
