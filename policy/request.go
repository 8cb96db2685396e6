package policy

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

// The bounds of a request, in bytes and counts.
const (
	MaxTenant     = 64
	MaxPrincipals = 8
	MaxAttributes = 16
	MaxCosts      = 16
	MaxValue      = 256  // of an attribute, principal id, plan or region
	MaxRoute      = 1024 // without query and fragment
	MaxRawRoute   = 8192
)

// Request is who asks for what: the values that policies match and count by. An
// empty value is an absent one.
type Request struct {
	Tenant     string
	Principals []Principal // of distinct types
	Route      string      // METHOD:/path; query and fragment are cut off before anything looks at it
	Plan       string
	Region     string
	Attributes []Attribute // with distinct names
	Cost       uint64      // tokens, 0 … bucket.MaxAmount; 0 looks
	Costs      []PolicyCost
}

// PolicyCost is what a request costs by one policy, in place of Request.Cost.
// One that names no policy that applies changes nothing. Costs are for distinct
// policies.
type PolicyCost struct {
	Policy string
	Cost   uint64 // 0 … bucket.MaxAmount
}

// Principal is who asks, in one of their roles: user, ip, api_key, or another name.
type Principal struct{ Type, ID string }

// Attribute is a free name and value. Where a principal has the name as its
// type, the principal is what policies see.
type Attribute struct{ Name, Value string }

// Validate returns an InvalidArgument error that names the first field out of
// bounds. Counts and lengths are judged before anything is read; a valid request
// costs no allocation.
func (r *Request) Validate() error {
	if err := r.checkBounds(); err != nil {
		return err
	}
	for _, f := range [...]struct{ name, value string }{
		{"tenant", r.Tenant}, {"route", r.Route}, {"plan", r.Plan}, {"region", r.Region},
	} {
		if !utf8.ValidString(f.value) {
			return fault.Field(f.name, "not UTF-8")
		}
	}
	if !validRoute(r.Route) {
		return fault.Field("route", "%q, want METHOD:/path such as GET:/v1/items", r.Route)
	}
	for i := range r.Principals {
		if err := r.checkPrincipal(i); err != nil {
			return err
		}
	}
	for i := range r.Attributes {
		if err := r.checkAttribute(i); err != nil {
			return err
		}
	}
	return r.checkCosts()
}

// checkBounds judges counts, lengths and numbers.
func (r *Request) checkBounds() error {
	switch {
	case len(r.Principals) > MaxPrincipals:
		return fault.Field("principals", "%d of them, want at most %d", len(r.Principals), MaxPrincipals)
	case len(r.Attributes) > MaxAttributes:
		return fault.Field("attributes", "%d of them, want at most %d", len(r.Attributes), MaxAttributes)
	case len(r.Tenant) > MaxTenant:
		return fault.Field("tenant", "%d bytes, want at most %d", len(r.Tenant), MaxTenant)
	case len(r.Plan) > MaxValue:
		return fault.Field("plan", "%d bytes, want at most %d", len(r.Plan), MaxValue)
	case len(r.Region) > MaxValue:
		return fault.Field("region", "%d bytes, want at most %d", len(r.Region), MaxValue)
	case len(r.Route) > MaxRawRoute:
		return fault.Field("route", "%d bytes, want at most %d", len(r.Route), MaxRawRoute)
	case len(cutRoute(r.Route)) > MaxRoute:
		return fault.Field("route", "%d bytes without query and fragment, want at most %d", len(cutRoute(r.Route)), MaxRoute)
	case len(r.Costs) > MaxCosts:
		return fault.Field("costs", "%d of them, want at most %d", len(r.Costs), MaxCosts)
	case r.Cost > bucket.MaxAmount:
		return fault.Field("cost", "%d, want 0 … %d", r.Cost, bucket.MaxAmount)
	}
	for i, p := range r.Principals {
		if len(p.Type) > maxNameBytes {
			return fieldAt("principals", i, "type", "%d bytes, want at most %d", len(p.Type), maxNameBytes)
		}
		if len(p.ID) > MaxValue {
			return fieldAt("principals", i, "id", "%d bytes, want at most %d", len(p.ID), MaxValue)
		}
	}
	for i, a := range r.Attributes {
		if len(a.Name) > maxNameBytes {
			return fieldAt("attributes", i, "name", "%d bytes, want at most %d", len(a.Name), maxNameBytes)
		}
		if len(a.Value) > MaxValue {
			return fieldAt("attributes", i, "value", "%d bytes, want at most %d", len(a.Value), MaxValue)
		}
	}
	return nil
}

func (r *Request) checkPrincipal(i int) error {
	p := &r.Principals[i]
	switch {
	case p.ID == "":
		return fieldAt("principals", i, "id", "empty, want an id")
	case !utf8.ValidString(p.ID):
		return fieldAt("principals", i, "id", "not UTF-8")
	}
	if err := checkFree(p.Type); err != nil {
		return fieldAt("principals", i, "type", "%v", err)
	}
	for j := range i {
		if r.Principals[j].Type == p.Type {
			return fieldAt("principals", i, "type", "a second %q, want one principal of each type", p.Type)
		}
	}
	return nil
}

func (r *Request) checkAttribute(i int) error {
	a := &r.Attributes[i]
	if !utf8.ValidString(a.Value) {
		return fieldAt("attributes", i, "value", "not UTF-8")
	}
	if err := checkFree(a.Name); err != nil {
		return fieldAt("attributes", i, "name", "%v", err)
	}
	for j := range i {
		if r.Attributes[j].Name == a.Name {
			return fieldAt("attributes", i, "name", "a second %q, want distinct names", a.Name)
		}
	}
	return nil
}

func (r *Request) checkCosts() error {
	for i := range r.Costs {
		c := &r.Costs[i]
		switch {
		case c.Cost > bucket.MaxAmount:
			return fieldAt("costs", i, "cost", "%d, want 0 … %d", c.Cost, bucket.MaxAmount)
		case checkID(c.Policy) != nil:
			return fieldAt("costs", i, "policy", "%v", checkID(c.Policy))
		}
		for j := range i {
			if r.Costs[j].Policy == c.Policy {
				return fieldAt("costs", i, "policy", "a second %q, want one cost for each policy", c.Policy)
			}
		}
	}
	return nil
}

// costOf is the cost of r by a policy, before the policy's own.
func (r *Request) costOf(id string) uint64 {
	for i := range r.Costs {
		if r.Costs[i].Policy == id {
			return r.Costs[i].Cost
		}
	}
	return r.Cost
}

func (r *Request) hasPrincipal(kind string) bool {
	for i := range r.Principals {
		if r.Principals[i].Type == kind {
			return true
		}
	}
	return false
}

// checkFree says what is wrong with the name of a principal type or free attribute.
func checkFree(name string) error {
	if fieldOf(name) != fieldFree || slices.Contains(short, name) {
		return fault.New(fault.InvalidArgument, "%q is reserved, want another name", name)
	}
	return checkName(name)
}

// validRoute accepts METHOD:/path and the absence of a route.
func validRoute(route string) bool {
	if route == "" {
		return true
	}
	method, path, ok := strings.Cut(route, ":")
	if !ok || method == "" || !strings.HasPrefix(path, "/") {
		return false
	}
	return validMethod(method)
}

// validMethod accepts what a method is made of, and the empty text.
func validMethod(method string) bool {
	for i := range len(method) {
		c := method[i]
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// fieldAt is fault.Field for list[i].name.
func fieldAt(list string, i int, name, format string, args ...any) error {
	return fault.Field(list+"["+strconv.Itoa(i)+"]."+name, format, args...)
}
