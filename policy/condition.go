package policy

import (
	"maps"
	"slices"
	"strings"
)

// term is a name with where its value comes from.
type term struct {
	name  string
	field field
}

func termOf(name string) term { return term{name, fieldOf(name)} }

// cond is one entry of a match: the value of a name must be, or begin with, a text.
type cond struct {
	term
	text   string
	prefix bool
}

// condition reads a match entry: "x" is exact, "x*" a prefix, "*" any value.
func condition(name, value string) cond {
	text, prefix := strings.CutSuffix(value, "*")
	return cond{termOf(name), text, prefix}
}

// holds judges a value; an absent ("") one never holds.
func (c cond) holds(value string) bool {
	if c.prefix {
		return value != "" && strings.HasPrefix(value, c.text)
	}
	return value == c.text
}

// contradicts says whether no value satisfies both conditions on one name.
func (c cond) contradicts(d cond) bool {
	switch {
	case c.prefix && d.prefix:
		return !strings.HasPrefix(c.text, d.text) && !strings.HasPrefix(d.text, c.text)
	case c.prefix:
		return !strings.HasPrefix(d.text, c.text)
	case d.prefix:
		return !strings.HasPrefix(c.text, d.text)
	default:
		return c.text != d.text
	}
}

// conditions returns the match of p by name.
func (p *Policy) conditions() []cond {
	out := make([]cond, 0, len(p.Match)+1)
	for _, name := range slices.Sorted(maps.Keys(p.Match)) {
		out = append(out, condition(name, p.Match[name]))
	}
	return out
}

// values reads the values of one request. It is a small value of the stack; the
// route is cut once.
type values struct {
	r     *Request
	route string
}

func valuesOf(r *Request) values { return values{r, cutRoute(r.Route)} }

// get returns the value of a name, "" if the request has none.
func (v *values) get(t term) string {
	switch t.field {
	case fieldTenant:
		return v.r.Tenant
	case fieldRoute:
		return v.route
	case fieldMethod:
		return methodOf(v.route)
	case fieldPlan:
		return v.r.Plan
	case fieldRegion:
		return v.r.Region
	}
	for i := range v.r.Principals {
		if p := &v.r.Principals[i]; p.Type == t.name {
			return p.ID
		}
	}
	for i := range v.r.Attributes {
		if a := &v.r.Attributes[i]; a.Name == t.name {
			return a.Value
		}
	}
	return ""
}
