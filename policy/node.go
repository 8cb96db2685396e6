package policy

import "fmt"

// describe says what a node is, for messages.
func (n *node) describe() string {
	switch n.kind {
	case nothing:
		return "nothing"
	case text, number:
		return excerpt(n.text)
	case mapping:
		return "a mapping"
	case list:
		return "a list"
	default:
		return n.text
	}
}

// excerpt quotes a text for an error, cut short: a file given by mistake, of
// secrets perhaps, must not be in a log as a whole.
func excerpt(s string) string {
	const most = 60
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q…", s[:most])
}

// scalar returns a text or number as it is written.
func (n *node) scalar() (string, bool) { return n.text, n.kind == text || n.kind == number }

// mapping returns the members of a mapping, in order.
func (r *reader) mapping(n *node, at pos, path string) ([]member, error) {
	if n.kind != mapping {
		return nil, r.fail(at, path, "%s, want keys and values", n.describe())
	}
	for i := range n.members {
		m := &n.members[i]
		if m.badKey != "" {
			return nil, r.fail(m.at, path, "%s as a key, want a plain name", m.badKey)
		}
		for j := range i {
			if n.members[j].key == m.key {
				return nil, r.fail(m.at, join(path, m.key), "a second %q", m.key)
			}
		}
	}
	return n.members, nil
}

// list returns the elements of a sequence.
func (r *reader) list(m *member, path string) ([]node, error) {
	if m.value.kind != list {
		return nil, r.fail(m.at, path, "%s, want a list", m.value.describe())
	}
	return m.value.items, nil
}

// text reads a scalar.
func (r *reader) text(n *node, at pos, path string) (string, error) {
	s, ok := n.scalar()
	if !ok {
		return "", r.fail(at, path, "%s, want a text", n.describe())
	}
	return r.intern(s), nil
}

// whole reads an integer ≥ 0.
func (r *reader) whole(m *member, path string) (uint64, error) {
	if m.value.kind != number {
		return 0, r.fail(m.at, path, "%s, want a whole number, 0 or more", m.value.describe())
	}
	return m.value.value, nil
}

// names reads a list of texts, or one text as a list of one.
func (r *reader) names(m *member, path string) ([]string, error) {
	r.note(path, m.at)
	if s, ok := m.value.scalar(); ok {
		return []string{r.intern(s)}, nil
	}
	elements, err := r.list(m, path)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(elements))
	for i := range elements {
		e := &elements[i]
		at := path
		if r.places != nil || e.kind != text {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		r.note(at, e.at)
		if out[i], err = r.text(e, e.at, at); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" || key == "" {
		return path + key
	}
	return path + "." + key
}
