package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// The canonical form: see Encode. Fields may be added only together with the
// version of what carries it, the control state's commands and snapshots.
type (
	setJSON struct {
		Home         []string     `json:"home"`
		NoMatch      string       `json:"no_match"`
		RouteClasses []RouteClass `json:"route_classes"`
		Policies     []policyJSON `json:"policies"`
		Overrides    []*Override  `json:"overrides"`
		Omitted      []string     `json:"omitted"`
	}
	policyJSON struct {
		ID            string            `json:"id"`
		Version       uint64            `json:"version"`
		Family        string            `json:"family"`
		Match         map[string]string `json:"match"`
		Scope         []string          `json:"scope"`
		Algorithm     string            `json:"algorithm"`
		Amount        uint64            `json:"amount"`
		Window        int64             `json:"window_ns"`
		Burst         uint64            `json:"burst"`
		Cost          *costJSON         `json:"cost"`
		OnUnavailable *unavailableJSON  `json:"on_unavailable"`
		OnStateLoss   string            `json:"on_state_loss"`
		Mode          string            `json:"mode"`
		Consistency   string            `json:"consistency"`
		Source        string            `json:"source"`
	}
	costJSON struct {
		Default uint64            `json:"default"`
		Classes map[string]uint64 `json:"classes"`
	}
	unavailableJSON struct {
		Mode  string `json:"mode"`
		After int64  `json:"after_ns"` // -1: the caller's deadline
		For   int64  `json:"for_ns"`
		Then  string `json:"then"`
	}
)

// Decode reads what Encode wrote. Anything else, also a field it does not know
// or a set that is not valid, is an error.
func Decode(data []byte) (*Set, error) {
	s := new(Set)
	if err := s.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("decode policies: %w", err)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("decode policies: %w", err)
	}
	return s, nil
}

// UnmarshalJSON reads the canonical form without judging it: call Validate. A
// word or field this build does not know is an error.
func (s *Set) UnmarshalJSON(data []byte) error {
	policies, rest, scanned := scanPolicies(data)
	if !scanned {
		rest = data
	}
	var in setJSON
	if err := strict(rest, &in); err != nil {
		return err
	}
	if scanned && len(in.Policies) > 0 {
		return errors.New("policies twice")
	}
	action, ok := actions.parse(in.NoMatch)
	if !ok {
		return fmt.Errorf("no_match %q", in.NoMatch)
	}
	if slices.Contains(in.Overrides, nil) {
		return errors.New("null among overrides")
	}
	out := Set{
		Home: in.Home, NoMatch: Action(action), RouteClasses: in.RouteClasses,
		Policies: policies, Overrides: in.Overrides, Omitted: in.Omitted,
	}
	if !scanned {
		out.Policies = make([]*Policy, len(in.Policies))
	}
	for i := range in.Policies {
		p, err := in.Policies[i].policy()
		if err != nil {
			return err
		}
		out.Policies[i] = p
	}
	*s = out
	return nil
}

// UnmarshalJSON reads the canonical form without judging it.
func (p *Policy) UnmarshalJSON(data []byte) error {
	var in policyJSON
	if err := strict(data, &in); err != nil {
		return err
	}
	out, err := in.policy()
	if err == nil {
		*p = *out
	}
	return err
}

// policy turns the form into what it says.
func (in *policyJSON) policy() (*Policy, error) {
	algorithm, ok := bucket.ParseAlgorithm(in.Algorithm)
	if !ok {
		return nil, fmt.Errorf("policy %q: algorithm %q", in.ID, in.Algorithm)
	}
	out := Policy{
		ID: in.ID, Version: in.Version, Family: in.Family, Match: matchOf(in.Match), Scope: in.Scope,
		Limit:  bucket.Limit{Algorithm: algorithm, Amount: in.Amount, Window: in.Window, Burst: in.Burst},
		Source: in.Source,
	}
	if c := in.Cost; c != nil {
		out.Cost = Cost{c.Default, c.Classes}
	}
	u := in.OnUnavailable
	if u == nil {
		u = new(unavailableJSON)
	}
	out.OnUnavailable.After, out.OnUnavailable.For = time.Duration(u.After), time.Duration(u.For)
	for _, f := range [...]struct {
		text  string
		words words
		into  *uint8
	}{
		{in.OnStateLoss, stateLosses, (*uint8)(&out.OnStateLoss)},
		{in.Mode, modes, (*uint8)(&out.Mode)},
		{in.Consistency, consistencies, (*uint8)(&out.Consistency)},
		{u.Mode, failureModes, (*uint8)(&out.OnUnavailable.Mode)},
		{u.Then, failureModes, (*uint8)(&out.OnUnavailable.Then)},
	} {
		if f.text == "" {
			continue
		}
		if *f.into, ok = f.words.parse(f.text); !ok {
			return nil, fmt.Errorf("policy %q: %q, want %s", in.ID, f.text, f.words)
		}
	}
	return out.normal(), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *Match) UnmarshalJSON(data []byte) error {
	var object map[string]string
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	*m = matchOf(object)
	return nil
}

func matchOf(object map[string]string) Match {
	m := make(Match, 0, len(object))
	for name, value := range object {
		m = append(m, Condition{name, value})
	}
	m.sort()
	return m
}

// strict reads one JSON value without unknown fields and with nothing after it.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more after the end")
	}
	return nil
}
