package bucket

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
)

// maxHeaderBytes bounds a dump's header: far above that of 65,536 full slots.
const maxHeaderBytes = 1 << 30

// Restore replaces the whole state by a dump's, of which it reads exactly
// Dump.Size bytes. On any error (ErrDump, or the error of r) nothing has changed.
// Until it returns, both states are in memory. Open dumps stay valid.
func (t *Table) Restore(r io.Reader) error {
	header, err := readHeader(r)
	if err != nil {
		return err
	}
	s, err := parseHeader(header, len(t.slots))
	if err != nil {
		return err
	}
	if err := s.readBlocks(r); err != nil {
		return err
	}
	if err := s.verify(); err != nil {
		return err
	}
	s.phaseZero, s.counting = t.phaseZero, t.counting
	t.state = *s
	return nil
}

// readHeader returns the header, checked. Memory grows with what arrives, not
// with what the length claims.
func readHeader(r io.Reader) ([]byte, error) {
	var b bytes.Buffer
	start := int64(len(dumpMagic) + 4)
	if err := readInto(&b, r, start); err != nil {
		return nil, err
	}
	if string(b.Bytes()[:len(dumpMagic)]) != dumpMagic {
		return nil, fmt.Errorf("%w: it begins with %x", ErrDump, b.Bytes()[:len(dumpMagic)])
	}
	n := int64(le.Uint32(b.Bytes()[len(dumpMagic):]))
	if n > maxHeaderBytes {
		return nil, fmt.Errorf("%w: header of %d bytes", ErrDump, n)
	}
	if err := readInto(&b, r, n+4); err != nil {
		return nil, err
	}
	all := b.Bytes()
	if crc32.Checksum(all[:start+n], castagnoli) != le.Uint32(all[start+n:]) {
		return nil, fmt.Errorf("%w: checksum of the header", ErrDump)
	}
	return all[start : start+n], nil
}

func readInto(b *bytes.Buffer, r io.Reader, n int64) error {
	if _, err := io.CopyN(b, r, n); err != nil {
		return cutOff(err)
	}
	return nil
}

// cutOff marks an end that came too early as ErrDump and leaves other errors.
func cutOff(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: cut off", ErrDump)
	}
	return fmt.Errorf("read dump: %w", err)
}

// readBlocks fills the blocks of a state made by parseHeader.
func (s *state) readBlocks(r io.Reader) error {
	for i := range s.slots {
		var err error
		s.slots[i].segments(func(_ int, g *segment) {
			if err == nil {
				err = s.readSegment(r, uint16(i), g)
			}
		})
		if err != nil {
			return fmt.Errorf("slot %d: %w", i, err)
		}
	}
	for i, g := range s.ids.pool.pages {
		if err := g.read(r, recordPage); err != nil {
			return fmt.Errorf("records, page %d: %w", i, err)
		}
	}
	for i, b := range s.ids.index.heads {
		if err := b.read(r, headsPage*4); err != nil {
			return fmt.Errorf("index, page %d: %w", i, err)
		}
	}
	return nil
}

func (s *state) readSegment(r io.Reader, slot uint16, g *segment) error {
	if err := g.block.read(r, int(g.cells)*cellSize); err != nil {
		return err
	}
	var used uint32
	g.each(func(cell []byte) {
		if ref := le.Uint32(cell[cellRef:]); s.rules.version(ref).used() {
			used++
			s.rules.name(ref)
			if s.counting {
				s.homes.add(slot, Key{Hi: le.Uint64(cell[cellHi:])}, 1)
			}
		}
	})
	if used != g.count {
		return fmt.Errorf("%w: %d of %d cells in use", ErrDump, used, g.count)
	}
	return nil
}

// read fills b with size bytes and checks the checksum behind them.
func (b *block) read(r io.Reader, size int) error {
	b.buf = make([]byte, size)
	if _, err := io.ReadFull(r, b.buf); err != nil {
		return cutOff(err)
	}
	var sum [4]byte
	if _, err := io.ReadFull(r, sum[:]); err != nil {
		return cutOff(err)
	}
	if crc32.Checksum(b.buf, castagnoli) != le.Uint32(sum[:]) {
		return fmt.Errorf("%w: checksum", ErrDump)
	}
	return nil
}
