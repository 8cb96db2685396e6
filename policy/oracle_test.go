package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// oracle is the definition of matching: every policy is tried.
type oracle struct {
	set    *Set
	values map[string]string
	r      *Request
}

func newOracle(s *Set, r *Request) oracle {
	v := map[string]string{}
	for _, a := range r.Attributes {
		v[a.Name] = a.Value
	}
	for _, p := range r.Principals {
		v[p.Type] = p.ID
	}
	route, _, _ := strings.Cut(strings.ReplaceAll(r.Route, "#", "?"), "?")
	method, _, _ := strings.Cut(route, ":")
	v["tenant"], v["route"], v["method"], v["plan"], v["region"] = r.Tenant, route, method, r.Plan, r.Region
	for _, c := range slices.Backward(s.RouteClasses) {
		if slices.ContainsFunc(c.Routes, func(want string) bool { return fits(want, route) }) {
			v["route_class"] = c.Name
		}
	}
	return oracle{s, v, r}
}

func fits(want, value string) bool {
	text, prefix := strings.CutSuffix(want, "*")
	return value != "" && (value == text || prefix && strings.HasPrefix(value, text))
}

func (o oracle) applies(p *Policy) bool {
	for _, c := range p.Match {
		if !fits(c.Value, o.values[c.Name]) {
			return false
		}
	}
	return p.Mode != Disabled && !slices.ContainsFunc(p.Scope, func(name string) bool { return o.values[name] == "" })
}

// rank orders a family: the greater is the more specific.
func rank(p *Policy) (exact, prefix int) {
	for _, c := range p.Match {
		if text, ok := strings.CutSuffix(c.Value, "*"); ok {
			prefix += 1 + len(text)
		} else {
			exact++
		}
	}
	return exact, prefix
}

func family(p *Policy) string { return cmp.Or(p.Family, p.ID) }

func beats(p, q *Policy) bool {
	pe, pp := rank(p)
	qe, qp := rank(q)
	return cmp.Or(cmp.Compare(pe, qe), cmp.Compare(pp, qp), cmp.Compare(q.ID, p.ID)) > 0
}

// hits are what applies, in words.
func (o oracle) hits() (out []string) {
	for _, p := range o.set.sorted() {
		if !o.applies(p) {
			continue
		}
		gone := slices.ContainsFunc(o.set.Policies, func(q *Policy) bool {
			return q != p && o.applies(q) && family(q) == family(p) && beats(q, p) && (p.Mode == Shadow || q.Mode == Enforce)
		})
		if !gone {
			out = append(out, o.hit(p))
		}
	}
	return out
}

func (o oracle) hit(p *Policy) string {
	cost, limit, version := o.r.Cost, p.Limit, p.Version
	for _, c := range o.r.Costs {
		if c.Policy == p.ID {
			cost = c.Cost
		}
	}
	unit := max(p.Cost.Default, 1)
	if n, ok := p.Cost.Classes[o.values["route_class"]]; ok {
		unit = n
	}
	var best *Override
	for _, v := range o.set.Overrides {
		if v.Policy != p.ID || slices.ContainsFunc(v.Key, func(c Condition) bool { return o.values[c.Name] != c.Value }) {
			continue
		}
		names := func(o *Override) (s string) {
			for _, c := range o.Key {
				s += c.Name + " "
			}
			return s
		}
		if best == nil || len(v.Key) > len(best.Key) || len(v.Key) == len(best.Key) && names(v) < names(best) {
			best = v
		}
	}
	if best != nil {
		limit, version = best.Limit(limit), max(version, best.Version)
	}
	return words3(p.ID, version, limit, min(cost*unit, 1_000_000_000))
}

func words3(id string, version uint64, limit any, cost uint64) string {
	return fmt.Sprintf("%s@%d %v cost %d", id, version, limit, cost)
}

func (h Hit) words() string { return words3(h.Policy.ID, h.Rule.Version, h.Rule.Limit, h.Cost) }

// world draws sets and requests that have much to do with each other.
type world struct{ t *rapid.T }

var valuesOfNames = map[string][]string{
	"tenant":      {"acme", "ab", "a", "b"},
	"route":       {"GET:/a", "GET:/ab", "GET:/b", "PUT:/a"},
	"method":      {"GET", "PUT"},
	"route_class": {"export", "read"},
	"plan":        {"a", "ab", "abc", "b"},
	"user":        {"ann", "bob"},
	"beta":        {"1", "12"},
}

func (w world) one(of []string, label string) string { return rapid.SampledFrom(of).Draw(w.t, label) }

func (w world) chance(of int, label string) bool {
	return rapid.IntRange(1, of).Draw(w.t, label) == 1
}

func (w world) policy(id string) *Policy {
	p := &Policy{ID: id, Scope: []string{"tenant"}, Limit: tokens(uint64(rapid.IntRange(1, 9).Draw(w.t, "amount")), 10, 1e9)}
	for _, name := range slices.Sorted(maps.Keys(valuesOfNames)) {
		switch value := w.one(valuesOfNames[name], name); rapid.IntRange(0, 7).Draw(w.t, "how") {
		case 0:
			p.Match = append(p.Match, Condition{name, value})
		case 1:
			p.Match = append(p.Match, Condition{name, value[:rapid.IntRange(0, len(value)).Draw(w.t, "cut")] + "*"})
		}
	}
	if w.chance(2, "family") {
		p.Family = w.one([]string{"f", "g", "p1", "p2"}, "family")
	}
	p.Mode = Mode(max(0, rapid.IntRange(-3, 2).Draw(w.t, "mode")))
	if w.chance(2, "per user") {
		p.Scope = append(p.Scope, "user")
	}
	if w.chance(3, "cost") {
		p.Cost = Cost{uint64(rapid.IntRange(1, 5).Draw(w.t, "cost")), map[string]uint64{"export": 1_000_000_000}}
	}
	return p
}

