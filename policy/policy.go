// Package policy says which policies a request falls under and which buckets it
// counts against. It parses and validates policy files, tells two sets of
// policies apart, and compiles a set into an index that answers without looking
// at those policies that cannot match.
//
// A name in a match, a scope or the home is reserved (tenant, route, method,
// route_class, plan, region), or the type of a principal if the request has one
// of that type, else a free attribute. An empty value counts as absent.
//
// The package is pure: no clock, goroutine, socket or log. An Index never
// changes, so any number of goroutines may ask it at once.
package policy

import (
	"slices"
	"strings"

	"github.com/ringlimit/ringlimit/bucket"
)

// Action is what happens to a request that no policy matches.
type Action uint8

// The actions. The zero Action is Allow, the default of a file.
const (
	Allow Action = iota
	Deny
)

// Set is all policies of a cluster at one time. It is a value that nobody
// changes once it is shared, and neither are the policies it points to: two sets
// share those that are the same in both.
type Set struct {
	Home         []string // names whose values say where a request is decided; never empty
	NoMatch      Action
	RouteClasses []RouteClass // in the order in which they are tried
	Policies     []*Policy    // by id, except in a set that is still to be validated
	Overrides    []*Override  // of the control state, by policy and key; no file has them
	Omitted      []string     // of home, no_match and route_classes: what the file left out; the control state has none
}

// RouteClass names a set of routes: the attribute route_class of a request is
// the first class with a route that fits.
type RouteClass struct {
	Name   string   `json:"name"`
	Routes []string `json:"routes"` // exact or "prefix*", as the route in a match
}

// Policy is one rule: which requests it matches, what it counts together, its
// limit. It applies to a request that satisfies all of Match and has all of
// Scope, unless a more specific policy of its family does too.
//
// Its buckets live in the slot of the home values if Scope holds all home names,
// else in the slot of the scope's own names and values: by the scope alone, never
// by what else a request has.
type Policy struct {
	ID      string // printable ASCII, 1 … 128 bytes, unique in its set
	Version uint64 // given by the control state; 0: not given yet
	Family  string // of those policies that share one, a request gets the most specific; "": its own id
	Match   Match  // empty matches any request
	Scope   []string
	Limit   bucket.Limit // Burst is Amount where the algorithm has no burst
	Cost    Cost

	OnUnavailable OnUnavailable
	OnStateLoss   StateLoss
	Mode          Mode
	Consistency   Consistency

	Source string // where it was read, as file:line; no part of what the policy says
}

// family is the family that p belongs to.
func (p *Policy) family() string {
	if p.Family == "" {
		return p.ID
	}
	return p.Family
}

// Find returns the policy of an id from a set whose policies are by id.
func (s *Set) Find(id string) (*Policy, bool) {
	i, ok := s.find(id)
	if !ok {
		return nil, false
	}
	return s.Policies[i], true
}

func (s *Set) find(id string) (int, bool) {
	return slices.BinarySearchFunc(s.Policies, id, func(p *Policy, id string) int { return strings.Compare(p.ID, id) })
}

// With returns s with one policy added or put in the place of that of its id.
// Nothing is judged: see CheckChanged.
func (s *Set) With(p *Policy) *Set {
	out := *s
	i, ok := s.find(p.ID)
	if ok {
		out.Policies = slices.Clone(s.Policies)
		out.Policies[i] = p
	} else {
		out.Policies = make([]*Policy, 0, len(s.Policies)+1)
		out.Policies = append(append(append(out.Policies, s.Policies[:i]...), p), s.Policies[i:]...)
	}
	return &out
}

// Without returns s without the policy of an id.
func (s *Set) Without(id string) *Set {
	out := *s
	if i, ok := s.find(id); ok {
		out.Policies = append(slices.Clone(s.Policies[:i]), s.Policies[i+1:]...)
	}
	return &out
}

// normal returns p in its canonical form: defaults filled in, and one way to say
// each thing. Policies that say the same are then Same.
func (p *Policy) normal() *Policy {
	out := *p
	if out.Family == out.ID {
		out.Family = ""
	}
	if !hasBurst(out.Limit.Algorithm) && out.Limit.Burst == 0 {
		out.Limit.Burst = out.Limit.Amount
	}
	if out.Match == nil {
		out.Match = Match{}
	}
	if out.Scope == nil {
		out.Scope = []string{}
	}
	out.Cost = out.Cost.normal()
	out.OnUnavailable = out.OnUnavailable.normal()
	return &out
}

// Same says whether two policies say the same: all but version and source.
func (p *Policy) Same(q *Policy) bool {
	a, b := p.normal(), q.normal()
	return a.ID == b.ID && a.Family == b.Family && slices.Equal(a.Match, b.Match) && slices.Equal(a.Scope, b.Scope) &&
		a.Limit == b.Limit && a.Cost.same(b.Cost) && a.OnUnavailable == b.OnUnavailable &&
		a.OnStateLoss == b.OnStateLoss && a.Mode == b.Mode && a.Consistency == b.Consistency
}

// hasBurst says whether a limit of the algorithm can hold more than its amount.
func hasBurst(a bucket.Algorithm) bool { return a == bucket.TokenBucket || a == bucket.LeakyBucket }
