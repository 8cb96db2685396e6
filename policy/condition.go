package policy

import (
	"slices"
	"strings"
)

// Condition is one entry of a match: the value of a name must be Value, begin
// with it ("prefix*"), or be there at all ("*").
type Condition struct{ Name, Value string }

// Match is conditions with distinct names, by name. All of them must hold.
type Match []Condition

// On returns the match of name, value, name, value ….
func On(pairs ...string) Match {
	m := make(Match, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m = append(m, Condition{pairs[i], pairs[i+1]})
	}
	m.sort()
	return m
}

func (m Match) sort() {
	slices.SortStableFunc(m, func(a, b Condition) int { return strings.Compare(a.Name, b.Name) })
}

// Get returns the value of a name, "" if m has no condition on it.
func (m Match) Get(name string) string {
	for _, c := range m {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// term is a name with where its value comes from.
type term struct {
	name  string
	field field
}

func termOf(name string) term { return term{name, fieldOf(name)} }

// cond is a Condition, taken apart.
type cond struct {
	term
	text   string
	prefix bool
}

func (c Condition) parts() cond {
	text, prefix := strings.CutSuffix(c.Value, "*")
	return cond{termOf(c.Name), text, prefix}
}

// holds judges a value; an absent ("") one never holds.
func (c *cond) holds(value string) bool {
	if c.prefix {
		return value != "" && strings.HasPrefix(value, c.text)
	}
	return value == c.text
}

// values reads the values of one request. It is a small value of the stack; the
// route is cut once, and its class is known to whoever made it.
type values struct {
	r     *Request
	route string
	class string
}

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
	case fieldClass:
		return v.class
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
