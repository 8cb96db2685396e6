package policy

import (
	"slices"

	"github.com/ringlimit/ringlimit/bucket"
)

// Match appends a Hit to dst for each policy that applies to r, in the order of
// policy ids: its match holds, r has its whole scope, and it gives way to no
// other of its family. With room in dst it does not allocate, unless more than 64
// policies come into question. r is valid.
func (ix *Index) Match(r *Request, dst []Hit) []Hit { return ix.MatchIn(ix.Home(r), r, dst) }

// MatchIn is Match for who has found the home of r already.
func (ix *Index) MatchIn(home Home, r *Request, dst []Hit) []Hit {
	v := ix.values(r)
	var stack [64]*entry
	applied := ix.applied(&v, stack[:0])
	if len(applied) == 0 {
		return dst
	}
	for _, e := range selectFamilies(applied) {
		dst = append(dst, ix.hit(e, &v, home))
	}
	return dst
}

func (ix *Index) values(r *Request) values {
	route := cutRoute(r.Route)
	return values{r: r, route: route, class: ix.classes.class(route)}
}

// applied appends the policies whose match and scope fit, by id, before families are looked at.
func (ix *Index) applied(v *values, dst []*entry) []*entry {
	var stack [64]int32
	for _, i := range ix.base.root.collect(v, stack[:0]) {
		if e := &ix.base.policies[i]; !ix.gone.has(i) && e.applies(v) {
			dst = append(dst, e)
		}
	}
	if ix.recent.root != nil {
		for _, i := range ix.recent.root.collect(v, stack[:0]) {
			if e := &ix.recent.policies[i]; e.applies(v) {
				dst = append(dst, e)
			}
		}
	}
	slices.SortFunc(dst, func(a, b *entry) int { return byID(a.policy, b.policy) })
	return dst
}

// applies says whether a policy's match holds and the request has its scope.
func (e *entry) applies(v *values) bool {
	for i := range e.conds {
		if c := &e.conds[i]; !c.holds(v.get(c.term)) {
			return false
		}
	}
	for _, t := range e.scope.terms {
		if v.get(t) == "" {
			return false
		}
	}
	return true
}

// hit makes the Hit of a policy that applies.
func (ix *Index) hit(e *entry, v *values, home Home) Hit {
	p := e.policy
	h := Hit{Policy: p, Number: e.number, Cost: times(v.r.costOf(p.ID), p.Cost.of(v.class))}
	h.Rule = bucket.Rule{Policy: e.number, Version: p.Version, Limit: p.Limit, Loss: p.OnStateLoss.Loss()}
	if r := e.special.find(v); r != nil {
		h.Override, h.Rule = r.override, r.rule
	}
	if e.scope.home { // then the request has a home
		h.Slot, h.Key = home.Slot, ix.bucketKey(e, v, uint32(home.Hash>>32))
	} else {
		h.Slot, h.Key = ix.scopeBucket(e, v)
	}
	return h
}
