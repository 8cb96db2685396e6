package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ringlimit/ringlimit/bucket"
)

// Hit is one policy that applies to a request, and the bucket it counts in.
type Hit struct {
	Policy   *Policy
	Override *Override   // that gives this request another limit; nil: none
	Number   uint64      // hash of the policy's id, by which ByNumber finds it
	Rule     bucket.Rule // the limit as it is for this request; with an Override its Policy is not Number
	Slot     uint16
	Key      bucket.Key // the lower 32 bits of Hi are a tag of the home of the bucket, alike for all buckets of a home
	Cost     uint64     // 0 … bucket.MaxAmount; 0 looks
}

// Index answers which policies apply to a request. It never changes: any number
// of goroutines may use it at once.
//
// Policies that changed since the whole was last compiled stand in a part of
// their own, so that a change costs in proportion to what changed.
type Index struct {
	hasher
	set     *Set
	classes *classifier
	base    *part
	gone    marks // places in base that another part replaces, or nobody
	recent  *part // changed since base was made
}

// part files some policies of a set.
type part struct {
	set       []*Policy        // by id
	policies  []entry          // of set
	overrides []*Override      // of the set it was made of
	numbers   map[uint64]int32 // hash of the id, or of an override → place in policies
	root      *shelf
}

// entry is one policy, ready to be judged.
type entry struct {
	policy   *Policy
	number   uint64
	conds    []cond
	scope    *scope
	special  special // its overrides
	specific specificity
}

// scope is what a policy counts by.
type scope struct {
	terms []term // by name
	home  bool   // holds all home names
}

// Compile builds the index of a valid set. The index shares the policies of the set.
func Compile(s *Set, k Keys) (*Index, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	h, err := newHasher(s.Home, k)
	if err != nil {
		return nil, err
	}
	sorted := s
	if !slices.IsSortedFunc(s.Policies, byID) {
		c := *s
		c.Policies = s.sorted()
		sorted = &c
	}
	return (&Index{hasher: h}).compile(sorted)
}

func byID(a, b *Policy) int { return strings.Compare(a.ID, b.ID) }

// part compiles some policies of the index's set, given by id.
func (ix *Index) part(policies []*Policy) (*part, error) {
	p := &part{
		set: policies, policies: make([]entry, len(policies)), overrides: ix.set.Overrides,
		numbers: make(map[uint64]int32, len(policies)),
	}
	conds := 0
	for _, x := range policies {
		conds += len(x.Match)
	}
	slab := make([]cond, 0, conds) // one allocation for all
	scopes := scopes{home: ix.set.Home, known: map[string]*scope{}}
	overrides := ix.set.Overrides
	for i, x := range policies {
		e := entry{policy: x, number: xxh3.HashString(x.ID), scope: scopes.of(x.Scope), specific: x.Match.specificity()}
		first := len(slab)
		for _, c := range x.Match {
			slab = append(slab, c.parts())
		}
		e.conds = slab[first:len(slab):len(slab)]
		var own []*Override
		own, overrides = overridesOf(overrides, x.ID)
		e.special = specialOf(x, own)
		if err := p.number(e.number, int32(i), policies); err != nil {
			return nil, err
		}
		for _, o := range own {
			if err := p.number(o.Number(), int32(i), policies); err != nil {
				return nil, err
			}
		}
		p.policies[i] = e
	}
	p.root = p.file()
	return p, nil
}

// overridesOf splits off the overrides of one policy; both lists are by id, and
// those of smaller ids are skipped.
func overridesOf(all []*Override, id string) (own, rest []*Override) {
	for len(all) > 0 && all[0].Policy < id {
		all = all[1:]
	}
	n := 0
	for n < len(all) && all[n].Policy == id {
		n++
	}
	return all[:n], all[n:]
}

// number notes the number of a policy or override.
func (p *part) number(n uint64, i int32, policies []*Policy) error {
	if other, ok := p.numbers[n]; ok {
		return fmt.Errorf("the ids or overrides of %q and %q have the same hash, rename one", policies[other].ID, policies[i].ID)
	}
	p.numbers[n] = i
	return nil
}

// scopes makes each scope once.
type scopes struct {
	home  []string
	known map[string]*scope
}

func (s *scopes) of(names []string) *scope {
	key := strings.Join(names, "\x00") // names have no control characters
	if known, ok := s.known[key]; ok {
		return known
	}
	out := &scope{home: holdsAll(names, s.home)}
	for _, name := range slices.Sorted(slices.Values(names)) {
		out.terms = append(out.terms, termOf(name))
	}
	s.known[key] = out
	return out
}

func holdsAll(scope, home []string) bool {
	for _, name := range home {
		if !slices.Contains(scope, name) {
			return false
		}
	}
	return true
}

// ByNumber finds a policy by Hit.Number or the Policy of Hit.Rule.
func (ix *Index) ByNumber(n uint64) (*Policy, bool) {
	if i, ok := ix.recent.numbers[n]; ok {
		return ix.recent.policies[i].policy, true
	}
	if i, ok := ix.base.numbers[n]; ok && !ix.gone.has(i) {
		return ix.base.policies[i].policy, true
	}
	return nil, false
}

// Set returns the set that ix was made of, its policies by id.
func (ix *Index) Set() *Set { return ix.set }

// marks is a set of small numbers.
type marks []uint64

func (m marks) has(i int32) bool { return m != nil && m[i>>6]&(1<<(i&63)) != 0 }

func (m marks) add(i int32) { m[i>>6] |= 1 << (i & 63) }
