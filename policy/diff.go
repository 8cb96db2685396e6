package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Kind is what happened to a policy between two sets.
type Kind string

// The kinds of change.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Change is the difference between two sets in one policy, or in what stands
// beside the policies (ID "").
type Change struct {
	Kind    Kind          `json:"kind"`
	ID      string        `json:"id,omitempty"`
	Version uint64        `json:"version,omitempty"` // that the policy has in the old set; 0: none
	Source  string        `json:"source,omitempty"`  // where the new one was read
	Fields  []FieldChange `json:"fields,omitempty"`  // of what changed; of what was added, all that is not the default
}

// FieldChange is one field, as a file writes it.
type FieldChange struct {
	Field string `json:"field"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
}

// Diff returns what differs between two sets: first what stands beside the
// policies, then the policies by id. Versions and sources are no difference, and
// neither is what the new set's file left out beside its policies.
func Diff(old, next *Set) []Change {
	var out []Change
	if fields := diffSettings(old, next); len(fields) > 0 {
		out = append(out, Change{Kind: Changed, Fields: fields})
	}
	a, b := byIDs(old), byIDs(next)
	for was, now := range pairs(a, b, byID) {
		switch {
		case was == nil:
			out = append(out, Change{Added, now.ID, 0, now.Source, diffPolicies(&Policy{}, now)})
		case now == nil:
			out = append(out, Change{Kind: Removed, ID: was.ID, Version: was.Version})
		case was != now && !was.Same(now):
			out = append(out, Change{Changed, now.ID, was.Version, now.Source, diffPolicies(was, now)})
		}
	}
	return out
}

// CheckPut says what is wrong with putting the policies of a file into a set, of
// which each by itself is valid: such as two of one family with equal matches,
// one of the file and one that stays. prune: none that the file lacks stays.
func CheckPut(old, file *Set, prune bool) error {
	next := *file
	next.Overrides = nil
	if slices.Contains(file.Omitted, "route_classes") && !prune {
		next.RouteClasses = old.RouteClasses
	}
	if !prune {
		next.Policies = nil
		for was, now := range pairs(byIDs(old), byIDs(file), byID) {
			if now == nil {
				now = was
			}
			next.Policies = append(next.Policies, now)
		}
	}
	return next.CheckChanged(file.Policies)
}

func diffSettings(old, next *Set) (out []FieldChange) {
	list := func(names []string) string { return "[" + strings.Join(names, ", ") + "]" }
	classes := func(classes []RouteClass) string {
		parts := make([]string, len(classes))
		for i, c := range classes {
			parts[i] = c.Name + " " + list(c.Routes)
		}
		return list(parts)
	}
	for _, f := range []FieldChange{
		{"home", list(old.Home), list(next.Home)},
		{"no_match", old.NoMatch.String(), next.NoMatch.String()},
		{"route_classes", classes(old.RouteClasses), classes(next.RouteClasses)},
	} {
		if f.Old != f.New && !slices.Contains(next.Omitted, f.Field) {
			out = append(out, f)
		}
	}
	return out
}

func diffPolicies(old, next *Policy) (out []FieldChange) {
	was, now := old.fields(), next.fields()
	for i := range now {
		if was[i].New != now[i].New {
			out = append(out, FieldChange{now[i].Field, was[i].New, now[i].New})
		}
	}
	return out
}

// fields are the fields of p but id, as a file writes them; "" is the default or nothing.
func (p *Policy) fields() []FieldChange {
	n := p.normal()
	number := func(v uint64) string { return fmt.Sprint(v) }
	if n.ID == "" { // no policy
		return make([]FieldChange, 12)
	}
	out := []FieldChange{
		{"match", "", n.Match.String()},
		{"family", "", n.Family},
		{"scope", "", "[" + strings.Join(n.Scope, ", ") + "]"},
		{"algorithm", "", n.Limit.Algorithm.String()},
		{"amount", "", number(n.Limit.Amount)},
		{"window", "", time.Duration(n.Limit.Window).String()},
		{"burst", "", ""},
		{"cost", "", n.Cost.String()},
		{"on_unavailable", "", n.OnUnavailable.String()},
		{"on_state_loss", "", unlessFirst(stateLosses, uint8(n.OnStateLoss))},
		{"mode", "", unlessFirst(modes, uint8(n.Mode))},
		{"consistency", "", unlessFirst(consistencies, uint8(n.Consistency))},
	}
	if hasBurst(n.Limit.Algorithm) {
		out[6].New = number(n.Limit.Burst)
	}
	return out
}

// String is c as a file may write it, "" for the default.
func (c Cost) String() string {
	c = c.normal()
	if len(c.Classes) == 0 {
		if c.Default == 1 {
			return ""
		}
		return fmt.Sprint(c.Default)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c.Classes)) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, c.Classes[name]))
	}
	return fmt.Sprintf("{%s, default: %d}", strings.Join(parts, ", "), c.Default)
}

// String is u as a file may write it, "" for the default.
func (u OnUnavailable) String() string {
	u = u.normal()
	switch {
	case u == OnUnavailable{}.normal():
		return ""
	case u.Mode == Open:
		return fmt.Sprintf("{mode: open, after: %s, for: %v, then: %s}", u.afterText(), u.For, u.Then)
	default:
		return fmt.Sprintf("{mode: %s, after: %s}", u.Mode, u.afterText())
	}
}

// String is c in one line or more, for people: "+", "-" or "~", the id, and a
// line for each field.
func (c Change) String() string {
	var b strings.Builder
	sign := map[Kind]string{Added: "+", Removed: "-", Changed: "~"}[c.Kind]
	id := c.ID
	if id == "" {
		id = "(settings)"
	}
	b.WriteString(sign + " " + id)
	if c.Version > 0 {
		fmt.Fprintf(&b, " (version %d)", c.Version)
	}
	if c.Source != "" {
		b.WriteString("  " + c.Source)
	}
	for _, f := range c.Fields {
		fmt.Fprintf(&b, "\n    %s: ", f.Field)
		switch {
		case c.Kind == Added:
			b.WriteString(f.New)
		default:
			fmt.Fprintf(&b, "%s → %s", orDefault(f.Old), orDefault(f.New))
		}
	}
	return b.String()
}

func orDefault(text string) string {
	if text == "" {
		return "(default)"
	}
	return text
}
