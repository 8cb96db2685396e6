package policy

import "slices"

// maxRecent bounds the policies that Update keeps apart from the rest.
const maxRecent = 512

// Update returns the index of another valid set under the same keys. As far as
// the set shares its policies with that of ix it costs little: a change of one
// policy among 100,000 is compiled in about a millisecond. The set's policies
// are by id.
func (ix *Index) Update(s *Set) (*Index, error) {
	if s == ix.set {
		return ix, nil
	}
	if !slices.Equal(s.Home, ix.set.Home) {
		return ix.compile(s)
	}
	out := &Index{hasher: ix.hasher, set: s, classes: ix.classes, base: ix.base}
	if !slices.EqualFunc(s.RouteClasses, ix.set.RouteClasses, RouteClass.equal) {
		out.classes = newClassifier(s.RouteClasses)
	}
	recent, gone := ix.base.changes(s, ix.base.overridden(s))
	if len(recent) > maxRecent {
		return ix.compile(s)
	}
	out.gone = gone
	var err error
	out.recent, err = out.part(recent)
	if err == nil && !out.distinct() {
		return ix.compile(s) // which says what is wrong
	}
	return out, err
}

func (a RouteClass) equal(b RouteClass) bool {
	return a.Name == b.Name && slices.Equal(a.Routes, b.Routes)
}

// compile is Compile with the keys of ix.
func (ix *Index) compile(s *Set) (*Index, error) {
	h := ix.hasher
	h.home = nil
	for _, name := range s.Home {
		h.home = append(h.home, termOf(name))
	}
	out := &Index{hasher: h, set: s, classes: newClassifier(s.RouteClasses), recent: new(part)}
	var err error
	out.base, err = out.part(s.Policies)
	return out, err
}

// changes returns the policies of s that p does not have as they are now, and
// marks the places in p that do not hold any more. Policies named in changed
// count as changed. While both have the same policy it looks at the pointers alone.
func (p *part) changes(s *Set, changed map[string]bool) (recent []*Policy, gone marks) {
	gone = make(marks, (len(p.set)+63)/64)
	i := 0
	for _, x := range s.Policies {
		for ; i < len(p.set) && p.set[i] != x && p.set[i].ID < x.ID; i++ {
			gone.add(int32(i))
		}
		switch {
		case i < len(p.set) && p.set[i] == x && (len(changed) == 0 || !changed[x.ID]):
			i++
			continue
		case i < len(p.set) && p.set[i].ID == x.ID:
			gone.add(int32(i))
			i++
		}
		if recent = append(recent, x); len(recent) > maxRecent {
			return recent, gone // too many: never mind the rest
		}
	}
	for ; i < len(p.set); i++ {
		gone.add(int32(i))
	}
	return recent, gone
}

// overridden returns the policies whose overrides in s are not those that p was compiled with.
func (p *part) overridden(s *Set) map[string]bool {
	changed := map[string]bool{}
	was, now := p.overrides, s.Overrides
	for len(was) > 0 || len(now) > 0 {
		switch {
		case len(was) > 0 && len(now) > 0 && was[0] == now[0]:
			was, now = was[1:], now[1:]
		case len(now) == 0 || len(was) > 0 && was[0].Compare(now[0]) < 0:
			changed[was[0].Policy] = true
			was = was[1:]
		default:
			changed[now[0].Policy] = true
			if len(was) > 0 && was[0].Compare(now[0]) == 0 {
				was = was[1:]
			}
			now = now[1:]
		}
	}
	return changed
}

// distinct says whether no number of the recent part is one of the base.
func (ix *Index) distinct() bool {
	for n := range ix.recent.numbers {
		if i, ok := ix.base.numbers[n]; ok && !ix.gone.has(i) {
			return false
		}
	}
	return true
}
