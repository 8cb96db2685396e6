package transport

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A frame on the wire:
//
//	uint32 LE   length of what follows, at most maxFrame
//	byte        kind
//	uvarint     channel: the pair of replicas, 0 where there is none
//	uvarint     number: of a request, repeated by its answer; of a ping
//	…           body, by kind
type frame struct {
	kind    kind
	channel uint64
	number  uint64
	body    []byte // valid until the next frame is read
}

// kind says what a frame is. The numbers are the wire format: never reuse one.
type kind uint8

const (
	kindPing kind = iota + 1
	kindBind      // channel stands for (from, to) from now on
	kindHeartbeat
	kindAppend
	kindVote
	kindPreVote
	kindTimeoutNow
	kindAppended // answers, each to the request of its number
	kindVoted
	kindPreVoted
	kindTimedOut
	kindRefused // a raft request was not delivered, or raft failed it: text
	kindCall
	kindAnswer
	kindFault // an api Error
)

// answer returns the kind that answers a request of raft.
func (k kind) answer() kind {
	switch k {
	case kindHeartbeat, kindAppend:
		return kindAppended
	case kindVote:
		return kindVoted
	case kindPreVote:
		return kindPreVoted
	case kindTimeoutNow:
		return kindTimedOut
	}
	panic(fmt.Sprintf("kind %d is no request of raft", k))
}

const (
	readBuffer = 64 << 10
	keepBuffer = 1 << 20 // larger buffers are given back after use
)

var errFrame = errors.New("malformed frame")

// frameReader reads frames. One goroutine uses it.
type frameReader struct {
	r    *bufio.Reader
	used int    // bytes of r that the last frame lent out
	big  []byte // for frames that do not fit into r
}

// next returns the next frame. It never takes more memory than bytes arrived,
// whatever length is claimed, but for a constant.
func (f *frameReader) next() (frame, error) {
	if _, err := f.r.Discard(f.used); err != nil {
		return frame{}, err
	}
	f.used = 0
	if cap(f.big) > keepBuffer {
		f.big = nil
	}
	head, err := f.r.Peek(4)
	if err != nil {
		return frame{}, err
	}
	n := int(binary.LittleEndian.Uint32(head))
	if n > maxFrame {
		return frame{}, fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	if _, err := f.r.Discard(4); err != nil {
		return frame{}, err
	}
	if n > f.r.Size() {
		if f.big, err = readGrowing(f.r, f.big[:0], n); err != nil {
			return frame{}, err
		}
		return parseFrame(f.big)
	}
	b, err := f.r.Peek(n)
	if err != nil {
		return frame{}, err
	}
	f.used = n
	return parseFrame(b)
}

// readGrowing appends n bytes of r to b, growing it as they come.
func readGrowing(r io.Reader, b []byte, n int) ([]byte, error) {
	for n > 0 {
		k := min(n, max(readBuffer, len(b)))
		start := len(b)
		if cap(b) < start+k {
			b = append(make([]byte, 0, start+k), b...)
		}
		b = b[:start+k]
		if _, err := io.ReadFull(r, b[start:]); err != nil {
			return b[:start], err
		}
		n -= k
	}
	return b, nil
}

func parseFrame(b []byte) (frame, error) {
	d := decoder{b: b}
	f := frame{kind: kind(d.byte()), channel: d.uint(), number: d.uint()}
	f.body = d.b
	if d.bad {
		return frame{}, errFrame
	}
	return f, nil
}

// appendHead begins a frame; endFrame must follow after the body.
func appendHead(b []byte, k kind, channel, number uint64) []byte {
	b = append(b, 0, 0, 0, 0, byte(k))
	b = binary.AppendUvarint(b, channel)
	return binary.AppendUvarint(b, number)
}

// endFrame sets the length of the frame that began at start; false: too long.
func endFrame(b []byte, start int) bool {
	n := len(b) - start - 4
	if n > maxFrame {
		return false
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(n))
	return true
}

// decoder reads values off the front of b. After the first that is missing or
// malformed it is bad and returns zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) fail() { d.b, d.bad = nil, true }

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) bool() bool {
	v := d.byte()
	if v > 1 {
		d.fail()
	}
	return v == 1
}

// bytes reads a length and as many bytes, which share memory with b; nil if none.
func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
	}
	if n == 0 || d.bad {
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// name returns a string of at most maxName bytes.
func (d *decoder) name() string {
	v := d.bytes()
	if len(v) > maxName {
		d.fail()
		return ""
	}
	return string(v)
}

// end reports whether all was well formed and nothing is left.
func (d *decoder) end() bool { return !d.bad && len(d.b) == 0 }

func appendBytes[T ~string | ~[]byte](b []byte, v T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
