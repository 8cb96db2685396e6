// Package ratelimit turns the answers of limits into the header fields of an HTTP
// response: RateLimit and RateLimit-Policy as draft-ietf-httpapi-ratelimit-headers-11
// has them, the older X-RateLimit-* and RateLimit-Limit, -Remaining and -Reset, and
// Retry-After.
//
// The HTTP endpoint of a node and the middleware of the client share it, so that a
// caller reads the same from both. It is pure: it is told the time, and draws no lot.
package ratelimit

import (
	"strconv"
	"time"
)

// Limit is what one limit answered to one request.
type Limit struct {
	Policy    string        // its policy's id: the name in all fields; one that is empty or not printable ASCII is never named
	Quota     uint64        // the capacity, in tokens
	Remaining uint64        // the largest cost that would be admitted now
	Reset     time.Duration // until the bucket is fresh; negative: not known
	Window    time.Duration // in which Quota tokens come; told if it is whole seconds; 0: not known
	Allowed   bool
	Shadow    bool // it counts and never denies, and so stands in no field
}

// The names of the fields, in the form that package net/http keeps them under.
const (
	HeaderLimit      = "Ratelimit"
	HeaderPolicy     = "Ratelimit-Policy"
	HeaderRetryAfter = "Retry-After"
)

// Set adds RateLimit and RateLimit-Policy to h, one member for each limit that can
// deny. Both are lists, so what another limiter of the same response has put there
// stays. Without such a limit nothing is set.
func Set(h map[string][]string, limits []Limit) {
	add(h, HeaderLimit, Field(limits))
	add(h, HeaderPolicy, PolicyField(limits))
}

func add(h map[string][]string, name, value string) {
	if value != "" {
		h[name] = append(h[name], value)
	}
}

// Field is the value of RateLimit: for each limit how many tokens remain (r) and in
// how many seconds it is fresh again (t, rounded up; none if that is not known). It
// is empty if no limit is to be told.
func Field(limits []Limit) string {
	var out []byte
	for i := range limits {
		l := &limits[i]
		var ok bool
		if out, ok = appendMember(out, l); !ok {
			continue
		}
		out = appendParameter(out, "r", l.Remaining)
		if l.Reset >= 0 {
			out = appendParameter(out, "t", uint64(roundUp(l.Reset)))
		}
	}
	return string(out)
}

// PolicyField is the value of RateLimit-Policy: for each limit its quota (q) and, if
// it is known and whole, its window in seconds (w). It is empty if no limit is to be
// told.
func PolicyField(limits []Limit) string {
	var out []byte
	for i := range limits {
		l := &limits[i]
		var ok bool
		if out, ok = appendMember(out, l); !ok {
			continue
		}
		out = appendParameter(out, "q", l.Quota)
		if l.Window >= time.Second && l.Window%time.Second == 0 {
			out = appendParameter(out, "w", uint64(l.Window/time.Second))
		}
	}
	return string(out)
}

// Violated are the ids of the policies that deny, in the order of limits.
func Violated(limits []Limit) []string {
	var ids []string
	for i := range limits {
		if l := &limits[i]; !l.Allowed && l.told() {
			ids = append(ids, l.Policy)
		}
	}
	return ids
}

// told says whether a limit may stand in a field.
func (l *Limit) told() bool { return !l.Shadow && l.Policy != "" && printable(l.Policy) }

// appendMember begins the member of a limit; false if it has none.
func appendMember(dst []byte, l *Limit) ([]byte, bool) {
	if !l.told() {
		return dst, false
	}
	if len(dst) > 0 {
		dst = append(dst, ", "...)
	}
	return appendString(dst, l.Policy), true
}

// maxInteger is the largest Integer that a structured field can carry: 15 digits.
const maxInteger = 999_999_999_999_999

func appendParameter(dst []byte, name string, value uint64) []byte {
	dst = append(append(append(dst, ';'), name...), '=')
	return strconv.AppendUint(dst, min(value, maxInteger), 10)
}

// printable says whether s can be a String of a structured field (RFC 9651): it has no
// escapes for anything but what can be seen in ASCII, and the space.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// appendString writes a printable s as a String.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

// roundUp is a time that is not negative in whole seconds.
func roundUp(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}
