package control

import (
	"slices"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/policy"
)

// SetOverride gives a policy another limit for one tenant or key until a
// deadline, in place of the override that this key has, if any.
type SetOverride struct {
	Override *policy.Override `json:"override"` // its Version is ignored
	By       Author           `json:"by"`
}

// ClearOverride ends an override before its deadline.
type ClearOverride struct {
	Policy string       `json:"policy"`
	Key    policy.Match `json:"key"`
	By     Author       `json:"by"`
}

// ExpireOverrides ends those whose deadline has come. The leader of the control
// group proposes it by its clock; that clock is data here.
type ExpireOverrides struct {
	Now int64  `json:"now"` // ns since 1970
	By  Author `json:"by"`
}

func (SetOverride) kind() string     { return "set_override" }
func (ClearOverride) kind() string   { return "clear_override" }
func (ExpireOverrides) kind() string { return "expire_overrides" }

func (c SetOverride) apply(s *State) (bool, error) {
	e, err := s.edit(ActionOverride, c.By)
	if err != nil {
		return false, err
	}
	if c.Override == nil {
		return false, fault.Field("override", "missing, want an override")
	}
	if err := e.next.CheckOverride(c.Override); err != nil {
		return false, fault.Field("override", "%v", err)
	}
	o := *c.Override
	o.Version = e.version
	i, known := slices.BinarySearchFunc(e.old.Overrides, &o, (*policy.Override).Compare)
	e.next.Overrides = slices.Clone(e.old.Overrides)
	switch {
	case known:
		e.next.Overrides[i] = &o
	case len(e.old.Overrides) >= policy.MaxOverrides:
		return false, fault.New(fault.Conflict, "there are %d overrides already", policy.MaxOverrides)
	default:
		e.next.Overrides = slices.Insert(e.next.Overrides, i, &o)
	}
	e.overrides(&o)
	return true, nil
}

func (c ClearOverride) apply(s *State) (bool, error) {
	e, err := s.edit(ActionClearOverride, c.By)
	if err != nil {
		return false, err
	}
	i, known := slices.BinarySearchFunc(e.old.Overrides, &policy.Override{Policy: c.Policy, Key: c.Key}, (*policy.Override).Compare)
	if !known {
		return false, fault.New(fault.NotFound, "policy %q has no override for %s", c.Policy, c.Key)
	}
	e.next.Overrides = slices.Delete(slices.Clone(e.old.Overrides), i, i+1)
	e.overrides(e.old.Overrides[i])
	return true, nil
}

func (c ExpireOverrides) apply(s *State) (bool, error) {
	e, err := s.edit(ActionExpire, c.By)
	if err != nil {
		return false, err
	}
	var ended []*policy.Override
	e.next.Overrides = slices.DeleteFunc(slices.Clone(e.old.Overrides), func(o *policy.Override) bool {
		if o.Until > c.Now {
			return false
		}
		ended = append(ended, o)
		return true
	})
	if len(ended) == 0 {
		return false, nil
	}
	e.overrides(ended...)
	return true, nil
}

// overrides makes a change of overrides the state's. The versions of policies
// stay; the counter moves, so that each override has a version of its own.
func (e *edit) overrides(touched ...*policy.Override) {
	e.entry.Total = len(touched)
	for i, o := range touched[:min(len(touched), maxChanges)] {
		if i > 0 {
			e.entry.Detail += "; "
		}
		e.entry.Detail += o.Policy + " " + o.Key.String()
	}
	e.s.Policies, e.s.PolicyVersion = e.next, e.version
	e.s.note(e.entry)
}

// NextDeadline returns when the next override ends, in ns since 1970; ok is
// false if there is none.
func (s *State) NextDeadline() (deadline int64, ok bool) {
	if s.Policies == nil {
		return 0, false
	}
	for _, o := range s.Policies.Overrides {
		if !ok || o.Until < deadline {
			deadline, ok = o.Until, true
		}
	}
	return deadline, ok
}
