package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxNameBytes bounds the names of attributes and principal types.
const maxNameBytes = 64

// field says where the value of a name comes from.
type field uint8

const (
	fieldFree field = iota // a principal of that type if the request has one, else a free attribute
	fieldTenant
	fieldRoute
	fieldMethod // the part of the route before the first colon
	fieldPlan
	fieldRegion
	fieldClass // of the route, by the set's route classes

	fieldLast = fieldClass
)

// fieldOf says what a name stands for. All but fieldFree are reserved: no
// principal type or free attribute may have such a name.
func fieldOf(name string) field {
	switch name {
	case "tenant":
		return fieldTenant
	case "route":
		return fieldRoute
	case "method":
		return fieldMethod
	case "plan":
		return fieldPlan
	case "region":
		return fieldRegion
	case "route_class":
		return fieldClass
	default:
		return fieldFree
	}
}

// checkName says what is wrong with the name of an attribute or principal type.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("empty, want a name")
	case len(name) > maxNameBytes:
		return fmt.Errorf("%d bytes, want at most %d", len(name), maxNameBytes)
	case !utf8.ValidString(name):
		return fmt.Errorf("not UTF-8")
	case hasControl(name):
		return fmt.Errorf("%q, want no control characters", name)
	}
	return nil
}

// hasControl says whether valid UTF-8 has a C0 or C1 control character or DEL.
func hasControl(s string) bool {
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return true
		}
	}
	return false
}

// short are the keys by which a request gives one principal: no attribute can
// have such a name, and a policy names the type instead.
var short = []string{"principal", "principals", "principal_type", "principal_id"}

// checkNew says what is wrong with a name in a policy that is new. Those in
// force may have been put by a build that was less strict.
func checkNew(name string) error {
	switch {
	case slices.Contains(short, name):
		return fmt.Errorf("%q, want the type of a principal, such as user, ip or api_key", name)
	case !printable(name):
		return fmt.Errorf("%q, want printable ASCII", name)
	}
	return nil
}

// checkNewNames judges the names and routes in a policy that is new.
func (p *Policy) checkNewNames() error {
	for _, c := range p.Match {
		err := checkNew(c.Name)
		if err == nil && c.Name == "route" && checkValue(c) == nil {
			err = checkNewRoute(c.Value)
		}
		if err != nil {
			return invalid("match."+c.Name, "%v", err)
		}
	}
	return checkNewList("scope", p.Scope)
}

func checkNewList(path string, names []string) error {
	for i, name := range names {
		if err := checkNew(name); err != nil {
			return invalid(fmt.Sprintf("%s[%d]", path, i), "%v", err)
		}
	}
	return nil
}

// printable says whether s is printable ASCII alone.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// cutRoute drops query and fragment.
func cutRoute(route string) string {
	if i := strings.IndexByte(route, '?'); i >= 0 {
		route = route[:i]
	}
	if i := strings.IndexByte(route, '#'); i >= 0 {
		route = route[:i]
	}
	return route
}

// methodOf returns the part of a route before its first colon, "" without one.
func methodOf(route string) string {
	method, _, ok := strings.Cut(route, ":")
	if !ok {
		return ""
	}
	return method
}
