package simulate

import (
	"encoding/json"
	"fmt"
	"strings"
)

// scan reads JSON from one line, token by token, so that whatever is wrong can
// be shown where it stands, and without memory of its own: strings are parts of
// one copy of the line.
type scan struct {
	text string
	at   int // next byte
}

// columnError is what is wrong with a line.
type columnError struct {
	column int // from 1, in bytes
	reason string
}

func (e *columnError) Error() string { return e.reason }

// wrongAt is an error about the byte at an offset.
func wrongAt(offset int, format string, args ...any) error {
	return &columnError{offset + 1, fmt.Sprintf(format, args...)}
}

// next passes over white space and returns the byte behind it, 0 at the end.
func (s *scan) next() byte {
	for s.at < len(s.text) {
		if c := s.text[s.at]; c != ' ' && c != '\t' && c != '\r' {
			return c
		}
		s.at++
	}
	return 0
}

// unlike is the error where something else should stand.
func (s *scan) unlike(want string) error {
	if s.next() == 0 && s.at == len(s.text) {
		return wrongAt(s.at, "the line ends here, want %s", want)
	}
	return wrongAt(s.at, "want %s", want)
}

// open passes over the beginning of an object or list.
func (s *scan) open(c byte, want string) error {
	if s.next() != c {
		return s.unlike(want)
	}
	s.at++
	return nil
}

// more passes over the comma before an element, or over the end of its list,
// which close is; then ok is false.
func (s *scan) more(first bool, end byte) (ok bool, err error) {
	switch c := s.next(); {
	case c == end:
		s.at++
		return false, nil
	case first:
		return true, nil
	case c != ',':
		return false, s.unlike("a comma or " + string(end))
	}
	s.at++
	return true, nil
}

// key reads the next name of an object, and the colon; ok is false at its end.
// at is where the name begins.
func (s *scan) key(first bool) (name string, at int, ok bool, err error) {
	if ok, err = s.more(first, '}'); !ok {
		return "", 0, false, err
	}
	s.next()
	at = s.at
	if name, err = s.string("a name in quotes"); err != nil {
		return "", 0, false, err
	}
	if s.next() != ':' {
		return "", 0, false, s.unlike("a colon")
	}
	s.at++
	s.next()
	return name, at, true, nil
}

// string reads a string.
func (s *scan) string(want string) (string, error) {
	if s.next() != '"' {
		return "", s.unlike(want)
	}
	begin, plain := s.at, true
	for i := begin + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			if plain {
				return s.text[begin+1 : i], nil
			}
			return unquote(s.text[begin:s.at], begin)
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			return "", wrongAt(i, "control character %q, want it escaped", c)
		}
	}
	return "", wrongAt(len(s.text), "the line ends amid a string")
}

func unquote(quoted string, at int) (string, error) {
	var out string
	if err := json.Unmarshal([]byte(quoted), &out); err != nil {
		return "", wrongAt(at, "not a JSON string: %v", err)
	}
	return out, nil
}

// number returns what stands where a number should, up to the next delimiter.
func (s *scan) number() string {
	s.next()
	begin := s.at
	for s.at < len(s.text) && strings.IndexByte(" \t\r,:{}[]\"", s.text[s.at]) < 0 {
		s.at++
	}
	return s.text[begin:s.at]
}
