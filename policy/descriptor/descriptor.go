// Package descriptor says how a descriptor of Envoy's rate limit service becomes
// what policies match and count by. The service of a node and the import of
// envoyproxy/ratelimit configuration share it: what the one names, the other
// matches.
//
// Different descriptors never become the same request: everything that is changed
// on the way can be told back, but for the middle of texts that are too long, where
// a SHA-256 stands in. docs/envoy.md has the rules for those who write policies.
//
// It is pure, as all of policy.
package descriptor

import (
	"strconv"
	"strings"
)

// The attributes that a descriptor has besides its entries.
const (
	Domain = "domain"     // the domain of the request
	Shape  = "descriptor" // the keys of its entries in order: see ShapeOf
	Limit  = "limit"      // the limit that the request itself brings, such as 100/minute; absent without one
)

// MaxEntries is how many entries a descriptor may have, so that those and the
// attributes of the descriptor itself are no more than a request can carry.
const MaxEntries = 13

// Entry is one key and value of a descriptor.
type Entry struct{ Key, Value string }

// taken are the keys that cannot name an attribute: those that a descriptor has of
// itself, and those that requests keep for what is no free attribute. An entry
// tenant, plan or region, however, is the request's tenant, plan or region.
func taken(key string) bool {
	switch key {
	case Domain, Shape, Limit, "route", "method", "route_class", "principal", "principals", "principal_type", "principal_id":
		return true
	}
	return false
}

// prefix begins the name of an entry whose key is taken.
const prefix = "entry."

// Names appends the attribute of each entry to dst: its key. A key that is taken
// has entry. in front, the second entry of a key #2 behind it, and so on. Characters
// that a policy cannot name, % and # are percent-encoded.
func Names(dst []string, entries []Entry) []string {
	for i := range entries {
		nth := 1
		for j := range i {
			if entries[j].Key == entries[i].Key {
				nth++
			}
		}
		dst = append(dst, name(entries[i].Key, nth))
	}
	return dst
}

func name(key string, nth int) string {
	out := escape(key, "%#")
	if taken(key) || strings.HasPrefix(out, prefix) {
		out = prefix + out
	}
	if nth > 1 {
		out += "#" + strconv.Itoa(nth)
	}
	return shorten(out, maxName, "%~")
}

// ShapeOf is the value of the attribute descriptor: the keys of all entries, in
// order, with / between them. In a key %, / and * are percent-encoded, and whatever
// is not printable ASCII.
func ShapeOf(entries []Entry) string {
	var b strings.Builder
	for i := range entries {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(escape(entries[i].Key, "%/*"))
	}
	return shorten(b.String(), maxValue, "#")
}

// Value is the value that the attribute of a name has for the value of an entry: the
// same, unless it is empty (policies take that for absent: it becomes a NUL), or
// longer than requests carry.
func Value(name, value string) string {
	if strings.Trim(value, "\x00") == "" {
		value += "\x00"
	}
	return shorten(value, Longest(name), "#")
}

// Longest is how many bytes the value of a name may have.
func Longest(name string) int {
	if name == "tenant" {
		return maxTenant
	}
	return maxValue
}

// LongestPrefix is how many bytes of a value surely stand as they are, however long
// it is: no prefix that a policy matches may be longer.
func LongestPrefix(name string) int { return Longest(name) - sum - len("#") - (utf8Max - 1) }
