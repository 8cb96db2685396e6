package fleet

import (
	"bytes"
	"encoding/binary"
)

// The relays know so much of the protocol between nodes: a connection begins with
// one message each way, of two bytes of length; on a link frames follow, of four
// bytes of length, and the kind first. A kind that carries a request may be
// repeated, because a receiver has to bear copies of it.
const (
	helloMagic = "RLPEER"
	linkByte   = 1 // the purpose in a hello that opens a link
	helloHead  = 2
	frameHead  = 4
	mostFrame  = 64 << 20 // what is longer is no frame
)

// repeatable says whether a frame of a kind is a request: heartbeat, append, vote,
// pre-vote, timeout-now, call.
func repeatable(kind byte) bool { return kind >= 3 && kind <= 7 || kind == 13 }

// splitter cuts one direction of a stream into pieces that are passed on whole.
// A stream that is no link is one piece after the other as they come.
type splitter struct {
	link  func() bool  // asked after the first message; nil: this is no stream of peers
	hello func([]byte) // if set, told the first message before link is asked
	begun bool
	rest  []byte
}

// piece is some whole frames, or one that may be repeated.
type piece struct {
	data       []byte
	repeatable bool
}

// feed adds what was read and returns the pieces that are complete; single says
// that frames that may be repeated are to be pieces of their own. What it returns
// is the caller's.
func (s *splitter) feed(data []byte, single bool) (pieces []piece) {
	s.rest = append(s.rest, data...)
	if s.link != nil && !s.begun {
		if len(s.rest) < helloHead {
			return nil
		}
		n := helloHead + int(binary.LittleEndian.Uint16(s.rest))
		if len(s.rest) < n {
			return nil
		}
		pieces = append(pieces, s.cut(n, false))
		s.begun = true
		if s.hello != nil {
			s.hello(pieces[0].data)
		}
	}
	if s.link == nil || !s.link() {
		s.link = nil
		return append(pieces, s.all()...)
	}
	whole := 0
	for {
		n, kind, ok := frameAt(s.rest[whole:])
		switch {
		case n > mostFrame:
			s.link = nil
			return append(pieces, s.all()...)
		case !ok:
			if whole > 0 {
				pieces = append(pieces, s.cut(whole, false))
			}
			return pieces
		case single && repeatable(kind):
			if whole > 0 {
				pieces = append(pieces, s.cut(whole, false))
			}
			pieces, whole = append(pieces, s.cut(n, true)), 0
		default:
			whole += n
		}
	}
}

// flush returns what is left when a stream ends amid a frame.
func (s *splitter) flush() []piece { return s.all() }

func (s *splitter) all() []piece {
	if len(s.rest) == 0 {
		return nil
	}
	return []piece{s.cut(len(s.rest), false)}
}

func (s *splitter) cut(n int, repeatable bool) piece {
	p := piece{bytes.Clone(s.rest[:n]), repeatable}
	s.rest = append(s.rest[:0], s.rest[n:]...)
	return p
}

// frameAt returns length and kind of the frame that b begins with; false: it is
// not all there.
func frameAt(b []byte) (n int, kind byte, ok bool) {
	if len(b) < frameHead+1 {
		return 0, 0, false
	}
	n = frameHead + int(binary.LittleEndian.Uint32(b))
	return n, b[frameHead], len(b) >= n
}

// opensLink reads a hello: whether frames will follow it.
func opensLink(hello []byte) bool {
	b := hello[min(helloHead, len(hello)):]
	// After the magic: the version as a uvarint of one byte, then the purpose.
	return bytes.HasPrefix(b, []byte(helloMagic)) && len(b) > len(helloMagic)+1 && b[len(helloMagic)+1] == linkByte
}
