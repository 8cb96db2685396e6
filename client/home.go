package client

import (
	"strings"

	"github.com/ringlimit/ringlimit/api/route"
)

// slot returns the slot of the request's home: the hash of its home values, in
// order. ok is false if it lacks one of them. The nodes compute the same, so a
// difference costs a redirect and nothing else.
func (r *Request) slot(h route.Hash, home []string) (slot uint16, ok bool) {
	var stack [256]byte
	buf := stack[:0]
	for _, name := range home {
		v := r.value(name)
		if v == "" {
			return 0, false
		}
		buf = route.Append(buf, v)
	}
	return h.Slot(buf), true
}

// value returns the value of a home attribute: a field, what a principal of
// that type is called, or else a free attribute. Empty is absent.
func (r *Request) value(name string) string {
	switch name {
	case "tenant":
		return r.Tenant
	case "route":
		return cutRoute(r.Route)
	case "method":
		method, _, ok := strings.Cut(cutRoute(r.Route), ":")
		if !ok {
			return ""
		}
		return method
	case "plan":
		return r.Plan
	case "region":
		return r.Region
	}
	for i := range r.Principals {
		if r.Principals[i].Type == name {
			return r.Principals[i].ID
		}
	}
	return r.Attributes[name]
}

// cutRoute drops query and fragment.
func cutRoute(r string) string {
	if i := strings.IndexAny(r, "?#"); i >= 0 {
		return r[:i]
	}
	return r
}
