package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// policyKeys are the keys of a policy in a file.
var policyKeys = []string{
	"id", "match", "family", "scope", "algorithm", "amount", "window", "burst", "cost",
	"on_unavailable", "on_state_loss", "mode", "consistency",
	"rate_per_second", "limit_count", "window_seconds",
}

// given is where the keys of a policy stand, by their order in policyKeys.
type given [16]pos

func (g *given) at(key string) pos { return g[slices.Index(policyKeys, key)] }

func (g *given) has(key string) bool { return g.at(key).line != 0 }

// policy reads one element of policies.
func (r *reader) policy(n *node, i int) (*Policy, error) {
	path := fmt.Sprintf("policies[%d]", i)
	members, err := r.mapping(n, n.at, path)
	if err != nil {
		return nil, err
	}
	p := &Policy{Match: Match{}, Limit: bucket.Limit{Algorithm: bucket.TokenBucket}}
	first := n.at
	if len(members) > 0 {
		first = members[0].at
	}
	r.note(path, first)
	p.Source = fmt.Sprintf("%s:%d", r.file, first.line)
	var g given
	for i := range members {
		m := &members[i]
		at := path + "." + m.key
		r.note(at, m.at)
		key := slices.Index(policyKeys, m.key)
		if key < 0 {
			return nil, r.fail(m.at, at, "unknown key, want %s", either(policyKeys))
		}
		g[key] = m.at
		if err := r.field(p, m, path, at); err != nil {
			return nil, err
		}
	}
	if err := r.complete(p, path, first, &g); err != nil {
		return nil, err
	}
	return p.normal(), nil
}

// field reads the value of one key of policyKeys.
func (r *reader) field(p *Policy, m *member, path, at string) (err error) {
	switch m.key {
	case "id":
		p.ID, err = r.text(&m.value, m.at, at)
	case "family":
		p.Family, err = r.text(&m.value, m.at, at)
	case "match":
		p.Match, err = r.match(m, at)
	case "scope":
		p.Scope, err = r.names(m, at)
	case "algorithm":
		p.Limit.Algorithm, err = r.algorithm(m, at)
	case "amount", "limit_count", "rate_per_second":
		p.Limit.Amount, err = r.whole(m, at)
		r.rename(path+".amount", m.at, at)
	case "window":
		var d time.Duration
		d, err = r.duration(m, at)
		p.Limit.Window = int64(d)
	case "window_seconds":
		p.Limit.Window, err = r.seconds(m, at)
		r.rename(path+".window", m.at, at)
	case "burst":
		p.Limit.Burst, err = r.whole(m, at)
	case "cost":
		p.Cost, err = r.cost(m, at)
	case "on_unavailable":
		p.OnUnavailable, err = r.unavailable(m, at)
	case "on_state_loss":
		err = r.word(m, at, stateLosses, (*uint8)(&p.OnStateLoss))
	case "mode":
		err = r.word(m, at, modes, (*uint8)(&p.Mode))
	case "consistency":
		err = r.word(m, at, consistencies, (*uint8)(&p.Consistency))
	}
	return err
}

// rename notes that a field stands in the file under another name.
func (r *reader) rename(path string, at pos, name string) {
	if r.places != nil {
		r.places[path] = place{at, name}
	}
}

// forms are the ways to give amount and window.
var forms = [][]string{{"amount", "window"}, {"rate_per_second"}, {"limit_count", "window_seconds"}}

// complete checks that the keys given make a policy, and fills in the defaults.
func (r *reader) complete(p *Policy, path string, first pos, g *given) error {
	if !g.has("id") {
		return r.fail(first, path+".id", "missing, want a name for the policy")
	}
	if !g.has("scope") {
		return r.fail(first, path+".scope", "missing, want the names of what is counted together, such as [tenant]; [] counts everything together")
	}
	form := forms[0]
	found := false
	for _, f := range forms {
		for _, key := range f {
			if !g.has(key) {
				continue
			}
			if found && &form[0] != &f[0] {
				return r.fail(g.at(key), path+"."+key, "given together with %s, want one way to give amount and window", form[0])
			}
			form, found = f, true
		}
	}
	for _, key := range form {
		if !g.has(key) {
			return r.fail(first, path+"."+key, "missing, want amount and window, rate_per_second, or limit_count and window_seconds")
		}
	}
	if form[0] == "rate_per_second" {
		p.Limit.Window = int64(time.Second)
	}
	switch bursts := hasBurst(p.Limit.Algorithm); {
	case !g.has("burst"):
		p.Limit.Burst = p.Limit.Amount
	case !bursts:
		return r.fail(g.at("burst"), path+".burst", "%d, want none: %s has no burst, its capacity is the amount", p.Limit.Burst, p.Limit.Algorithm)
	case p.Limit.Burst == 0 && p.Limit.Amount > 0:
		return r.fail(g.at("burst"), path+".burst", "0, want 1 … %d; amount 0 is what denies all", bucket.MaxAmount)
	}
	return nil
}

// cost reads a number, or numbers by route class.
func (r *reader) cost(m *member, path string) (c Cost, err error) {
	if m.value.kind != mapping {
		if c.Default, err = r.whole(m, path); err == nil && c.Default == 0 {
			err = r.fail(m.at, path, "0, want 1 … %d", bucket.MaxAmount)
		}
		return c, err
	}
	members, err := r.mapping(&m.value, m.at, path)
	if err != nil {
		return c, err
	}
	for i := range members {
		m := &members[i]
		at := path + "." + m.key
		r.note(at, m.at)
		n, err := r.whole(m, at)
		switch {
		case err != nil:
			return c, err
		case n < 1 || n > bucket.MaxAmount:
			return c, r.fail(m.at, at, "%d, want 1 … %d", n, bucket.MaxAmount)
		case m.key == defaultClass:
			c.Default = n
		case c.Classes == nil:
			c.Classes = map[string]uint64{r.intern(m.key): n}
		default:
			c.Classes[r.intern(m.key)] = n
		}
	}
	return c, nil
}

// unavailable reads a failure mode: a mapping, or its mode alone.
func (r *reader) unavailable(m *member, path string) (u OnUnavailable, err error) {
	if _, ok := m.value.scalar(); ok {
		return u, r.word(m, path, failureModes, (*uint8)(&u.Mode))
	}
	members, err := r.mapping(&m.value, m.at, path)
	for i := range members {
		m := &members[i]
		at := path + "." + m.key
		r.note(at, m.at)
		switch m.key {
		case "mode":
			err = r.word(m, at, failureModes, (*uint8)(&u.Mode))
		case "after":
			u.After, err = r.after(m, at)
		case "for":
			if u.For, err = r.duration(m, at); err == nil && u.For <= 0 {
				err = r.fail(m.at, at, "%v, want %v … %v", u.For, minAfter, maxOpen)
			}
		case "then":
			err = r.word(m, at, failureModes, (*uint8)(&u.Then))
		default:
			err = r.fail(m.at, at, "unknown key, want mode, after, for or then")
		}
		if err != nil {
			return u, err
		}
	}
	return u, err
}

func (r *reader) after(m *member, path string) (time.Duration, error) {
	if s, ok := m.value.scalar(); ok && strings.EqualFold(s, "deadline") {
		return AfterDeadline, nil
	}
	d, err := r.duration(m, path)
	if err == nil && d <= 0 {
		err = r.fail(m.at, path, "%v, want %v … %v or deadline", d, minAfter, maxAfter)
	}
	return d, err
}
