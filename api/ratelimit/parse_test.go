package ratelimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// A reader of as much of RFC 9651 as the fields use: lists of Strings with Integers as
// parameters. It is strict: what the RFC makes an error is one.

type member struct {
	text       string
	parameters map[string]int64
}

type reader struct{ rest string }

func (r *reader) skip(set string) { r.rest = strings.TrimLeft(r.rest, set) }

func (r *reader) takes(c byte) bool {
	if r.rest == "" || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

func parseList(s string) (members []member, err error) {
	r := &reader{rest: s}
	r.skip(" ")
	for r.rest != "" {
		m, err := r.member()
		if err != nil {
			return nil, err
		}
		members = append(members, m)
		r.skip(" \t")
		if r.rest == "" {
			return members, nil
		}
		if !r.takes(',') {
			return nil, fmt.Errorf("%q follows a member, want a comma", r.rest)
		}
		if r.skip(" \t"); r.rest == "" {
			return nil, errors.New("a comma at the end")
		}
	}
	return members, nil
}

func (r *reader) member() (m member, err error) {
	if m.text, err = r.text(); err != nil {
		return m, err
	}
	m.parameters = map[string]int64{}
	for r.takes(';') {
		r.skip(" ")
		key := r.span("abcdefghijklmnopqrstuvwxyz0123456789_-.*")
		if key == "" || key[0] < 'a' || key[0] > 'z' {
			return m, fmt.Errorf("key %q", key)
		}
		if !r.takes('=') {
			return m, fmt.Errorf("%s has no value", key)
		}
		digits := r.span("0123456789")
		if digits == "" || len(digits) > 15 {
			return m, fmt.Errorf("%s has %d digits, want 1 … 15", key, len(digits))
		}
		m.parameters[key], _ = strconv.ParseInt(digits, 10, 64)
	}
	return m, nil
}

func (r *reader) span(set string) string {
	rest := strings.TrimLeft(r.rest, set)
	out := r.rest[:len(r.rest)-len(rest)]
	r.rest = rest
	return out
}

func (r *reader) text() (string, error) {
	if !r.takes('"') {
		return "", fmt.Errorf("%q, want a String", r.rest)
	}
	var out []byte
	for r.rest != "" {
		c := r.rest[0]
		r.rest = r.rest[1:]
		switch {
		case c == '"':
			return string(out), nil
		case c == '\\':
			if r.rest == "" || r.rest[0] != '"' && r.rest[0] != '\\' {
				return "", errors.New("a backslash before neither quote nor backslash")
			}
			out = append(out, r.rest[0])
			r.rest = r.rest[1:]
		case c < ' ' || c > '~':
			return "", fmt.Errorf("byte %#x in a String", c)
		default:
			out = append(out, c)
		}
	}
	return "", errors.New("a String without its end")
}

// TestParserIsStrict: a reader that takes anything would hold the writer to nothing.
func TestParserIsStrict(t *testing.T) {
	for _, bad := range []string{`a;r=1`, `"a`, `"a\n"`, `"a\`, "\"a\x7f\"", `"a";r`, `"a";R=1`, `"a";=1`, `"a";r=`, `"a";r=1234567890123456`, `"a",`, `"a" "b"`, `"a";r=1,,"b"`} {
		if m, err := parseList(bad); err == nil {
			t.Errorf("%s reads as %v", bad, m)
		}
	}
	m, err := parseList(`"a\"\\" ;r=1`)
	if err == nil {
		t.Errorf("a space before a parameter reads as %v", m)
	}
	m, err = parseList(`"a\"\\"; r=1;t=2 ,	"b"`)
	if err != nil || len(m) != 2 || m[0].text != `a"\` || m[0].parameters["t"] != 2 || m[1].text != "b" {
		t.Errorf("got %v, %v", m, err)
	}
}