func (w world) override(id string, version uint64) *Override {
	o := &Override{Policy: id, Version: version, Times: uint64(rapid.IntRange(1, 9).Draw(w.t, "times")), Per: 2}
	if w.chance(2, "by tenant") {
		o.Key = append(o.Key, Condition{"tenant", w.one(valuesOfNames["tenant"], "tenant")})
	}
	if len(o.Key) == 0 || w.chance(2, "by user") {
		o.Key = append(o.Key, Condition{"user", w.one(valuesOfNames["user"], "user")})
	}
	return o
}

func (w world) set() *Set {
	s := &Set{Home: []string{"tenant"}, RouteClasses: []RouteClass{
		{"export", []string{"GET:/ab*", "PUT:/a"}}, {"read", []string{"GET:/a*", "GET:/b"}},
	}}
	for i := range rapid.IntRange(0, 14).Draw(w.t, "policies") {
		w.put(&s, w.policy(fmt.Sprintf("p%d", i)))
	}
	return s
}

// put puts p if it may be put.
func (w world) put(s **Set, p *Policy) {
	next := (*s).With(p)
	if next.CheckChanged([]*Policy{p}) == nil {
		next.Overrides = slices.DeleteFunc(slices.Clone(next.Overrides), func(o *Override) bool { return next.CheckOverride(o) != nil })
		*s = next
	}
}

func (w world) override1(s **Set, version uint64) {
	next := **s
	o := w.override(w.one([]string{"p0", "p1", "p2", "p3"}, "of"), version)
	if next.CheckOverride(o) != nil {
		return
	}
	i, found := slices.BinarySearchFunc(next.Overrides, o, (*Override).Compare)
	next.Overrides = slices.Clone(next.Overrides)
	if found {
		next.Overrides = slices.Delete(next.Overrides, i, i+1)
	}
	if !found || w.chance(2, "again") {
		next.Overrides = slices.Insert(next.Overrides, i, o)
	}
	*s = &next
}

func (w world) request() *Request {
	r := &Request{Tenant: w.one(append([]string{""}, valuesOfNames["tenant"]...), "t"), Route: w.one(valuesOfNames["route"], "r") + w.one([]string{"", "?q", "#f"}, "q")}
	r.Plan, r.Cost = w.one(valuesOfNames["plan"], "pl"), uint64(rapid.IntRange(0, 3).Draw(w.t, "c"))
	if w.chance(2, "user") {
		r.Principals = []Principal{{"user", w.one(valuesOfNames["user"], "u")}}
	}
	for _, name := range []string{"user", "beta"} {
		if w.chance(2, name) {
			r.Attributes = append(r.Attributes, Attribute{name, w.one(valuesOfNames[name], "v")})
		}
	}
	if w.chance(3, "costs") {
		r.Costs = []PolicyCost{{"p1", 7}, {"p2", 0}}
	}
	return r
}

func inWords(hits []Hit) (out []string) {
	for _, h := range hits {
		out = append(out, h.words())
	}
	return out
}

// TestIndexAgreesWithEveryPolicyTried holds the index, and one that followed any
// number of changes, to the definition.
func TestIndexAgreesWithEveryPolicyTried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := world{t}
		s := w.set()
		ix, err := Compile(s, keys)
		if err != nil {
			t.Fatal(err)
		}
		for version := range uint64(rapid.IntRange(1, 8).Draw(t, "changes")) {
			w.holds(ix, s)
			switch rapid.IntRange(0, 4).Draw(t, "change") {
			case 0:
				s = s.Without(fmt.Sprintf("p%d", rapid.IntRange(0, 14).Draw(t, "drop")))
				next := *s
				next.Overrides = slices.DeleteFunc(slices.Clone(s.Overrides), func(o *Override) bool { return s.CheckOverride(o) != nil })
				s = &next
			case 1, 2:
				p := w.policy(fmt.Sprintf("p%d", rapid.IntRange(0, 14).Draw(t, "put")))
				p.Version = version
				w.put(&s, p)
			default:
				w.override1(&s, version)
			}
			if ix, err = ix.Update(s); err != nil {
				t.Fatal(err)
			}
		}
		w.holds(ix, s)
	})
}

func (w world) holds(ix *Index, s *Set) {
	r := w.request()
	want := newOracle(s, r).hits()
	hits := ix.Match(r, nil)
	if got := inWords(hits); !slices.Equal(got, want) {
		w.t.Fatalf("%+v\n%q\nwant\n%q", r, got, want)
	}
	fresh, err := Compile(s, keys)
	if err != nil {
		w.t.Fatal(err)
	}
	if again := fresh.Match(r, nil); !slices.Equal(again, hits) {
		w.t.Fatalf("compiled anew: %q\nupdated: %q", inWords(again), inWords(hits))
	}
	var explained []string
	for _, x := range ix.Explain(r, 100) {
		if (x.Verdict == LessSpecific) != (x.By != "") {
			w.t.Fatalf("%s", x)
		}
		if x.Verdict == Applies {
			explained = append(explained, x.Hit.words())
		}
	}
	if !slices.Equal(explained, want) || len(ix.Explain(r, 100)) != len(s.Policies) {
		w.t.Fatalf("explained %q, want %q", explained, want)
	}
	for _, h := range hits {
		for _, number := range []uint64{h.Number, h.Rule.Policy} {
			if p, ok := ix.ByNumber(number); !ok || p != h.Policy {
				w.t.Fatalf("%s is not found by its number", h.Policy.ID)
			}
		}
	}
}
