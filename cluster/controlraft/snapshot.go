package controlraft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"
)

// A snapshot is this byte, the index of the last command applied (8 bytes, little
// endian) and a snapshot of the control state, whose first byte is another. The state
// knows the last command that changed it, and the last one may have changed nothing:
// whoever restored only that would seem to be behind until the next command. Builds
// from before wrote the state alone.
const snapshotIndexed = 0x80

func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if m.broken != nil {
		return nil, m.broken
	}
	b := binary.LittleEndian.AppendUint64([]byte{snapshotIndexed}, m.index.Load())
	return snapshot(append(b, m.m.Snapshot()...)), nil
}

func (m *machine) Restore(r io.ReadCloser) error {
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("read control snapshot: %w", err)
	}
	index, state := uint64(0), data
	if len(data) > 0 && data[0] == snapshotIndexed {
		if len(data) < 9 {
			return fmt.Errorf("restore control snapshot: it ends after %d bytes, in its index", len(data))
		}
		index, state = binary.LittleEndian.Uint64(data[1:]), data[9:]
	}
	if err := m.m.Restore(state); err != nil {
		return fmt.Errorf("restore control snapshot: %w", err)
	}
	m.publish()
	m.index.Store(max(index, m.m.State().Index))
	m.onChange()
	return nil
}

type snapshot []byte

func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(s); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}
func (snapshot) Release() {}
