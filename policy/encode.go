package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ringlimit/ringlimit/bucket"
)

// The canonical form: JSON with fields in this order, map keys sorted, policies
// by id. Its fields may be added to only together with the version of what
// carries it, the control state's commands and snapshots.
type (
	setJSON struct {
		Home     []string     `json:"home"`
		NoMatch  string       `json:"no_match"`
		Policies []policyJSON `json:"policies"`
	}
	policyJSON struct {
		ID        string            `json:"id"`
		Version   uint64            `json:"version"`
		Match     map[string]string `json:"match"`
		Scope     []string          `json:"scope"`
		Algorithm string            `json:"algorithm"`
		Amount    uint64            `json:"amount"`
		Window    int64             `json:"window_ns"`
		Burst     uint64            `json:"burst"`
	}
)

// algorithms names what this build counts by.
var algorithms = map[bucket.Algorithm]string{bucket.TokenBucket: "token_bucket"}

// actions are the words of no_match, indexed by Action.
var actions = [...]string{Allow: "allow", Deny: "deny"}

func (a Action) String() string {
	if int(a) < len(actions) {
		return actions[a]
	}
	return fmt.Sprintf("action %d", uint8(a))
}

// Encode returns the canonical form of s: equal for sets that differ only in the
// order of their policies.
func (s *Set) Encode() []byte {
	out := setJSON{Home: s.Home, NoMatch: s.NoMatch.String(), Policies: make([]policyJSON, len(s.Policies))}
	for i, p := range s.sorted() {
		match, scope := p.Match, p.Scope
		if match == nil {
			match = map[string]string{}
		}
		if scope == nil {
			scope = []string{}
		}
		out.Policies[i] = policyJSON{
			ID: p.ID, Version: p.Version, Match: match, Scope: scope,
			Algorithm: algorithms[p.Limit.Algorithm],
			Amount:    p.Limit.Amount, Window: p.Limit.Window, Burst: p.Limit.Burst,
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(fmt.Sprintf("encode policies: %v", err)) // strings, numbers and maps of them: cannot fail
	}
	return b
}

// sorted returns the policies of s by id, in a slice of its own.
func (s *Set) sorted() []Policy {
	out := slices.Clone(s.Policies)
	slices.SortStableFunc(out, func(a, b Policy) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Decode reads what Encode wrote. Anything else, also a field it does not know
// or a set that is not valid, is an error.
func Decode(data []byte) (*Set, error) {
	s := new(Set)
	if err := s.decode(data); err != nil {
		return nil, fmt.Errorf("decode policies: %w", err)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("decode policies: %w", err)
	}
	return s, nil
}

// decode reads the canonical form without judging it.
func (s *Set) decode(data []byte) error {
	var in setJSON
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more after the end")
	}
	action := slices.Index(actions[:], in.NoMatch)
	if action < 0 {
		return fmt.Errorf("no_match %q", in.NoMatch)
	}
	out := Set{Home: in.Home, NoMatch: Action(action), Policies: make([]Policy, len(in.Policies))}
	for i, p := range in.Policies {
		algorithm, ok := algorithm(p.Algorithm)
		if !ok {
			return fmt.Errorf("policy %q: algorithm %q", p.ID, p.Algorithm)
		}
		out.Policies[i] = Policy{
			ID: p.ID, Version: p.Version, Match: p.Match, Scope: p.Scope,
			Limit: bucket.Limit{Algorithm: algorithm, Amount: p.Amount, Window: p.Window, Burst: p.Burst},
		}
	}
	*s = out
	return nil
}

// algorithm finds an algorithm by its name.
func algorithm(name string) (bucket.Algorithm, bool) {
	for a, n := range algorithms {
		if n == name {
			return a, true
		}
	}
	return 0, false
}
