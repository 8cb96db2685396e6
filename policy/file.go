package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// set reads the whole file.
func (r *reader) set(d *document) (*Set, error) {
	if d.body.kind == nothing && !d.split {
		return nil, &ParseError{File: r.file, Reason: "empty, want the key policies"}
	}
	members, err := r.mapping(&d.body, d.body.at, "")
	if err != nil {
		return nil, err
	}
	s := &Set{Home: []string{"tenant"}, Omitted: []string{"home", "no_match", "route_classes"}}
	var policies *member
	for i := range members {
		m := &members[i]
		r.note(m.key, m.at)
		s.Omitted = slices.DeleteFunc(s.Omitted, func(key string) bool { return key == m.key })
		switch m.key {
		case "home":
			s.Home, err = r.names(m, "home")
		case "no_match":
			err = r.word(m, "no_match", actions, (*uint8)(&s.NoMatch))
		case "route_classes":
			s.RouteClasses, err = r.classes(m)
		case "policies":
			policies = m
		default:
			err = r.fail(m.at, m.key, "unknown key, want home, no_match, route_classes or policies")
		}
		if err != nil {
			return nil, err
		}
	}
	if policies == nil {
		return nil, r.fail(d.body.at, "policies", "missing, want a list of policies, [] for none")
	}
	if !d.split {
		if d.list, err = r.list(policies, "policies"); err != nil {
			return nil, err
		}
	}
	s.Policies, err = r.policies(d, policies.at)
	return s, err
}

// word reads one of some words.
func (r *reader) word(m *member, path string, w words, into *uint8) error {
	word, err := r.text(&m.value, m.at, path)
	if err != nil {
		return err
	}
	v, ok := w.parse(word)
	if !ok {
		return r.fail(m.at, path, "%q, want %s", word, w)
	}
	*into = v
	return nil
}

func (r *reader) policies(d *document, at pos) ([]*Policy, error) {
	if d.count() > MaxPolicies {
		return nil, r.fail(at, "policies", "%d of them, want at most %d", d.count(), MaxPolicies)
	}
	out := make([]*Policy, d.count())
	places := r.places
	r.places = nil // see locate
	defer func() { r.places = places }()
	for i := range out {
		n, err := d.item(i)
		if err != nil {
			return nil, err
		}
		if out[i], err = r.policy(&n, i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// classes reads the route classes.
func (r *reader) classes(m *member) ([]RouteClass, error) {
	elements, err := r.list(m, "route_classes")
	if err != nil {
		return nil, err
	}
	out := make([]RouteClass, len(elements))
	for i := range elements {
		path := fmt.Sprintf("route_classes[%d]", i)
		members, err := r.mapping(&elements[i], elements[i].at, path)
		if err != nil {
			return nil, err
		}
		if len(members) > 0 {
			r.note(path, members[0].at)
		}
		for k := range members {
			m := &members[k]
			at := path + "." + m.key
			r.note(at, m.at)
			switch m.key {
			case "name":
				out[i].Name, err = r.text(&m.value, m.at, at)
			case "routes":
				out[i].Routes, err = r.names(m, at)
			default:
				err = r.fail(m.at, at, "unknown key, want name or routes")
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// match reads the conditions of a policy.
func (r *reader) match(m *member, path string) (Match, error) {
	members, err := r.mapping(&m.value, m.at, path)
	if err != nil {
		return nil, err
	}
	out := make(Match, len(members))
	for i := range members {
		m := &members[i]
		at := path + "." + m.key
		r.note(at, m.at)
		out[i].Name = r.intern(m.key)
		if out[i].Value, err = r.text(&m.value, m.at, at); err != nil {
			return nil, err
		}
	}
	out.sort()
	return out, nil
}

func (r *reader) algorithm(m *member, path string) (bucket.Algorithm, error) {
	name, err := r.text(&m.value, m.at, path)
	if err != nil {
		return 0, err
	}
	a, ok := bucket.ParseAlgorithm(name)
	if !ok {
		return 0, r.fail(m.at, path, "%q, want %s", name, either(algorithmNames))
	}
	return a, nil
}

// duration reads a Go duration.
func (r *reader) duration(m *member, path string) (time.Duration, error) {
	if text, ok := m.value.scalar(); ok {
		if d, err := time.ParseDuration(text); err == nil {
			return d, nil
		}
	}
	return 0, r.fail(m.at, path, "%s, want a duration such as 500ms, 1s, 1h30m or 8760h", m.value.describe())
}

// seconds reads whole seconds. More than can be counted in ns is out of range anyway.
func (r *reader) seconds(m *member, path string) (int64, error) {
	n, err := r.whole(m, path)
	if err != nil {
		return 0, err
	}
	return int64(min(n, 1<<32)) * int64(time.Second), nil
}
