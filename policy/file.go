package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/ringlimit/ringlimit/bucket"
)

// later are keys of the design that this build does not read yet.
var later = []string{
	"route_classes", "family", "cost", "on_unavailable", "on_state_loss", "mode", "consistency",
}

// laterAlgorithms likewise.
var laterAlgorithms = []string{
	"leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "concurrency",
}

// unknown is the error for a key that has no meaning here.
func (r *reader) unknown(m member, path, want string) error {
	if slices.Contains(later, m.key) {
		return r.fail(m.tok, path, "not available yet")
	}
	return r.fail(m.tok, path, "unknown key, want %s", want)
}

// set reads the whole file.
func (r *reader) set(body ast.Node) (*Set, error) {
	if body == nil {
		return nil, &ParseError{File: r.file, Reason: "empty, want the key policies"}
	}
	members, err := r.mapping(body, "")
	if err != nil {
		return nil, err
	}
	s := &Set{Home: []string{"tenant"}, Policies: []Policy{}}
	listed := false
	for _, m := range members {
		r.places[m.key] = place{tok: m.tok}
		switch m.key {
		case "home":
			s.Home, err = r.names(m, "home")
		case "no_match":
			s.NoMatch, err = r.action(m)
		case "policies":
			listed = true
			s.Policies, err = r.policies(m)
		default:
			err = r.unknown(m, m.key, "home, no_match or policies")
		}
		if err != nil {
			return nil, err
		}
	}
	if !listed {
		return nil, r.fail(tokenOf(body), "policies", "missing, want a list of policies, [] for none")
	}
	return s, nil
}

func (r *reader) action(m member) (Action, error) {
	word, err := r.text(m, "no_match")
	if err != nil {
		return 0, err
	}
	i := slices.Index(actions[:], word)
	if i < 0 {
		return 0, r.fail(m.tok, "no_match", "%q, want allow or deny", word)
	}
	return Action(i), nil
}

func (r *reader) policies(m member) ([]Policy, error) {
	elements, err := r.list(m, "policies")
	if err != nil {
		return nil, err
	}
	if len(elements) > MaxPolicies {
		return nil, r.fail(m.tok, "policies", "%d of them, want at most %d", len(elements), MaxPolicies)
	}
	out := make([]Policy, len(elements))
	for i, e := range elements {
		if out[i], err = r.policy(e, fmt.Sprintf("policies[%d]", i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// policy reads one element of policies.
func (r *reader) policy(n ast.Node, path string) (Policy, error) {
	members, err := r.mapping(n, path)
	if err != nil {
		return Policy{}, err
	}
	p := Policy{Match: map[string]string{}, Limit: bucket.Limit{Algorithm: bucket.TokenBucket}}
	given := map[string]*token.Token{}
	for i, m := range members {
		if i == 0 {
			r.places[path] = place{tok: m.tok}
		}
		given[m.key] = m.tok
		at := path + "." + m.key
		r.places[at] = place{tok: m.tok}
		switch m.key {
		case "id":
			p.ID, err = r.text(m, at)
		case "match":
			p.Match, err = r.match(m, at)
		case "scope":
			p.Scope, err = r.names(m, at)
		case "algorithm":
			p.Limit.Algorithm, err = r.algorithm(m, at)
		case "amount", "limit_count", "rate_per_second":
			p.Limit.Amount, err = r.whole(m, at)
			r.places[path+".amount"] = place{m.tok, at}
		case "window":
			p.Limit.Window, err = r.duration(m, at)
		case "window_seconds":
			p.Limit.Window, err = r.seconds(m, at)
			r.places[path+".window"] = place{m.tok, at}
		case "burst":
			p.Limit.Burst, err = r.whole(m, at)
		default:
			err = r.unknown(m, at, "id, match, scope, algorithm, amount, window, burst, or one of the other ways to give amount and window")
		}
		if err != nil {
			return Policy{}, err
		}
	}
	return p, r.complete(&p, path, given)
}

// complete checks that the keys given make a policy, and fills in the defaults.
func (r *reader) complete(p *Policy, path string, given map[string]*token.Token) error {
	first := r.places[path].tok
	for _, key := range []string{"id", "scope"} {
		if given[key] == nil {
			return r.fail(first, path+"."+key, "missing, want %s", map[string]string{
				"id":    "a name for the policy",
				"scope": "the names of what is counted together, such as [tenant]; [] counts everything together",
			}[key])
		}
	}
	forms := [][]string{{"amount", "window"}, {"rate_per_second"}, {"limit_count", "window_seconds"}}
	var form []string
	for _, f := range forms {
		for _, key := range f {
			if given[key] == nil {
				continue
			}
			if form != nil && &form[0] != &f[0] {
				return r.fail(given[key], path+"."+key, "given together with %s, want one way to give amount and window", form[0])
			}
			form = f
		}
	}
	if form == nil {
		form = forms[0]
	}
	for _, key := range form {
		if given[key] == nil {
			return r.fail(first, path+"."+key, "missing, want amount and window, rate_per_second, or limit_count and window_seconds")
		}
	}
	if form[0] == "rate_per_second" {
		p.Limit.Window = int64(time.Second)
	}
	if given["burst"] == nil {
		p.Limit.Burst = p.Limit.Amount
	}
	return nil
}

// match reads the conditions of a policy.
func (r *reader) match(m member, path string) (map[string]string, error) {
	members, err := r.mapping(m.value, path)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(members))
	for _, m := range members {
		at := path + "." + m.key
		r.places[at] = place{tok: m.tok}
		if out[m.key], err = r.text(m, at); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *reader) algorithm(m member, path string) (bucket.Algorithm, error) {
	name, err := r.text(m, path)
	if err != nil {
		return 0, err
	}
	a, ok := algorithm(name)
	switch {
	case ok:
		return a, nil
	case slices.Contains(laterAlgorithms, name):
		return 0, r.fail(m.tok, path, "%s is not available yet, want token_bucket", name)
	default:
		return 0, r.fail(m.tok, path, "%q, want token_bucket", name)
	}
}

// duration reads a Go duration.
func (r *reader) duration(m member, path string) (int64, error) {
	if text, ok := scalar(m.value); ok {
		if d, err := time.ParseDuration(text); err == nil {
			return int64(d), nil
		}
	}
	return 0, r.fail(m.tok, path, "%s, want a duration such as 500ms, 1s, 1h30m or 8760h", describe(m.value))
}

// seconds reads whole seconds. More than can be counted in ns is out of range anyway.
func (r *reader) seconds(m member, path string) (int64, error) {
	n, err := r.whole(m, path)
	if err != nil {
		return 0, err
	}
	return int64(min(n, 1<<32)) * int64(time.Second), nil
}
