package cluster

import (
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/ringlimit/ringlimit/api/fault"
)

// What a node has of slots whose state a group lacks: a source.
const (
	fromReplica    = "replica"    // of an epoch that was given up, or of the present one for a backup
	fromCheckpoint = "checkpoint" // a file of this node
	fromBackup     = "backup"     // the file that the cluster is restored from
)

// offerCall asks a node what it has of the slots that a group's new epoch lacks.
type offerCall struct {
	Version int    `json:"version"`
	Group   uint32 `json:"group"`
	Epoch   uint32 `json:"epoch"` // the new one
}

// salvageVersion is that of offerCall and of readCall.
const salvageVersion = 1

// offer is one source of a node.
type offer struct {
	Kind  string        `json:"kind"`
	Name  string        `json:"name"` // of the replica, the file or the backup: what a readCall names
	Group uint32        `json:"group"`
	Slots []offeredSlot `json:"slots"`
}

// offeredSlot is how new a slot is in a source.
type offeredSlot struct {
	Slot     uint16 `json:"slot"`
	Revision uint64 `json:"revision,omitempty"`
	Term     uint64 `json:"term,omitempty"`
	Index    uint64 `json:"index,omitempty"`
}

// readCall asks for the next chunk of a slot of a source.
type readCall struct {
	Version int    `json:"version"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Reader  string `json:"reader"` // names who reads: each reads a copy of its own, if it is of a replica that serves
	Slot    uint16 `json:"slot"`
	Pass    uint64 `json:"pass"`   // of the chunks
	Number  uint32 `json:"number"` // 0 begins; else that of the call before and one more
	Whole   bool   `json:"whole"`  // all of the slot, not only what is to be salvaged
}

// readAnswer is a chunk.
type readAnswer struct {
	slotTime int64
	last     bool
	chunk    []byte // nil only with last
}

func (a readAnswer) encode() []byte {
	b := append(make([]byte, 0, 16+len(a.chunk)), salvageVersion, flag(a.last))
	return append(binary.AppendUvarint(b, uint64(a.slotTime)), a.chunk...)
}

func parseReadAnswer(b []byte) (a readAnswer, err error) {
	r := &reader{b: b}
	version := r.byte()
	a = readAnswer{last: r.byte() != 0, slotTime: int64(r.uint()), chunk: r.b}
	if r.err == nil && (version != salvageVersion || a.slotTime < 0) {
		return a, errors.New("a chunk to be salvaged makes no sense")
	}
	return a, r.err
}

// encodeCall is a call in bytes; its fields are strings and numbers and cannot fail.
func encodeCall(c any) []byte {
	b, _ := json.Marshal(c)
	return b
}

func parseCall[C any](body []byte, version func(*C) int) (*C, error) {
	c := new(C)
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fault.New(fault.InvalidArgument, "%v", err)
	}
	if v := version(c); v != salvageVersion {
		return nil, fault.New(fault.InvalidArgument, "a call of version %d, this node knows %d", v, salvageVersion)
	}
	return c, nil
}
