package policy

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The bounds of a policy file. The parser beneath recurses, so what could nest
// deeply is refused before it.
const (
	maxFile  = 16 << 20 // bytes
	maxLine  = 16 << 10 // bytes
	maxDepth = 100      // of brackets
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
// the name to show in errors. Every error is a *ParseError; no input panics.
func Parse(file string, data []byte) (set *Set, err error) {
	defer func() {
		if p := recover(); p != nil { // of the YAML parser, on input that its authors did not think of
			set, err = nil, &ParseError{File: file, Reason: fmt.Sprintf("not readable as YAML: %v", p)}
		}
	}()
	r := reader{file: file, places: map[string]place{}}
	if err := r.checkShape(data); err != nil {
		return nil, err
	}
	doc, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, r.syntax(err)
	}
	if len(doc.Docs) > 1 {
		return nil, r.fail(doc.Docs[1].GetToken(), "", "a second document, want one")
	}
	var body ast.Node
	if len(doc.Docs) == 1 {
		body = doc.Docs[0].Body
	}
	s, err := r.set(body)
	if err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, r.locate(err)
	}
	s.Policies = s.sorted()
	return s, nil
}

// reader turns the syntax tree of one file into a Set and remembers where each
// field stands.
type reader struct {
	file   string
	places map[string]place
}

// place is where a field of the Set stands in the file, and under which name.
type place struct {
	tok  *token.Token
	name string // path as written; "": as in the Set
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
			return &ParseError{File: r.file, Line: line, Column: maxLine, Reason: fmt.Sprintf("a line of more than %d bytes", maxLine)}
		}
		if depth > maxDepth {
			return &ParseError{File: r.file, Line: line, Column: i - start + 1, Reason: fmt.Sprintf("more than %d brackets open", maxDepth)}
		}
	}
	return nil
}

// syntax makes an error of the YAML parser ours.
func (r *reader) syntax(err error) error {
	var y yaml.Error
	if errors.As(err, &y) {
		return r.fail(y.GetToken(), "", "%s", y.GetMessage())
	}
	return &ParseError{File: r.file, Reason: err.Error()}
}

// fail returns an error at a token, which may be nil.
func (r *reader) fail(at *token.Token, field, format string, args ...any) error {
	e := &ParseError{File: r.file, Field: field, Reason: fmt.Sprintf(format, args...)}
	if at != nil && at.Position != nil {
		e.Line, e.Column = at.Position.Line, at.Position.Column
	}
	return e
}

// locate gives an error of Validate its place: that of its field, or of the
// nearest field around it.
func (r *reader) locate(err error) error {
	var e *ParseError
	if !errors.As(err, &e) {
		return err
	}
	for path := e.Field; path != ""; path = parent(path) {
		if p, ok := r.places[path]; ok {
			field := e.Field
			if path == field && p.name != "" {
				field = p.name
			}
			return r.fail(p.tok, field, "%s", e.Reason)
		}
	}
	return &ParseError{File: r.file, Field: e.Field, Reason: e.Reason}
}

// parent cuts the last part off a path.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}
