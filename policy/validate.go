package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringlimit/ringlimit/bucket"
)

// The bounds of a set.
const (
	MaxPolicies = 100_000
	maxID       = 128
	maxNames    = 16 // in home, scope or match
)

// Validate returns nil or a *ParseError without file and line: the first thing
// that is wrong, by the path of its field. Parse and Decode have called it.
func (s *Set) Validate() error {
	if err := s.checkSettings(); err != nil {
		return err
	}
	seen := make(map[string]int, len(s.Policies))
	for i, p := range s.Policies {
		if err := s.checkPolicy(p); err != nil {
			return at(i, err)
		}
		if first, ok := seen[p.ID]; ok {
			return at(i, invalid("id", "%q is the id of policies[%d] too, want distinct ids", p.ID, first))
		}
		seen[p.ID] = i
	}
	if err := s.checkFamilies(); err != nil {
		return err
	}
	return s.checkOverrides()
}

// checkSettings judges all but the policies one by one.
func (s *Set) checkSettings() error {
	if err := checkNames("home", s.Home); err != nil {
		return err
	}
	switch i := slices.Index(s.Home, "route_class"); {
	case len(s.Home) == 0:
		return invalid("home", "empty, want at least one name, such as [tenant]")
	case i >= 0:
		return invalid(fmt.Sprintf("home[%d]", i), "route_class, want what callers know by themselves")
	case !actions.has(uint8(s.NoMatch)):
		return invalid("no_match", "%s, want %s", s.NoMatch, actions)
	case len(s.Policies) > MaxPolicies:
		return invalid("policies", "%d of them, want at most %d", len(s.Policies), MaxPolicies)
	}
	return checkClasses(s.RouteClasses)
}

// CheckChanged says what is wrong with s, given that only some of its policies
// and what stands beside them are new, and the ids are distinct. It names the
// policy by id and source rather than by its place. For families alone it looks at
// the others.
func (s *Set) CheckChanged(changed []*Policy) error {
	if err := s.checkSettings(); err != nil {
		return err
	}
	for _, p := range changed {
		err := p.checkNewNames()
		if err == nil {
			err = s.checkPolicy(p)
		}
		if err != nil {
			return named(p, err)
		}
	}
	return s.checkFamiliesOf(changed)
}

// named puts the field of an error beneath a policy's id.
func named(p *Policy, err error) error {
	if p.Source == "" {
		return beneath(fmt.Sprintf("policy %q", p.ID), err)
	}
	return beneath(fmt.Sprintf("%s: policy %q", p.Source, p.ID), err)
}

func (s *Set) checkOverrides() error {
	if len(s.Overrides) > MaxOverrides {
		return invalid("overrides", "%d of them, want at most %d", len(s.Overrides), MaxOverrides)
	}
	for i, o := range s.Overrides {
		if err := s.CheckOverride(o); err != nil {
			return beneath(fmt.Sprintf("overrides[%d]", i), err)
		}
		if i > 0 && s.Overrides[i-1].Compare(o) >= 0 {
			return invalid(fmt.Sprintf("overrides[%d]", i), "out of order or a second one for its key")
		}
	}
	return nil
}

// invalid returns a ParseError that has no place yet.
func invalid(field, format string, args ...any) error {
	return &ParseError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// beneath puts the field of an error beneath a path.
func beneath(path string, err error) error {
	e := *err.(*ParseError) // all checks of this package return one
	e.Field = join(path, e.Field)
	return &e
}

func at(i int, err error) error { return beneath(fmt.Sprintf("policies[%d]", i), err) }

// checkPolicy judges one policy by itself and by the route classes of s.
func (s *Set) checkPolicy(p *Policy) error {
	if err := checkID(p.ID); err != nil {
		return invalid("id", "%v", err)
	}
	if p.Family != "" {
		if err := checkID(p.Family); err != nil {
			return invalid("family", "%v", err)
		}
	}
	if err := p.checkMatch(); err != nil {
		return err
	}
	if err := checkNames("scope", p.Scope); err != nil {
		return err
	}
	if err := s.checkClassUse(p); err != nil {
		return err
	}
	if err := checkLimit(p.Limit); err != nil {
		return err
	}
	return p.checkWords()
}

func checkID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("missing, want a name for the policy")
	case len(id) > maxID:
		return fmt.Errorf("%d bytes, want at most %d", len(id), maxID)
	case !printable(id):
		return fmt.Errorf("%q, want printable ASCII", id)
	}
	return nil
}

