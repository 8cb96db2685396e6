package policy

import (
	"cmp"
	"fmt"
	"slices"
)

// Verdict says whether and why a policy applies to a request.
type Verdict string

// The verdicts.
const (
	Applies      Verdict = "applies"
	LessSpecific Verdict = "less_specific" // than another of its family, By
	NoScope      Verdict = "no_scope"      // the request lacks Name
	NoMatch      Verdict = "no_match"      // the value of Name is not as Want says
	IsDisabled   Verdict = "disabled"
)

// Explanation is what became of one policy in the matching of one request.
type Explanation struct {
	Policy  *Policy
	Verdict Verdict
	Hit     Hit    // if it applies
	By      string // id of the more specific policy
	Name    string // the first name whose value is missing or not wanted
	Want    string // condition on it
	Got     string // its value, "" if the request has none
	missed  int    // how many conditions and scope names do not fit
}

// Explain says of the policies that come nearest to a request whether and why
// they apply: those that apply first, then those of which the least does not
// fit, then by id; at most limit. It looks at every policy of the set and is
// meant for people. r is valid.
func (ix *Index) Explain(r *Request, limit int) []Explanation {
	v := ix.values(r)
	applied := ix.applied(&v, nil)
	kept := selectFamilies(slices.Clone(applied))
	home := ix.Home(r)
	var out []Explanation
	for p := range ix.entries() {
		x := p.explain(&v)
		if x.Verdict == Applies {
			if slices.Contains(kept, p) {
				x.Hit = ix.hit(p, &v, home)
			} else {
				x.Verdict, x.By = LessSpecific, p.shadowedBy(applied)
			}
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Explanation) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.missed, b.missed), byID(a.Policy, b.Policy))
	})
	return slices.Clip(out[:min(limit, len(out))])
}

func (x *Explanation) rank() int {
	return slices.Index([]Verdict{Applies, LessSpecific}, x.Verdict) & 3 // the others last: -1 & 3
}

// entries yields every policy of the index.
func (ix *Index) entries() func(yield func(*entry) bool) {
	return func(yield func(*entry) bool) {
		for i := range ix.base.policies {
			if !ix.gone.has(int32(i)) && !yield(&ix.base.policies[i]) {
				return
			}
		}
		for i := range ix.recent.policies {
			if !yield(&ix.recent.policies[i]) {
				return
			}
		}
	}
}

// explain judges a policy without its family.
func (e *entry) explain(v *values) Explanation {
	x := Explanation{Policy: e.policy, Verdict: Applies}
	miss := func(verdict Verdict, name, want, got string) {
		if x.missed++; x.missed == 1 {
			x.Verdict, x.Name, x.Want, x.Got = verdict, name, want, got
		}
	}
	for i, c := range e.conds {
		if got := v.get(c.term); !c.holds(got) {
			miss(NoMatch, c.name, e.policy.Match[i].Value, got)
		}
	}
	for _, t := range e.scope.terms {
		if v.get(t) == "" {
			miss(NoScope, t.name, "", "")
		}
	}
	if x.missed == 0 && e.policy.Mode == Disabled {
		x.Verdict = IsDisabled
	}
	return x
}

// shadowedBy names the policy that e gives way to.
func (e *entry) shadowedBy(applied []*entry) string {
	var best *entry
	for _, b := range applied {
		if e.yields(b) && (best == nil || moreSpecific(b, best)) {
			best = b
		}
	}
	if best == nil {
		return ""
	}
	return best.policy.ID
}

// String is x in one line.
func (x Explanation) String() string {
	at := ""
	if x.Policy.Source != "" {
		at = " (" + x.Policy.Source + ")"
	}
	return x.Policy.ID + at + ": " + x.reason()
}

func (x *Explanation) reason() string {
	got := fmt.Sprintf("%q", x.Got)
	if x.Got == "" {
		got = "absent"
	}
	switch x.Verdict {
	case LessSpecific:
		return fmt.Sprintf("gives way to %s, the more specific of family %s", x.By, x.Policy.family())
	case NoScope:
		return fmt.Sprintf("the request has no %s to count by", x.Name)
	case NoMatch:
		return fmt.Sprintf("%s is %s, want %q", x.Name, got, x.Want)
	case IsDisabled:
		return "disabled"
	default:
		if x.Hit.Override != nil {
			return fmt.Sprintf("applies at cost %d with the override of version %d", x.Hit.Cost, x.Hit.Override.Version)
		}
		return fmt.Sprintf("applies at cost %d", x.Hit.Cost)
	}
}
