package control

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A packed entry is a long one written shorter:
//
//	byte     packed
//	uvarint  length of the entry, at most MaxUnpacked
//	…        the entry, its version first, by flate (RFC 1951)
//
// A file of 100,000 policies takes a tenth of its length.
const packed = 0x80 // in the place of a version: no build before version 3 reads it

// packedFormat is the version of commands from which builds read packed entries.
const packedFormat = 3

// MaxUnpacked bounds what a packed entry may unfold to, in bytes. A log entry
// that claims more, or holds more than it claims, is malformed.
const MaxUnpacked = 128 << 20

// packFrom is the length in bytes from which entries are packed: what people do
// by hand stays in a form that older nodes read.
const packFrom = 256 << 10

// pack packs an entry if it is long.
func pack(entry []byte) []byte {
	if len(entry) < packFrom || len(entry) > MaxUnpacked {
		return entry
	}
	var out bytes.Buffer
	out.Write(binary.AppendUvarint([]byte{packed}, uint64(len(entry))))
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(entry)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("pack %d bytes: %v", len(entry), err)) // into memory: cannot fail
	}
	return out.Bytes()
}

// unpack returns the entry in a packed one; any other is returned as it is.
// Memory is taken as bytes come out, never as the entry claims.
func unpack(data []byte) ([]byte, error) {
	if len(data) == 0 || data[0] != packed {
		return data, nil
	}
	claimed, n := binary.Uvarint(data[1:])
	if n <= 0 || claimed > MaxUnpacked {
		return nil, fmt.Errorf("packed command of %d bytes, at most %d may be", claimed, MaxUnpacked)
	}
	in := bytes.NewReader(data[1+n:])
	out := bytes.NewBuffer(make([]byte, 0, min(int(claimed), 16*len(data))+bytes.MinRead))
	got, err := out.ReadFrom(io.LimitReader(flate.NewReader(in), int64(claimed)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("packed command: %w", err)
	case uint64(got) != claimed:
		return nil, fmt.Errorf("packed command holds another length than the %d bytes it claims", claimed)
	case in.Len() > 0:
		return nil, errors.New("packed command: more after the end")
	}
	return out.Bytes(), nil
}

// EntryFormat is the version of commands that a node must read (Node.FormatMax)
// to follow an entry that Encode wrote; 0 for no entry.
func EntryFormat(entry []byte) int {
	switch {
	case len(entry) == 0:
		return 0
	case entry[0] == packed:
		return packedFormat
	}
	return int(entry[0])
}
