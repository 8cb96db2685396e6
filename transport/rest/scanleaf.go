package rest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ringlimit/ringlimit/api/fault"
)

// Strings and numbers: the values that have no others in them.

// textValue reads a string.
func (s *scan) textValue() (string, error) {
	if s.next() != '"' {
		return "", s.unlike("a string")
	}
	return s.string()
}

// string reads a string, whose quote is next.
func (s *scan) string() (string, error) {
	begin, plain := s.at, true
	for i := begin + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			if plain {
				return s.text[begin+1 : i], nil
			}
			return s.unquote(begin)
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			s.at = i
			return "", s.malformed("control characters escaped")
		}
	}
	s.at = len(s.text)
	return "", s.malformed("the end of a string")
}

// unquote reads a string with escapes, which ends at s.at.
func (s *scan) unquote(begin int) (string, error) {
	quoted := s.text[begin:s.at]
	var out string
	if err := json.Unmarshal([]byte(quoted), &out); err != nil {
		s.at = begin
		return "", s.malformed("a string with escapes that JSON has")
	}
	// Package json makes U+FFFD of half a pair; two names that differ must not become one.
	if strings.Count(out, "\ufffd") != strings.Count(quoted, "\ufffd")+countFold(quoted, `\ufffd`) {
		s.at = begin
		return "", s.malformed("both halves of a surrogate pair")
	}
	return out, nil
}

// countFold counts escapes, in any case, that no backslash stands before.
func countFold(quoted, escape string) (n int) {
	for i := 0; i+1 < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		if len(quoted) >= i+len(escape) && strings.EqualFold(quoted[i:i+len(escape)], escape) {
			n++
		}
		i++ // what is escaped
	}
	return n
}

// whole reads a whole number of at most most.
func (s *scan) whole(most uint64) (uint64, error) {
	c := s.next()
	if c != '-' && (c < '0' || c > '9') {
		return 0, s.unlike(fmt.Sprintf("a whole number, 0 … %d", most))
	}
	literal, err := s.number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(literal, 10, 64)
	if err != nil || n > most {
		return 0, fault.Field("", "%s, want a whole number, 0 … %d", brief(literal), most)
	}
	return n, nil
}

// brief is a literal as an error repeats it.
func brief(literal string) string {
	if len(literal) > 32 {
		return literal[:32] + "…"
	}
	return literal
}

// number reads the text of a number.
func (s *scan) number() (string, error) {
	begin := s.at
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if !s.digits() {
		return "", s.malformed("a digit")
	}
	if s.peek() == '.' {
		s.at++
		if !s.digits() {
			return "", s.malformed("a digit")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return "", s.malformed("a digit")
		}
	}
	return s.text[begin:s.at], nil
}

func (s *scan) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// digits passes over them; false: there is none.
func (s *scan) digits() bool {
	begin := s.at
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.at++
	}
	return s.at > begin
}
