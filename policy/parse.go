package policy

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The bounds of a policy file. The parser beneath recurses, so what could nest
// deeply is refused before it.
const (
	maxFile  = 128 << 20 // bytes
	maxLine  = 16 << 10  // bytes
	maxDepth = 100       // of brackets
)

// ParseError says what is wrong in a policy file, and where.
type ParseError struct {
	File         string
	Line, Column int    // from 1; 0: not known
	Field        string // such as policies[1].window; "": the file as a whole
	Reason       string // what it is, and what is wanted
}

// Error is one line, such as
// "policies.yaml:12:5: policies[1].window: 0s, want 1ms … 8784h0m0s".
func (e *ParseError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", e.Line, e.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(strings.ReplaceAll(e.Reason, "\n", " "))
	return b.String()
}

// Parse reads a policy file, YAML, strictly: an unknown key is an error. file is
// the name to show in errors and in Policy.Source. Every error is a *ParseError;
// no input panics.
func Parse(file string, data []byte) (*Set, error) {
	s, _, err := ParseWarn(file, data)
	return s, err
}

// ParseWarn is Parse that also tells what is legal and likely a slip, at most 20
// of them, each with its place as an error has it.
func ParseWarn(file string, data []byte) (s *Set, slips []error, err error) {
	s, slips, err = parseWarn(file, data, true)
	if err != nil && len(data) <= smallFile {
		return parseWarn(file, data, false)
	}
	return s, slips, err
}

// smallFile is the size in bytes up to which the YAML parser has the last word on
// what is wrong. In a larger file something of which it alone makes sense, such as
// a bracket that goes on at the left margin, is an error.
const smallFile = 256 << 10

// parse is parseWarn without what is only likely.
func parse(file string, data []byte, quick bool) (*Set, error) {
	s, _, err := parseWarn(file, data, quick)
	return s, err
}

// parseWarn is ParseWarn; without quick, all goes through the YAML parser, at a
// twentieth of the speed and with the same result.
func parseWarn(file string, data []byte, quick bool) (set *Set, slips []error, err error) {
	defer func() {
		if p := recover(); p != nil { // of the YAML parser, on input that its authors did not think of
			set, slips, err = nil, nil, &ParseError{File: file, Reason: fmt.Sprintf("not readable as YAML: %v", p)}
		}
	}()
	r := newReader(file)
	if err := r.checkShape(data); err != nil {
		return nil, nil, err
	}
	d := document{r: r, quick: quick, text: string(data)}
	if err := d.open(); err != nil {
		return nil, nil, err
	}
	s, err := r.set(&d)
	if err != nil {
		return nil, nil, err
	}
	if err := s.checkFile(); err != nil {
		return nil, nil, r.locate(&d, err)
	}
	for _, slip := range s.slips() {
		slips = append(slips, r.locate(&d, slip))
	}
	s.Policies = s.sorted()
	return s, slips, nil
}

// checkFile judges a set that is new.
func (s *Set) checkFile() error {
	if err := checkNewList("home", s.Home); err != nil {
		return err
	}
	for i, p := range s.Policies {
		if err := p.checkNewNames(); err != nil {
			return at(i, err)
		}
	}
	if err := s.Validate(); err != nil {
		return err
	}
	for i, c := range s.RouteClasses {
		for j, route := range c.Routes {
			if err := checkNewRoute(route); err != nil {
				return invalid(fmt.Sprintf("route_classes[%d].routes[%d]", i, j), "%v", err)
			}
		}
	}
	return nil
}

// reader turns the nodes of one file into a Set.
type reader struct {
	file   string
	known  map[string]string // texts met before, so that equal ones share their memory
	places map[string]place  // where fields stand, by path; nil: nobody wants to know
}

// place is where a field of the Set stands in the file, and under which name.
type place struct {
	at   pos
	name string // path as written; "": as in the Set
}

// maxKnown bounds reader.known: what differs in each policy is not worth keeping.
const maxKnown = 4096

func newReader(file string) *reader {
	return &reader{file: file, known: map[string]string{}, places: map[string]place{}}
}

// note remembers where a field stands.
func (r *reader) note(path string, at pos) {
	if r.places != nil {
		r.places[path] = place{at: at}
	}
}

// intern returns a copy of s that does not keep the file in memory.
func (r *reader) intern(s string) string {
	if known, ok := r.known[s]; ok {
		return known
	}
	s = strings.Clone(s)
	if len(r.known) < maxKnown {
		r.known[s] = s
	}
	return s
}

// checkShape refuses what is no text, and what could make the YAML parser
// recurse too deeply.
func (r *reader) checkShape(data []byte) error {
	if len(data) > maxFile {
		return &ParseError{File: r.file, Reason: fmt.Sprintf("%d bytes, want at most %d", len(data), maxFile)}
	}
	if !utf8.Valid(data) {
		return &ParseError{File: r.file, Reason: "not UTF-8"}
	}
	line, start, depth := 1, 0, 0
	for i, c := range data {
		switch c {
		case '\n':
			line, start = line+1, i+1
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		}
		if i-start > maxLine {
			return r.fail(pos{line, maxLine}, "", "a line of more than %d bytes", maxLine)
		}
		if depth > maxDepth {
			return r.fail(pos{line, i - start + 1}, "", "more than %d brackets open", maxDepth)
		}
	}
	return nil
}

// fail returns an error at a place.
func (r *reader) fail(at pos, field, format string, args ...any) error {
	return &ParseError{File: r.file, Line: at.line, Column: at.column, Field: field, Reason: fmt.Sprintf(format, args...)}
}

// locate gives an error of Validate its place: that of its field, or of the
// nearest field around it. A policy is read once more to learn its places.
func (r *reader) locate(d *document, err error) error {
	var e *ParseError
	if !errors.As(err, &e) {
		return err
	}
	var i int
	if n, _ := fmt.Sscanf(e.Field, "policies[%d]", &i); n == 1 && i < d.count() {
		if n, err := d.item(i); err == nil {
			_, _ = r.policy(&n, i)
		}
	}
	for path := e.Field; path != ""; path = parent(path) {
		if p, ok := r.places[path]; ok {
			field := e.Field
			if path == field && p.name != "" {
				field = p.name
			}
			return r.fail(p.at, field, "%s", e.Reason)
		}
	}
	return &ParseError{File: r.file, Field: e.Field, Reason: e.Reason}
}

// parent cuts the last part off a path.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}
