package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ringlimit/ringlimit/api/fault"
)

// The bounds of a JSON text, beside that on its bytes. Few depths and names are
// all that any body here has use for.
const (
	maxMembers = 64 // of one object
	maxDepth   = 8
)

// scan reads one JSON text (RFC 8259) in one pass. It is stricter than package json:
// names are exact and distinct, text is UTF-8 without lone surrogates, nothing comes
// after the end. Strings are parts of the text where they have no escapes.
//
// Its errors are InvalidArgument. What is no JSON at all has no field, and the
// offset of the byte in its message.
type scan struct {
	text string
	at   int  // next byte
	lax  bool // names may repeat: the value is only passed over
}

// newScan begins to read.
func newScan(body []byte) (scan, error) {
	if !utf8.Valid(body) {
		return scan{}, fault.Field("", "the body is not UTF-8")
	}
	return scan{text: string(body)}, nil
}

// malformed is what is no JSON.
func (s *scan) malformed(want string) error {
	if s.at >= len(s.text) {
		return &refusal{status: http.StatusBadRequest, detail: fmt.Sprintf("the body ends after %d bytes, want %s", len(s.text), want)}
	}
	r, _ := utf8.DecodeRuneInString(s.text[s.at:])
	return &refusal{status: http.StatusBadRequest, detail: fmt.Sprintf("%+q at byte %d of the body, want %s", r, s.at, want)}
}

// next passes over white space and returns the byte behind it, 0 at the end.
func (s *scan) next() byte {
	for s.at < len(s.text) {
		if c := s.text[s.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
		s.at++
	}
	return 0
}

// end says whether the text is over.
func (s *scan) end() error {
	if s.next(); s.at < len(s.text) {
		return s.malformed("nothing more")
	}
	return nil
}

// unlike is the error where a value of another type stands.
func (s *scan) unlike(want string) error {
	is := ""
	switch c := s.next(); {
	case c == '"':
		is = "a string"
	case c == '{':
		is = "an object"
	case c == '[':
		is = "a list"
	case c == '-' || c >= '0' && c <= '9':
		is = "a number"
	case strings.HasPrefix(s.text[s.at:], "true") || strings.HasPrefix(s.text[s.at:], "false"):
		is = "a boolean"
	case strings.HasPrefix(s.text[s.at:], "null"):
		return fault.Field("", "is null, want %s, or leave it out", want)
	default:
		return s.malformed(want)
	}
	return fault.Field("", "is %s, want %s", is, want)
}

// more passes over the comma before an element, or over the end of what it is in;
// then ok is false.
func (s *scan) more(first bool, end byte) (ok bool, err error) {
	switch c := s.next(); {
	case c == end:
		s.at++
		return false, nil
	case first:
		return true, nil
	case c != ',':
		return false, s.malformed("a comma or " + string(end))
	}
	s.at++
	return true, nil
}

// object calls member with each name, in order; it reads the value.
func (s *scan) object(want string, member func(name string) error) error {
	if s.next() != '{' {
		return s.unlike(want)
	}
	s.at++
	var room [16]string
	names := room[:0]
	for {
		more, err := s.more(len(names) == 0, '}')
		if err != nil || !more {
			return err
		}
		name, err := s.name()
		switch {
		case err != nil:
			return err
		case s.lax:
			names = names[:0] // more than none is all that counts
		case slices.Contains(names, name):
			return fault.Field(name, "given twice, want it once")
		case len(names) == maxMembers:
			return fault.Field("", "has more than %d members", maxMembers)
		}
		names = append(names, name)
		if err := member(name); err != nil {
			return within(name, err)
		}
	}
}

// name reads the name of a member, and the colon.
func (s *scan) name() (string, error) {
	if s.next() != '"' {
		return "", s.malformed("a name in quotes")
	}
	name, err := s.string()
	if err != nil {
		return "", err
	}
	if s.next() != ':' {
		return "", s.malformed("a colon")
	}
	s.at++
	return name, nil
}

// list calls element for each element of a list, with its index; it reads it.
func (s *scan) list(want string, element func(i int) error) error {
	if s.next() != '[' {
		return s.unlike(want)
	}
	s.at++
	for i := 0; ; i++ {
		more, err := s.more(i == 0, ']')
		if err != nil || !more {
			return err
		}
		if err := element(i); err != nil {
			return within("["+strconv.Itoa(i)+"]", err)
		}
	}
}

// value passes over any value and returns its text.
func (s *scan) value(depth int) (text string, err error) {
	c := s.next()
	begin := s.at
	switch {
	case depth > maxDepth:
		return "", s.malformed(fmt.Sprintf("values at most %d deep", maxDepth))
	case c == '{':
		err = s.object("an object", func(string) error {
			_, err := s.value(depth + 1)
			return err
		})
	case c == '[':
		err = s.list("a list", func(int) error {
			_, err := s.value(depth + 1)
			return err
		})
	case c == '"':
		_, err = s.string()
	case c == '-' || c >= '0' && c <= '9':
		_, err = s.number()
	default:
		err = s.malformed("a value")
		for _, word := range []string{"true", "false", "null"} {
			if strings.HasPrefix(s.text[s.at:], word) {
				s.at += len(word)
				err = nil
				break
			}
		}
	}
	return s.text[begin:s.at], err
}

// pass passes over any value and returns a scan of it: then all of it is JSON, and
// what is wrong with it is about it alone.
func (s *scan) pass() (scan, error) {
	s.lax = true
	text, err := s.value(0)
	s.lax = false
	return scan{text: text}, err
}

// within puts a name or an index in front of the field of an error. What is about
// the body as a whole stays so.
func within(path string, err error) error {
	e, ok := err.(*fault.Error)
	if !ok || e.Kind != fault.InvalidArgument {
		return err
	}
	if e.Field != "" && e.Field[0] != '[' {
		path += "."
	}
	e.Field = path + e.Field
	return e
}
