package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkHomes refuses a set in which one request could fall under two policies
// whose buckets live in different slots, and so perhaps in different groups:
// taking from both is not possible yet. Two buckets share a slot if both scopes
// hold all home names, or if the scopes are the same.
func (s *Set) checkHomes() error {
	class := make([]string, len(s.Policies)) // equal classes share a slot
	classes := map[string]bool{}
	for i := range s.Policies {
		class[i] = s.class(&s.Policies[i])
		classes[class[i]] = true
	}
	if len(classes) < 2 {
		return nil
	}
	for a, b := range s.candidates() {
		if class[a.at] != class[b.at] && !a.contradicts(b) {
			first, second := min(a.at, b.at), max(a.at, b.at)
			p, q := &s.Policies[first], &s.Policies[second]
			return invalid(fmt.Sprintf("policies[%d].scope", second),
				"[%s] and the scope [%s] of policies[%d] (%s) can apply to one request but count in different places, "+
					"which is not available yet; want both to hold %s, the same scope, or matches that exclude each other",
				strings.Join(q.Scope, ", "), strings.Join(p.Scope, ", "), first, p.ID, "home ["+strings.Join(s.Home, ", ")+"]")
		}
	}
	return nil
}

// class names the rule that gives a policy's buckets their slots: "" for the home, else the scope.
func (s *Set) class(p *Policy) string {
	if holdsAll(p.Scope, s.Home) {
		return ""
	}
	names := slices.Sorted(slices.Values(p.Scope))
	return "\x00" + strings.Join(names, "\x00") // names have no control characters
}

func holdsAll(scope, home []string) bool {
	for _, name := range home {
		if !slices.Contains(scope, name) {
			return false
		}
	}
	return true
}

// matcher is a policy's conditions, by name, with the method that its route implies.
type matcher struct {
	at    int // index in the set
	conds []cond
}

func (a matcher) contradicts(b matcher) bool {
	for i, j := 0, 0; i < len(a.conds) && j < len(b.conds); {
		switch c := strings.Compare(a.conds[i].name, b.conds[j].name); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			if a.conds[i].contradicts(b.conds[j]) {
				return true
			}
			i, j = i+1, j+1
		}
	}
	return false
}

// candidates yields the pairs of policies that may meet: all but those that the
// exact values of one name, the one that leaves the fewest pairs, tell apart.
func (s *Set) candidates() func(yield func(a, b matcher) bool) {
	all := make([]matcher, len(s.Policies))
	for i := range s.Policies {
		all[i] = matcher{i, s.Policies[i].implied()}
	}
	name := divider(all)
	byValue := map[string][]matcher{}
	var rest []matcher
	var order []string // of values, so that the same pair is found first each time
	for _, m := range all {
		i := slices.IndexFunc(m.conds, func(c cond) bool { return !c.prefix && c.name == name })
		if i < 0 {
			rest = append(rest, m)
			continue
		}
		value := m.conds[i].text
		if byValue[value] == nil {
			order = append(order, value)
		}
		byValue[value] = append(byValue[value], m)
	}
	return func(yield func(a, b matcher) bool) {
		if !pairs(rest, nil, yield) {
			return
		}
		for _, value := range order {
			if !pairs(byValue[value], rest, yield) {
				return
			}
		}
	}
}

// divider returns the name whose exact values leave the fewest pairs to judge,
// "" if no policy has an exact value.
func divider(all []matcher) string {
	share := map[cond]int{} // policies with an exact condition
	for _, m := range all {
		for _, c := range m.conds {
			if !c.prefix {
				share[c]++
			}
		}
	}
	// Each policy meets those of its own value and those without the name.
	meets, with := map[string]int{}, map[string]int{}
	for c, n := range share {
		meets[c.name] += n * n
		with[c.name] += n
	}
	best, least := "", len(all)*len(all)
	for _, name := range slices.Sorted(maps.Keys(with)) {
		rest := len(all) - with[name]
		if cost := meets[name] + 2*rest*with[name] + rest*rest; cost < least {
			best, least = name, cost
		}
	}
	return best
}

// pairs yields each pair within some, and each of some with each of others.
func pairs(some, others []matcher, yield func(a, b matcher) bool) bool {
	for i, a := range some {
		for _, b := range some[i+1:] {
			if !yield(a, b) {
				return false
			}
		}
		for _, b := range others {
			if !yield(a, b) {
				return false
			}
		}
	}
	return true
}

// implied returns the conditions of p by name, and the method if the route says it.
func (p *Policy) implied() []cond {
	conds := p.conditions()
	if m := methodOf(p.Match["route"]); m != "" && p.Match["method"] == "" {
		conds = append(conds, condition("method", m))
		slices.SortFunc(conds, func(a, b cond) int { return strings.Compare(a.name, b.name) })
	}
	return conds
}
