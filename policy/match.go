package policy

import "slices"

// Match appends a Hit to dst for each policy that matches r and whose whole
// scope r has, in the order of policy ids. With room in dst it does not
// allocate, unless more than 64 policies come into question. r is valid.
func (ix *Index) Match(r *Request, dst []Hit) []Hit {
	var stack [64]int32
	v := valuesOf(r)
	found := ix.collect(&v, stack[:0])
	if len(found) == 0 {
		return dst
	}
	slices.Sort(found)
	homeSlot, homeKnown := uint16(0), false
	last := int32(-1)
	for _, i := range found {
		e := &ix.policies[i]
		if i == last || !e.applies(&v) {
			continue
		}
		last = i
		h := Hit{Policy: e.policy, Number: e.number, Key: ix.bucketKey(e, &v)}
		switch {
		case !e.home:
			h.Slot = ix.scopeSlot(e, &v)
		case !homeKnown:
			homeSlot, homeKnown = ix.homeSlot(&v), true
			fallthrough
		default:
			h.Slot = homeSlot
		}
		dst = append(dst, h)
	}
	return dst
}

// collect appends the policies filed under any value of the request.
func (ix *Index) collect(v *values, dst []int32) []int32 {
	dst = append(dst, ix.rest...)
	for f := fieldTenant; f < fieldClass; f++ {
		if n := ix.fields[f]; n != nil {
			dst = n.collect(v.get(term{field: f}), dst)
		}
	}
	if len(ix.free) == 0 {
		return dst
	}
	for i := range v.r.Principals {
		p := &v.r.Principals[i]
		if n := ix.free[p.Type]; n != nil {
			dst = n.collect(p.ID, dst)
		}
	}
	for i := range v.r.Attributes {
		a := &v.r.Attributes[i]
		if n := ix.free[a.Name]; n != nil { // applies sees to principals of the same name
			dst = n.collect(a.Value, dst)
		}
	}
	return dst
}

func (n *names) collect(value string, dst []int32) []int32 {
	if value == "" {
		return dst
	}
	dst = append(dst, n.exact[value]...)
	for i := range n.prefix {
		p := &n.prefix[i]
		if p.length > len(value) {
			break
		}
		dst = append(dst, p.texts[value[:p.length]]...)
	}
	return dst
}

// applies says whether a policy's match holds and the request has its scope.
func (e *entry) applies(v *values) bool {
	for i := range e.conds {
		if !e.conds[i].holds(v.get(e.conds[i].term)) {
			return false
		}
	}
	for _, t := range e.scope {
		if v.get(t) == "" {
			return false
		}
	}
	return true
}
