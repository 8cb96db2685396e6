package control

import (
	"slices"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/policy"
)

// PutPolicies puts all policies of a file into the set, or none. What the file
// does not mention stays, unless Prune; so do no_match and route_classes where
// the file left them out (Set.Omitted). A home other than the cluster's is refused.
//
// A policy that the file does not change keeps its version. With IfMatch no
// policy that it changes, nor what it changes beside them, may be above that
// version. A file of one policy with IfMatch is a put of that policy: it is
// judged, and gets a new version, also for equal content.
type PutPolicies struct {
	Set     *policy.Set `json:"set"`
	Prune   bool        `json:"prune,omitempty"` // policies that the file does not have are deleted
	IfMatch *uint64     `json:"if_match,omitempty"`
	By      Author      `json:"by"`
}

// PutPolicy puts one policy. With IfMatch that must be the policy's version, 0
// for a new one, and equal content makes a new version too; without, equal
// content changes nothing.
type PutPolicy struct {
	Policy  *policy.Policy `json:"policy"`
	IfMatch *uint64        `json:"if_match,omitempty"`
	By      Author         `json:"by"`
}

// DeletePolicy deletes a policy and its overrides. Its versions are never used again.
type DeletePolicy struct {
	ID      string  `json:"id"`
	IfMatch *uint64 `json:"if_match,omitempty"`
	By      Author  `json:"by"`
}

// Rollback makes a new version of a policy with the content of an old one, also
// of a policy that was deleted.
type Rollback struct {
	ID      string  `json:"id"`
	To      uint64  `json:"to"`
	IfMatch *uint64 `json:"if_match,omitempty"`
	By      Author  `json:"by"`
}

func (PutPolicies) kind() string  { return "put_policies" }
func (PutPolicy) kind() string    { return "put_policy" }
func (DeletePolicy) kind() string { return "delete_policy" }
func (Rollback) kind() string     { return "rollback" }

func (c PutPolicies) apply(s *State) (bool, error) {
	e, err := s.edit(ActionPut, c.By)
	if err != nil {
		return false, err
	}
	if c.Set == nil {
		return false, fault.Field("set", "missing, want policies")
	}
	if err := checkFile(c.Set); err != nil {
		return false, err
	}
	omits := func(key string) bool { return slices.Contains(c.Set.Omitted, key) }
	if !omits("home") && !slices.Equal(c.Set.Home, s.Policies.Home) {
		return false, fault.Field("home", "%v, want %v: it is fixed when the cluster is made", c.Set.Home, s.Policies.Home)
	}
	if c.Prune || !omits("no_match") {
		e.next.NoMatch = c.Set.NoMatch
	}
	if c.Prune || !omits("route_classes") {
		e.next.RouteClasses = c.Set.RouteClasses
	}
	single := c.IfMatch != nil && len(c.Set.Policies) == 1
	e.merge(c.Set.Policies, c.Prune, func(now *policy.Policy) bool { return single && now.Version == *c.IfMatch })
	if c.IfMatch != nil {
		if err := e.notAbove(*c.IfMatch, single, c.Set.Policies); err != nil {
			return false, err
		}
	}
	return e.done()
}

// checkFile refuses a set that Parse cannot have made.
func checkFile(s *policy.Set) error {
	for i, p := range s.Policies {
		if i > 0 && s.Policies[i-1].ID >= p.ID {
			return fault.Field("policies", "%q twice or out of order, want distinct ids in order", p.ID)
		}
	}
	if len(s.Overrides) > 0 {
		return fault.Field("overrides", "%d of them, want none in a file", len(s.Overrides))
	}
	return nil
}

func (c PutPolicy) apply(s *State) (bool, error) {
	e, err := s.edit(ActionPut, c.By)
	if err != nil {
		return false, err
	}
	if c.Policy == nil {
		return false, fault.Field("policy", "missing, want a policy")
	}
	now, known := s.Policies.Find(c.Policy.ID)
	if err := s.match(c.Policy.ID, now, c.IfMatch); err != nil {
		return false, err
	}
	if known && c.IfMatch == nil && now.Same(c.Policy) {
		return false, nil
	}
	e.put(now, c.Policy)
	return e.done()
}

func (c DeletePolicy) apply(s *State) (bool, error) {
	e, err := s.edit(ActionDelete, c.By)
	if err != nil {
		return false, err
	}
	now, known := s.Policies.Find(c.ID)
	if err := s.match(c.ID, now, c.IfMatch); err != nil {
		return false, err
	}
	if !known {
		return false, fault.New(fault.NotFound, "there is no policy %q", c.ID)
	}
	e.drop(now)
	e.next = e.next.Without(c.ID)
	return e.done()
}

func (c Rollback) apply(s *State) (bool, error) {
	e, err := s.edit(ActionRollback, c.By)
	if err != nil {
		return false, err
	}
	now, known := s.Policies.Find(c.ID)
	if err := s.match(c.ID, now, c.IfMatch); err != nil {
		return false, err
	}
	old, ok := s.version(c.ID, c.To)
	switch {
	case !ok:
		return false, fault.New(fault.NotFound, "no version %d of policy %q is kept", c.To, c.ID)
	case known && now.Same(old):
		return false, nil
	}
	e.put(now, old)
	e.entry.Detail = "to version " + number(c.To)
	return e.done()
}

// match judges the If-Match of a change to one policy; now is nil if there is none.
func (s *State) match(id string, now *policy.Policy, ifMatch *uint64) error {
	if ifMatch == nil {
		return nil
	}
	version := uint64(0)
	if now != nil {
		version = now.Version
	}
	if version != *ifMatch {
		return stale(id, *ifMatch, version)
	}
	return nil
}
