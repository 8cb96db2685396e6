package policy

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ringlimit/ringlimit/api/route"
	"github.com/ringlimit/ringlimit/bucket"
)

// MaxOverrides bounds the overrides of a set.
const MaxOverrides = 10_000

// Override gives one policy another limit for one tenant or key, until a
// deadline. Either Amount or Burst replace those of the policy, or both are
// multiplied by Times/Per.
//
// Of several overrides of one policy that fit a request, the one with the most
// names in its key applies; among equals the one whose names come first.
type Override struct {
	Policy  string  `json:"policy"`
	Key     Match   `json:"key"` // exact values of names of the policy's scope, at least one
	Amount  *uint64 `json:"amount,omitempty"`
	Burst   *uint64 `json:"burst,omitempty"` // where the algorithm has one
	Times   uint64  `json:"times,omitempty"` // 1 … bucket.MaxAmount with Per; Per 0: not scaled
	Per     uint64  `json:"per,omitempty"`
	Until   int64   `json:"until"`   // ns since 1970
	Version uint64  `json:"version"` // given by the control state, from the counter of policy versions
}

// Limit returns the limit that o makes of that of its policy. A burst that was
// the amount follows it; what is scaled is rounded down, but not to 0.
func (o *Override) Limit(l bucket.Limit) bucket.Limit {
	if o.Per > 0 {
		l.Amount, l.Burst = scale(l.Amount, o.Times, o.Per), scale(l.Burst, o.Times, o.Per)
		return l
	}
	follows := l.Burst == l.Amount
	if o.Amount != nil {
		l.Amount = *o.Amount
		if follows {
			l.Burst = l.Amount
		}
	}
	if o.Burst != nil {
		l.Burst = *o.Burst
	}
	return l
}

// scale is n × times / per, at least 1 unless n is 0, at most bucket.MaxAmount.
func scale(n, times, per uint64) uint64 {
	if n == 0 {
		return 0
	}
	hi, lo := bits.Mul64(n, times)
	if hi >= per {
		return bucket.MaxAmount
	}
	q, _ := bits.Div64(hi, lo, per)
	return min(max(q, 1), bucket.MaxAmount)
}

// Number is the bucket.Rule.Policy of the limits that o makes. It is a number of
// its own, so that the versions of o are not taken for versions that all buckets
// of the policy should have; it is the same for all overrides of one key.
func (o *Override) Number() uint64 {
	buf := route.Append([]byte{0}, o.Policy) // no id begins with 0
	for _, c := range o.Key {
		buf = route.Append(route.Append(buf, c.Name), c.Value)
	}
	return xxh3.Hash(buf)
}

// Rule is the rule that o makes of its policy. Its version is that of the newer of the two.
func (o *Override) Rule(p *Policy) bucket.Rule {
	return bucket.Rule{Policy: o.Number(), Version: max(p.Version, o.Version), Limit: o.Limit(p.Limit), Loss: p.OnStateLoss.Loss()}
}

// Compare orders overrides by policy and key: 0 says that one replaces the other.
func (o *Override) Compare(other *Override) int {
	return cmp.Or(strings.Compare(o.Policy, other.Policy), slices.CompareFunc(o.Key, other.Key, func(a, b Condition) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	}))
}

// CheckOverride says why o cannot be one of the overrides of s, by field.
func (s *Set) CheckOverride(o *Override) error {
	p, ok := s.Find(o.Policy)
	if !ok {
		return invalid("policy", "%q, want the id of a policy of the cluster", o.Policy)
	}
	if err := p.checkKey(o.Key); err != nil {
		return err
	}
	return p.checkChange(o)
}

// Fits says whether a key names only what p counts by: an override with another
// one ends when p changes.
func (p *Policy) Fits(key Match) bool { return p.checkKey(key) == nil }

func (p *Policy) checkKey(key Match) error {
	if len(key) == 0 {
		return invalid("key", "empty, want values of at least one of %s, the scope of %s", either(p.Scope), p.ID)
	}
	for i, c := range key {
		switch {
		case !slices.Contains(p.Scope, c.Name):
			return invalid("key."+c.Name, "%q, want names of the scope of %s: %s", c.Name, p.ID, either(p.Scope))
		case i > 0 && key[i-1].Name >= c.Name:
			return invalid("key."+c.Name, "a second %q or out of order, want distinct names", c.Name)
		case c.Value == "" || len(c.Value) > MaxRoute:
			return invalid("key."+c.Name, "%d bytes, want 1 … %d", len(c.Value), MaxRoute)
		}
	}
	return nil
}

// checkChange judges what o makes of the limit.
func (p *Policy) checkChange(o *Override) error {
	replaces, scales := o.Amount != nil || o.Burst != nil, o.Per != 0 || o.Times != 0
	switch {
	case replaces == scales:
		return invalid("amount", "want either amount or burst, or what to multiply both by")
	case scales && (o.Times < 1 || o.Times > bucket.MaxAmount || o.Per < 1 || o.Per > bucket.MaxAmount):
		return invalid("times", "%d/%d, want numbers 1 … %d", o.Times, o.Per, bucket.MaxAmount)
	case o.Burst != nil && !hasBurst(p.Limit.Algorithm):
		return invalid("burst", "%d, want none: %s has no burst", *o.Burst, p.Limit.Algorithm)
	}
	if err := checkLimit(o.Limit(p.Limit)); err != nil {
		return err
	}
	return nil
}

// special are the overrides of one policy, ready to be found: by the names of
// their keys, those with the most first.
type special []shape

type shape struct {
	terms []term
	by    map[string]*ruled // by the values, encoded
}

// ruled is an override with the rule that it makes.
type ruled struct {
	override *Override
	rule     bucket.Rule
}

// specialOf compiles the overrides of one policy, given by key.
func specialOf(p *Policy, overrides []*Override) special {
	byNames := map[string]*shape{}
	var order []string
	for _, o := range overrides {
		names := binary.BigEndian.AppendUint16(nil, uint16(maxNames-len(o.Key))) // most names first
		var values []byte
		for _, c := range o.Key {
			names = append(append(names, c.Name...), 0)
			values = route.Append(values, c.Value)
		}
		s := byNames[string(names)]
		if s == nil {
			s = &shape{by: map[string]*ruled{}}
			for _, c := range o.Key {
				s.terms = append(s.terms, termOf(c.Name))
			}
			byNames[string(names)], order = s, append(order, string(names))
		}
		s.by[string(values)] = &ruled{o, o.Rule(p)}
	}
	slices.Sort(order)
	out := make(special, len(order))
	for i, names := range order {
		out[i] = *byNames[names]
	}
	return out
}

// find returns the override for a request, nil if there is none.
func (s special) find(v *values) *ruled {
	var stack [256]byte
	for i := range s {
		buf := stack[:0]
		for _, t := range s[i].terms {
			buf = route.Append(buf, v.get(t))
		}
		if r := s[i].by[string(buf)]; r != nil {
			return r
		}
	}
	return nil
}
