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
	if err := checkNames("home", s.Home); err != nil {
		return err
	}
	if len(s.Home) == 0 {
		return invalid("home", "empty, want at least one name, such as [tenant]")
	}
	if int(s.NoMatch) >= len(actions) {
		return invalid("no_match", "%s, want allow or deny", s.NoMatch)
	}
	if len(s.Policies) > MaxPolicies {
		return invalid("policies", "%d of them, want at most %d", len(s.Policies), MaxPolicies)
	}
	seen := make(map[string]int, len(s.Policies))
	for i := range s.Policies {
		p := &s.Policies[i]
		path := fmt.Sprintf("policies[%d]", i)
		if err := p.check(path); err != nil {
			return err
		}
		if first, ok := seen[p.ID]; ok {
			return invalid(path+".id", "%q is the id of policies[%d] too, want distinct ids", p.ID, first)
		}
		seen[p.ID] = i
	}
	return s.checkHomes()
}

// invalid returns a ParseError that has no place yet.
func invalid(field, format string, args ...any) error {
	return &ParseError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

func (p *Policy) check(path string) error {
	switch {
	case p.ID == "":
		return invalid(path+".id", "missing, want a name for the policy")
	case len(p.ID) > maxID:
		return invalid(path+".id", "%d bytes, want at most %d", len(p.ID), maxID)
	case strings.ContainsFunc(p.ID, func(r rune) bool { return r < ' ' || r > '~' }):
		return invalid(path+".id", "%q, want printable ASCII", p.ID)
	}
	if err := p.checkMatch(path + ".match"); err != nil {
		return err
	}
	if err := checkNames(path+".scope", p.Scope); err != nil {
		return err
	}
	return p.checkLimit(path)
}

func (p *Policy) checkMatch(path string) error {
	if len(p.Match) > maxNames {
		return invalid(path, "%d names, want at most %d", len(p.Match), maxNames)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Match)) {
		value := p.Match[name]
		at := path + "." + name
		if err := checkTerm(name); err != nil {
			return invalid(at, "%v", err)
		}
		switch star := strings.IndexByte(value, '*'); {
		case value == "":
			return invalid(at, "empty, want a value, a prefix* or *")
		case len(value) > MaxRoute:
			return invalid(at, "%d bytes, want at most %d", len(value), MaxRoute)
		case !utf8.ValidString(value):
			return invalid(at, "not UTF-8")
		case star >= 0 && star < len(value)-1:
			return invalid(at, "%q, want a * only at the end", value)
		case fieldOf(name) == fieldRoute && cutRoute(value) != value:
			return invalid(at, "%q, want no ? and no #: query and fragment are cut off before matching", value)
		}
	}
	route, method := p.Match["route"], p.Match["method"]
	if m := methodOf(route); m != "" && method != "" && !condition("method", method).holds(m) {
		return invalid(path+".method", "%q, want %s, since the route is %q", method, m, route)
	}
	return nil
}

// checkNames judges a list of distinct names.
func checkNames(path string, names []string) error {
	if len(names) > maxNames {
		return invalid(path, "%d names, want at most %d", len(names), maxNames)
	}
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := checkTerm(name); err != nil {
			return invalid(at, "%v", err)
		}
		if slices.Contains(names[:i], name) {
			return invalid(at, "a second %q, want distinct names", name)
		}
	}
	return nil
}

func (p *Policy) checkLimit(path string) error {
	l := p.Limit
	_, known := algorithms[l.Algorithm]
	switch {
	case !known:
		return invalid(path+".algorithm", "%d, want token_bucket", l.Algorithm)
	case l.Amount > bucket.MaxAmount:
		return invalid(path+".amount", "%d, want 0 … %d", l.Amount, bucket.MaxAmount)
	case l.Window < bucket.MinWindow || l.Window > bucket.MaxWindow:
		return invalid(path+".window", "%v, want %v … %v", time.Duration(l.Window),
			time.Duration(bucket.MinWindow), time.Duration(bucket.MaxWindow))
	case l.Burst > bucket.MaxAmount:
		return invalid(path+".burst", "%d, want 1 … %d", l.Burst, bucket.MaxAmount)
	case l.Burst == 0 && l.Amount > 0:
		return invalid(path+".burst", "0, want 1 … %d; amount 0 is what denies all", bucket.MaxAmount)
	}
	return nil
}
