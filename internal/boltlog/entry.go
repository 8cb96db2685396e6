package boltlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/hashicorp/raft"
)

// entryVersion is the first byte of a stored entry. After it: type, one byte;
// then uvarints of index, term, time of append (ns since 1970, 0: not known) and
// length of the extensions; then the extensions and the data; at the end a
// CRC-32C of all before it.
const entryVersion = 1

const crcSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errTorn    = errors.New("damaged: it ends early")
	errDamaged = errors.New("damaged: its checksum is wrong")
)

// encode returns the stored form of an entry.
func encode(log *raft.Log) []byte {
	b := make([]byte, 0, 2+4*binary.MaxVarintLen64+len(log.Extensions)+len(log.Data)+crcSize)
	b = append(b, entryVersion, byte(log.Type))
	b = binary.AppendUvarint(b, log.Index)
	b = binary.AppendUvarint(b, log.Term)
	var at uint64
	if !log.AppendedAt.IsZero() {
		at = uint64(log.AppendedAt.UnixNano())
	}
	b = binary.AppendUvarint(b, at)
	b = binary.AppendUvarint(b, uint64(len(log.Extensions)))
	b = append(b, log.Extensions...)
	b = append(b, log.Data...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decode reads what encode wrote into log, in memory of its own.
func decode(b []byte, log *raft.Log) error {
	if len(b) < 2+crcSize {
		return errTorn
	}
	if b[0] != entryVersion {
		return fmt.Errorf("version %d, this build knows %d", b[0], entryVersion)
	}
	body := b[:len(b)-crcSize]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(body):]) {
		return errDamaged
	}
	b = body
	out := raft.Log{Type: raft.LogType(b[1])}
	b = b[2:]
	var at, extensions uint64
	for _, v := range []*uint64{&out.Index, &out.Term, &at, &extensions} {
		n := 0
		if *v, n = binary.Uvarint(b); n <= 0 {
			return errTorn
		}
		b = b[n:]
	}
	if extensions > uint64(len(b)) {
		return errTorn
	}
	if at != 0 {
		out.AppendedAt = time.Unix(0, int64(at))
	}
	if extensions > 0 {
		out.Extensions = append([]byte(nil), b[:extensions]...)
	}
	if data := b[extensions:]; len(data) > 0 {
		out.Data = append([]byte(nil), data...)
	}
	*log = out
	return nil
}
