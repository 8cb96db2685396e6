package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ringlimit/ringlimit/api/route"
)

// specificity says how closely a match describes its requests.
type specificity struct {
	exact  int // conditions on one value
	prefix int // over all prefixes: their lengths, and one for each
}

func (m Match) specificity() (s specificity) {
	for _, c := range m {
		if x := c.parts(); x.prefix {
			s.prefix += 1 + len(x.text)
		} else {
			s.exact++
		}
	}
	return s
}

// moreSpecific is the order within a family: more exact conditions, then longer
// prefixes in all (a "*" being shorter than any other), then the smaller id.
func moreSpecific(a, b *entry) bool {
	return cmp.Or(
		cmp.Compare(b.specific.exact, a.specific.exact),
		cmp.Compare(b.specific.prefix, a.specific.prefix),
		strings.Compare(a.policy.ID, b.policy.ID),
	) < 0
}

// yields says whether a gives way to b, which applies to the same request: they
// share a family and b is more specific. A policy in shadow mode gives way like
// any other, but none that is enforced gives way to it: trying out a policy
// must not lift the one in force. Disabled ones do not apply at all.
func (a *entry) yields(b *entry) bool {
	if a == b || a.policy.family() != b.policy.family() || !moreSpecific(b, a) {
		return false
	}
	return a.policy.Mode == Shadow || b.policy.Mode == Enforce
}

// selectFamilies drops the policies that give way to another from those that
// apply, in place.
func selectFamilies(applied []*entry) []*entry {
	named := func(e *entry) bool { return e.policy.Family != "" }
	if !slices.ContainsFunc(applied, named) {
		return applied // each is alone in the family of its id
	}
	var stack [64]bool
	gone := stack[:]
	if len(applied) > len(stack) {
		gone = make([]bool, len(applied))
	}
	for i, a := range applied {
		gone[i] = slices.ContainsFunc(applied, a.yields)
	}
	kept := applied[:0]
	for i, a := range applied {
		if !gone[i] {
			kept = append(kept, a)
		}
	}
	return kept
}

// checkFamilies refuses two policies of one family with the same match: none
// would be the more specific.
func (s *Set) checkFamilies() error {
	shared := map[string]bool{} // families that some policy names
	for _, p := range s.Policies {
		if p.Family != "" {
			shared[p.Family] = true
		}
	}
	if len(shared) == 0 {
		return nil
	}
	seen := map[string]int{}
	for i, p := range s.Policies {
		if !shared[p.family()] {
			continue
		}
		key := p.family() + "\x00" + p.Match.encoded()
		if first, ok := seen[key]; ok {
			return at(i, errSameMatch(p, s.Policies[first]))
		}
		seen[key] = i
	}
	return nil
}

// checkFamiliesOf is checkFamilies for what changed.
func (s *Set) checkFamiliesOf(changed []*Policy) error {
	var family func(q *Policy) []*Policy // those of changed that share its family
	if len(changed) == 1 {
		id := changed[0].family()
		family = func(q *Policy) []*Policy {
			if q.family() != id {
				return nil
			}
			return changed
		}
	} else {
		byFamily := make(map[string][]*Policy, len(changed))
		for _, p := range changed {
			byFamily[p.family()] = append(byFamily[p.family()], p)
		}
		family = func(q *Policy) []*Policy { return byFamily[q.family()] }
	}
	for _, q := range s.Policies {
		for _, p := range family(q) {
			if p.ID != q.ID && slices.Equal(p.Match, q.Match) {
				return named(p, errSameMatch(p, q))
			}
		}
	}
	return nil
}

func errSameMatch(p, q *Policy) error {
	return invalid("match", "%s, the same as that of %s, which is of the family %s too; "+
		"want matches of which one is more specific, or another family", p.Match, q.ID, p.family())
}

// encoded tells all matches apart.
func (m Match) encoded() string {
	var b []byte
	for _, c := range m {
		b = route.Append(route.Append(b, c.Name), c.Value)
	}
	return string(b)
}

// String is m as a file may write it.
func (m Match) String() string {
	parts := make([]string, len(m))
	for i, c := range m {
		parts[i] = c.Name + ": " + c.Value
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
