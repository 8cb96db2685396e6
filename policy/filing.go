package policy

import "slices"

// fewPolicies are judged one by one, rather than filed further.
const fewPolicies = 8

// shelf files policies by one condition of each: the one that the fewest others
// share. Those that still share it are filed again beneath, by another.
type shelf struct {
	rest   []int32 // to be judged whatever the request has
	fields [fieldLast + 1]*texts[branch]
	free   map[string]*texts[branch] // principal types and free attributes
}

// branch is what is filed under one text: one policy or more.
type branch struct {
	one  int32 // if more is nil
	more *shelf
}

// file files the policies of p that can ever apply.
func (p *part) file() *shelf {
	all := make([]int32, 0, len(p.policies))
	for i := range p.policies {
		if p.policies[i].policy.Mode != Disabled {
			all = append(all, int32(i))
		}
	}
	return p.shelf(all)
}

// shelf files some policies. Each step leaves fewer than it began with, so the
// depth is bounded by the number of conditions of a policy.
func (p *part) shelf(policies []int32) *shelf {
	n := new(shelf)
	if len(policies) <= fewPolicies {
		n.rest = policies
		return n
	}
	shared := make(map[cond]int32, len(policies))
	for _, i := range policies {
		for _, c := range p.policies[i].conds {
			shared[c]++
		}
	}
	filed := map[cond][]int32{}
	var order []cond
	for _, i := range policies {
		best, ok := p.best(i, shared, int32(len(policies)))
		if !ok {
			n.rest = append(n.rest, i)
			continue
		}
		if filed[best] == nil {
			order = append(order, best)
		}
		filed[best] = append(filed[best], i)
	}
	for _, c := range order {
		b := branch{one: filed[c][0]}
		if len(filed[c]) > 1 {
			b.more = p.shelf(slices.Clip(filed[c]))
		}
		n.names(c.term).under(c.text, c.prefix)[c.text] = b
	}
	return n
}

// best returns the condition of a policy that the fewest others share; ok is
// false if all share each of them.
func (p *part) best(i int32, shared map[cond]int32, all int32) (best cond, ok bool) {
	least := all
	for _, c := range p.policies[i].conds {
		n := shared[c]
		better := n < least || ok && n == least && (best.prefix && !c.prefix || best.prefix == c.prefix && len(c.text) > len(best.text))
		if n < all && better {
			best, least, ok = c, n, true
		}
	}
	return best, ok
}

// names returns where policies with a condition on t are filed, making it if need be.
func (n *shelf) names(t term) *texts[branch] {
	x := n.fields[t.field]
	if t.field == fieldFree {
		x = n.free[t.name]
	}
	if x != nil {
		return x
	}
	x = new(texts[branch])
	switch {
	case t.field != fieldFree:
		n.fields[t.field] = x
	case n.free == nil:
		n.free = map[string]*texts[branch]{t.name: x}
	default:
		n.free[t.name] = x
	}
	return x
}

// collect appends the policies filed under any value of the request. It keeps a
// list of shelves still to be looked through, rather than calling itself, so that
// its memory can stay on the stack.
func (n *shelf) collect(v *values, dst []int32) []int32 {
	var stack [32]*shelf
	open := append(stack[:0], n)
	for len(open) > 0 {
		n, open = open[len(open)-1], open[:len(open)-1]
		dst = append(dst, n.rest...)
		for f := fieldTenant; f <= fieldLast; f++ {
			if x := n.fields[f]; x != nil {
				dst, open = under(x, v.get(term{field: f}), dst, open)
			}
		}
		if len(n.free) == 0 {
			continue
		}
		for i := range v.r.Principals {
			if x := n.free[v.r.Principals[i].Type]; x != nil {
				dst, open = under(x, v.r.Principals[i].ID, dst, open)
			}
		}
		for i := range v.r.Attributes {
			a := &v.r.Attributes[i]
			if x := n.free[a.Name]; x != nil && !v.r.hasPrincipal(a.Name) {
				dst, open = under(x, a.Value, dst, open)
			}
		}
	}
	return dst
}

// under appends the policies and shelves filed under a value.
func under(x *texts[branch], value string, dst []int32, open []*shelf) ([]int32, []*shelf) {
	if value == "" {
		return dst, open
	}
	if b, ok := x.exact[value]; ok {
		dst, open = b.add(dst, open)
	}
	for i := range x.prefix {
		p := &x.prefix[i]
		if p.length > len(value) {
			break
		}
		if b, ok := p.texts[value[:p.length]]; ok {
			dst, open = b.add(dst, open)
		}
	}
	return dst, open
}

func (b branch) add(dst []int32, open []*shelf) ([]int32, []*shelf) {
	if b.more == nil {
		return append(dst, b.one), open
	}
	return dst, append(open, b.more)
}
