package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ringlimit/ringlimit/internal/slotfile"
)

// The kinds of files that hold slots.
const (
	checkpointFile = "checkpoint"
	backupFile     = "backup"
)

// slotsFormat is the version of what the header and the slots' heads say; chunks
// have one of their own.
const slotsFormat = 1

// fileHead is the header of a file of slots.
type fileHead struct {
	Kind    string `json:"kind"`
	Format  int    `json:"format"`
	Cluster string `json:"cluster"`
	Slots   int    `json:"slots"`   // of the cluster
	Made    string `json:"made"`    // wall clock, for people
	Version string `json:"version"` // of the program

	Group uint32 `json:"group,omitempty"` // of a checkpoint
	Epoch uint32 `json:"epoch,omitempty"` // of that group; of a backup the highest of any
	Index uint64 `json:"index,omitempty"` // of a checkpoint: as of which entry of the group's log it is
	Term  uint64 `json:"term,omitempty"`

	ID      string          `json:"id,omitempty"`      // of a backup
	Control json.RawMessage `json:"control,omitempty"` // of a backup: policies, keys and settings
}

// slotHead says of what a slot's chunks are.
type slotHead struct {
	Slot     uint16 `json:"slot"`
	Revision uint64 `json:"revision"` // of the newest move or birth that the slot has seen
	Index    uint64 `json:"index"`    // as of this entry of its group's log …
	Term     uint64 `json:"term"`     // … of this term
	Time     int64  `json:"time"`     // slot time then, ns
	Buckets  int    `json:"buckets"`
	Kept     int    `json:"kept,omitempty"` // checkpoints it was carried along in since its group has it no more
}

// section is a slot in a file.
type section struct {
	slotHead
	at, end int64 // offsets of its chunks
}

// slotsFile is a file of slots, open to be read. Its methods may be called by any
// number of goroutines.
type slotsFile struct {
	f    *os.File
	head fileHead
	size int64
	at   map[uint16]section
}

// errKind is returned for a file that is sound and something else.
var errKind = errors.New("it is another kind of file")

// openSlots opens a file and reads all of it once, so that every checksum is
// checked. Its errors are those of slotfile, errKind, and the system's.
func openSlots(path, kind string) (*slotsFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := indexSlots(f, kind)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	s.f = f
	return s, nil
}

// indexSlots reads a file to its end and says what it holds.
func indexSlots(in io.Reader, kind string) (*slotsFile, error) {
	r, err := slotfile.NewReader(newBuffered(in))
	if err != nil {
		return nil, err
	}
	s := &slotsFile{at: make(map[uint16]section)}
	var open *section
	closeSection := func(end int64) {
		if open != nil {
			open.end = end
			s.at[open.Slot] = *open
		}
	}
	for {
		before := r.Offset()
		k, body, err := r.Next()
		if err == io.EOF {
			closeSection(before)
			s.size = r.Offset()
			return s, s.check(kind)
		}
		if err != nil {
			return nil, err
		}
		switch k {
		case slotfile.Header:
			if err := json.Unmarshal(body, &s.head); err != nil {
				return nil, fmt.Errorf("%w: its header: %w", slotfile.ErrDamaged, err)
			}
			if err := s.check(kind); err != nil {
				return nil, err
			}
		case slotfile.Slot:
			closeSection(before)
			open = &section{at: r.Offset()}
			if err := json.Unmarshal(body, &open.slotHead); err != nil {
				return nil, fmt.Errorf("%w: the head of a slot: %w", slotfile.ErrDamaged, err)
			}
			if _, twice := s.at[open.Slot]; twice || int(open.Slot) >= s.head.Slots || open.Time < 0 {
				return nil, fmt.Errorf("%w: slot %d of %d", slotfile.ErrDamaged, open.Slot, s.head.Slots)
			}
		case slotfile.Chunk:
			if open == nil {
				return nil, fmt.Errorf("%w: a chunk of no slot", slotfile.ErrDamaged)
			}
		}
	}
}

func (s *slotsFile) check(kind string) error {
	switch {
	case s.head.Kind != kind:
		return fmt.Errorf("%w: a %q, want a %s", errKind, s.head.Kind, kind)
	case s.head.Format > slotsFormat:
		return fmt.Errorf("%w: %s of format %d, this one knows %d", slotfile.ErrVersion, kind, s.head.Format, slotsFormat)
	case s.head.Slots < 1 || s.head.Slots > 1<<16:
		return fmt.Errorf("%w: of %d slots", slotfile.ErrDamaged, s.head.Slots)
	}
	return nil
}

// each calls f with the chunks of a slot, in order; a chunk is valid until f returns.
func (s *slotsFile) each(x section, f func(chunk []byte) error) error {
	r := slotfile.NewPart(io.NewSectionReader(s.f, x.at, x.end-x.at))
	for {
		_, chunk, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = f(chunk)
		}
		if err != nil {
			return fmt.Errorf("slot %d: %w", x.Slot, err)
		}
	}
}

// chunks are the chunks of a slot.
func (s *slotsFile) chunks(x section) (all [][]byte, err error) {
	err = s.each(x, func(chunk []byte) error {
		all = append(all, append([]byte(nil), chunk...))
		return nil
	})
	return all, err
}

func (s *slotsFile) close() { _ = s.f.Close() }

// slotsWriter writes a file of slots.
type slotsWriter struct{ *slotfile.Writer }

func newSlotsWriter(w io.Writer, head fileHead) (*slotsWriter, error) {
	out := &slotsWriter{slotfile.NewWriter(w)}
	return out, out.json(slotfile.Header, head)
}

func (w *slotsWriter) json(kind slotfile.Kind, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.Write(kind, b)
}
