package policy

import (
	"fmt"
	"slices"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/zeebo/xxh3"
)

// Hit is one policy that applies to a request, and the bucket it counts in.
type Hit struct {
	Policy *Policy
	Number uint64 // hash of the policy's id: bucket.Rule.Policy
	Slot   uint16
	Key    bucket.Key
}

// Index answers which policies apply to a request. It never changes: any number
// of goroutines may use it at once.
type Index struct {
	hasher
	policies []entry            // by id
	numbers  map[uint64]int32   // hash of the id → place in policies
	fields   [fieldClass]*names // reserved names; nil where no policy is filed
	free     map[string]*names  // principal types and free attributes
	rest     []int32            // policies that match any request
}

// entry is one policy, ready to be judged.
type entry struct {
	policy *Policy
	number uint64
	conds  []cond
	scope  []term // by name
	home   bool   // the scope holds all home names
}

// names files the policies that have a condition on one name. Each policy is
// filed once, under the condition that the fewest others share.
type names struct {
	exact  map[string][]int32
	prefix []prefixes // by length
}

// prefixes are the filed prefixes of one length.
type prefixes struct {
	length int
	texts  map[string][]int32
}

// Compile builds the index of a valid set. The index keeps its own copy.
func Compile(s *Set, k Keys) (*Index, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	h, err := newHasher(s.Home, k)
	if err != nil {
		return nil, err
	}
	ix := &Index{
		hasher:   h,
		policies: make([]entry, len(s.Policies)),
		numbers:  make(map[uint64]int32, len(s.Policies)),
		free:     map[string]*names{},
	}
	sorted := s.sorted()
	shared := map[cond]int{}
	for i := range sorted {
		p := &sorted[i]
		e := entry{policy: p, number: xxh3.HashString(p.ID), conds: p.conditions(), home: holdsAll(p.Scope, s.Home)}
		for _, name := range slices.Sorted(slices.Values(p.Scope)) {
			e.scope = append(e.scope, termOf(name))
		}
		if other, ok := ix.numbers[e.number]; ok {
			return nil, fmt.Errorf("the ids %q and %q have the same hash, rename one", sorted[other].ID, p.ID)
		}
		ix.numbers[e.number] = int32(i)
		ix.policies[i] = e
		for _, c := range e.conds {
			shared[c]++
		}
	}
	for i := range ix.policies {
		ix.file(int32(i), shared)
	}
	return ix, nil
}

// file puts a policy where the fewest requests will meet it.
func (ix *Index) file(i int32, shared map[cond]int) {
	conds := ix.policies[i].conds
	if len(conds) == 0 {
		ix.rest = append(ix.rest, i)
		return
	}
	best := conds[0]
	for _, c := range conds[1:] {
		switch {
		case c.prefix != best.prefix:
			if best.prefix { // an exact value tells more than any prefix
				best = c
			}
		case shared[c] < shared[best], shared[c] == shared[best] && len(c.text) > len(best.text):
			best = c
		}
	}
	n := ix.names(best.term)
	texts := n.exact
	if best.prefix {
		texts = n.ofLength(len(best.text))
	}
	texts[best.text] = append(texts[best.text], i)
}

// names returns where policies with a condition on t are filed, making it if need be.
func (ix *Index) names(t term) *names {
	n := ix.fields[t.field]
	if t.field == fieldFree {
		n = ix.free[t.name]
	}
	if n == nil {
		n = &names{exact: map[string][]int32{}}
		if t.field == fieldFree {
			ix.free[t.name] = n
		} else {
			ix.fields[t.field] = n
		}
	}
	return n
}

// ofLength returns the prefixes of a length, making them if need be.
func (n *names) ofLength(length int) map[string][]int32 {
	i, ok := slices.BinarySearchFunc(n.prefix, length, func(p prefixes, l int) int { return p.length - l })
	if !ok {
		n.prefix = slices.Insert(n.prefix, i, prefixes{length, map[string][]int32{}})
	}
	return n.prefix[i].texts
}

// ByNumber finds a policy by Hit.Number.
func (ix *Index) ByNumber(n uint64) (*Policy, bool) {
	i, ok := ix.numbers[n]
	if !ok {
		return nil, false
	}
	return ix.policies[i].policy, true
}
