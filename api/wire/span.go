package wire

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ringlimit/ringlimit/api/fault"
)

// invalid returns an error about a field; at and item prefix its path on the way out.
func invalid(field, format string, args ...any) error { return fault.Field(field, format, args...) }

// malformed is bytes that are not protobuf at all.
func malformed() error { return invalid("", "malformed message") }

// source is a message that is being read. Its strings become substrings of one
// copy of it.
type source struct {
	b   []byte
	all string // the same bytes
}

// span is a part of a source.
type span struct {
	src *source
	at  int // next byte
	end int
}

// read begins a message. With strings, text may be called.
func (s *source) read(b []byte, strings bool) span {
	s.b, s.all = b, ""
	if strings {
		s.all = string(b)
	}
	return span{src: s, end: len(b)}
}

func (s *span) more() bool { return s.at < s.end }

// next reads a tag.
func (s *span) next() (protowire.Number, protowire.Type, error) {
	if c := s.src.b[s.at]; c < 0x80 && c >= 8 { // field numbers up to 15
		s.at++
		return protowire.Number(c >> 3), protowire.Type(c & 7), nil
	}
	num, typ, n := protowire.ConsumeTag(s.src.b[s.at:s.end])
	if n < 0 || num > protowire.MaxValidNumber {
		return 0, 0, malformed()
	}
	s.at += n
	return num, typ, nil
}

func (s *span) varint() (uint64, error) {
	if s.at < s.end && s.src.b[s.at] < 0x80 {
		v := uint64(s.src.b[s.at])
		s.at++
		return v, nil
	}
	v, n := protowire.ConsumeVarint(s.src.b[s.at:s.end])
	if n < 0 {
		return 0, malformed()
	}
	s.at += n
	return v, nil
}

func (s *span) fixed64() (uint64, error) {
	v, n := protowire.ConsumeFixed64(s.src.b[s.at:s.end])
	if n < 0 {
		return 0, malformed()
	}
	s.at += n
	return v, nil
}

// sub reads a length and returns the bytes that follow as a span.
func (s *span) sub() (span, error) {
	n, err := s.varint()
	if err != nil || n > uint64(s.end-s.at) {
		return span{}, malformed()
	}
	in := span{src: s.src, at: s.at, end: s.at + int(n)}
	s.at = in.end
	return in, nil
}

func (s *span) bytes() []byte { return s.src.b[s.at:s.end] }

// text reads a string. A string that is not UTF-8 is an error about field.
func (s *span) text(field string) (string, error) {
	in, err := s.sub()
	if err != nil {
		return "", err
	}
	if !utf8.Valid(in.bytes()) {
		return "", invalid(field, "must be valid UTF-8")
	}
	return s.src.all[in.at:in.end], nil
}

// skip passes over a field that this build does not know.
func (s *span) skip(num protowire.Number, typ protowire.Type) error {
	n := protowire.ConsumeFieldValue(num, typ, s.src.b[s.at:s.end])
	if n < 0 {
		return malformed()
	}
	s.at += n
	return nil
}