func (p *Policy) checkMatch() error {
	if len(p.Match) > maxNames {
		return invalid("match", "%d names, want at most %d", len(p.Match), maxNames)
	}
	for i, c := range p.Match {
		field := "match." + c.Name
		if err := checkName(c.Name); err != nil {
			return invalid(field, "%v", err)
		}
		if i > 0 && p.Match[i-1].Name >= c.Name {
			return invalid(field, "a second %q or out of order, want distinct names", c.Name)
		}
		if err := checkValue(c); err != nil {
			return invalid(field, "%v", err)
		}
	}
	route, method := p.Match.Get("route"), p.Match.Get("method")
	if m := methodOf(route); m != "" && method != "" {
		if c := (Condition{"method", method}).parts(); !c.holds(m) {
			return invalid("match.method", "%q, want %s, since the route is %q", method, m, route)
		}
	}
	return nil
}

// checkValue judges what a condition wants.
func checkValue(c Condition) error {
	switch star := strings.IndexByte(c.Value, '*'); {
	case c.Value == "":
		return fmt.Errorf("empty, want a value, a prefix* or *")
	case len(c.Value) > MaxRoute:
		return fmt.Errorf("%d bytes, want at most %d", len(c.Value), MaxRoute)
	case !utf8.ValidString(c.Value):
		return fmt.Errorf("not UTF-8")
	case star >= 0 && star < len(c.Value)-1:
		return fmt.Errorf("%q, want a * only at the end", c.Value)
	case c.Name == "route" && cutRoute(c.Value) != c.Value:
		return fmt.Errorf("%q, want no ? and no #: query and fragment are cut off before matching", c.Value)
	}
	return nil
}

// checkNames judges a list of distinct names.
func checkNames(path string, names []string) error {
	if len(names) > maxNames {
		return invalid(path, "%d names, want at most %d", len(names), maxNames)
	}
	for i, name := range names {
		if err := checkName(name); err != nil {
			return invalid(fmt.Sprintf("%s[%d]", path, i), "%v", err)
		}
		if slices.Contains(names[:i], name) {
			return invalid(fmt.Sprintf("%s[%d]", path, i), "a second %q, want distinct names", name)
		}
	}
	return nil
}

func checkLimit(l bucket.Limit) error {
	_, known := bucket.ParseAlgorithm(l.Algorithm.String())
	switch {
	case !known:
		return invalid("algorithm", "%s, want %s", l.Algorithm, either(algorithmNames))
	case l.Amount > bucket.MaxAmount:
		return invalid("amount", "%d, want 0 … %d", l.Amount, bucket.MaxAmount)
	case l.Window < bucket.MinWindow || l.Window > bucket.MaxWindow:
		return invalid("window", "%v, want %v … %v", time.Duration(l.Window),
			time.Duration(bucket.MinWindow), time.Duration(bucket.MaxWindow))
	case !hasBurst(l.Algorithm):
		if l.Burst != l.Amount && l.Burst != 0 {
			return invalid("burst", "%d, want none: %s has no burst, its capacity is the amount", l.Burst, l.Algorithm)
		}
	case l.Burst > bucket.MaxAmount:
		return invalid("burst", "%d, want 1 … %d", l.Burst, bucket.MaxAmount)
	case l.Burst == 0 && l.Amount > 0:
		return invalid("burst", "0, want 1 … %d; amount 0 is what denies all", bucket.MaxAmount)
	}
	return nil
}

// checkWords judges costs and what is chosen from a list.
func (p *Policy) checkWords() error {
	for _, name := range slices.Sorted(maps.Keys(p.Cost.Classes)) {
		if n := p.Cost.Classes[name]; n < 1 || n > bucket.MaxAmount {
			return invalid("cost."+name, "%d, want 1 … %d", n, bucket.MaxAmount)
		}
	}
	switch {
	case p.Cost.Default > bucket.MaxAmount:
		return invalid("cost", "%d, want 1 … %d", p.Cost.Default, bucket.MaxAmount)
	case !stateLosses.has(uint8(p.OnStateLoss)):
		return invalid("on_state_loss", "%s, want %s", p.OnStateLoss, stateLosses)
	case !modes.has(uint8(p.Mode)):
		return invalid("mode", "%s, want %s", p.Mode, modes)
	case !consistencies.has(uint8(p.Consistency)):
		return invalid("consistency", "%s, want %s", p.Consistency, consistencies)
	case p.Consistency == Leased && !p.Limit.Algorithm.Leasable():
		return invalid("consistency", "leased, want strict for %s: only tokens of token_bucket and fixed_window can be handed out before they are used", p.Limit.Algorithm)
	}
	return p.OnUnavailable.check("on_unavailable")
}
