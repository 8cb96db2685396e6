package envoyimport

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/ringlimit/ringlimit/policy/descriptor"
)

// The keys of a configuration, by where they mean something. Elsewhere they mean
// nothing, there as here; any other is an error.
var (
	rootKeys       = []string{"domain", "descriptors"}
	descriptorKeys = []string{
		"key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode", "detailed_metric", "value_to_metric", "share_threshold",
	}
	limitKeys = []string{"unit", "requests_per_unit", "unlimited", "name", "replaces"}
	allKeys   = slices.Concat(rootKeys, descriptorKeys, limitKeys)
)

// reader reads one file.
type reader struct {
	*importer
	file string
}

// file reads a file into the tree of its domain.
func (im *importer) file(f File) error {
	n, err := body(f)
	if err != nil {
		return err
	}
	if n == nil {
		return fail(f.Name, pos{}, "domain", "missing: the file is empty")
	}
	r := reader{im, f.Name}
	root := &node{file: f.Name, line: at(n).line}
	var descriptors ast.Node
	name := ""
	err = r.each(root, n, rootKeys, func(m member) (err error) {
		switch m.key {
		case "domain":
			name, err = r.text(root, m)
		case "descriptors":
			descriptors = m.value
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case name == "":
		return fail(f.Name, at(n), "domain", "missing or empty, want the domain that Envoy asks about")
	case strings.Contains(descriptor.Value(descriptor.Domain, name), "*"):
		return fail(f.Name, at(n), "domain", "%q, want no *: a policy cannot match it", name)
	}
	d := im.domains[name]
	if d == nil {
		d = &domain{name: name}
		im.domains[name] = d
		im.order = append(im.order, name)
	}
	return r.descriptors(&d.children, root, descriptors, 1)
}

// each calls f for all members of a mapping that mean something there.
func (r reader) each(n *node, in ast.Node, known []string, f func(member) error) error {
	all, err := members(r.file, n.path, in)
	if err != nil {
		return err
	}
	for _, m := range all {
		switch {
		case slices.Contains(known, m.key):
			err = f(m)
		case slices.Contains(allKeys, m.key):
			r.notes = append(r.notes, Note{r.file, m.at.line, join(n.path, m.key), "has no effect here, want it in another place"})
		default:
			err = fail(r.file, m.at, join(n.path, m.key), "unknown key, want %s", strings.Join(known, ", "))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// descriptors reads a list of them; parent is the root's or a descriptor's node, at
// depth − 1.
func (r reader) descriptors(into *siblings, parent *node, in ast.Node, depth int) error {
	field := join(parent.path, "descriptors")
	list, err := items(r.file, field, in)
	if err != nil {
		return err
	}
	if len(list) > 0 && depth > descriptor.MaxEntries {
		return fail(r.file, at(list[0]), field, "descriptors of more than %d entries, which no request carries", descriptor.MaxEntries)
	}
	for i, e := range list {
		n := &node{file: r.file, line: at(e).line, path: fmt.Sprintf("%s[%d]", field, i)}
		if depth > 1 {
			n.parent = parent
		}
		if err := r.descriptor(n, e, depth); err != nil {
			return err
		}
		if !into.add(n) {
			return fail(r.file, at(e), n.path, "a second descriptor of the key %q with this value, want one", n.key)
		}
	}
	return nil
}

// descriptor reads one.
func (r reader) descriptor(n *node, in ast.Node, depth int) error {
	var rate, children *member
	var value string
	flags := map[string]bool{}
	err := r.each(n, in, descriptorKeys, func(m member) (err error) {
		switch m.key {
		case "key":
			n.key, err = r.text(n, m)
		case "value":
			value, err = r.text(n, m)
		case "rate_limit":
			rate = &m
		case "descriptors":
			children = &m
		default:
			flags[m.key], err = r.flag(n, m)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := r.value(n, value, at(in)); err != nil {
		return err
	}
	if n.share = flags["share_threshold"]; n.share && !n.wild {
		return fail(r.file, at(in), n.path+".share_threshold", "set for the value %q, want a value that ends in *", value)
	}
	for _, metric := range []string{"detailed_metric", "value_to_metric"} {
		if flags[metric] {
			r.note(n, metric, "no metric of its own: ringlimit counts by group and by outcome, and its answers name the policy")
		}
	}
	if rate != nil && !null(rate.value) {
		if err := r.limit(n, rate); err != nil {
			return err
		}
		n.limit.shadow = flags["shadow_mode"] || flags["quota_mode"]
		if flags["quota_mode"] {
			r.note(n, "quota_mode", "becomes shadow: counted and never denied, without the metadata of quota violations")
		}
	}
	if children == nil {
		return nil
	}
	return r.descriptors(&n.children, n, children.value, depth+1)
}

func null(n ast.Node) bool {
	_, ok := n.(*ast.NullNode)
	return ok || n == nil
}

// value makes the condition of a node.
func (r reader) value(n *node, value string, where pos) error {
	name := n.key
	if name == "" {
		return fail(r.file, where, n.path+".key", "missing or empty, want the key of an entry")
	}
	if value == "" && strings.HasSuffix(n.key, "*") {
		return fail(r.file, where, n.path+".key", "%q, want no * at the end: a policy cannot match keys by their beginning", n.key)
	}
	text, wild := strings.CutSuffix(value, "*")
	switch {
	case strings.Contains(text, "*"):
		return fail(r.file, where, n.path+".value", "%q, want a * only at the end: a policy cannot match it", value)
	case wild && len(text) > descriptor.LongestPrefix(name):
		return fail(r.file, where, n.path+".value", "%d bytes before the *, want at most %d", len(text), descriptor.LongestPrefix(name))
	case wild && text != "":
		n.wild, n.cond = true, cond{prefix, text}
	case wild:
		n.wild = true
	case value != "":
		n.cond = cond{exact, value}
	}
	return nil
}

var units = map[string]time.Duration{
	"SECOND": time.Second, "MINUTE": time.Minute, "HOUR": time.Hour, "DAY": 24 * time.Hour,
	"WEEK": 7 * 24 * time.Hour, "MONTH": 30 * 24 * time.Hour, "YEAR": 365 * 24 * time.Hour,
}

// limit reads the limit of a node.
func (r reader) limit(n *node, rate *member) error {
	inner := &node{file: n.file, line: rate.at.line, path: n.path + ".rate_limit"}
	n.limit = &limit{}
	unit := ""
	err := r.each(inner, rate.value, limitKeys, func(m member) (err error) {
		switch m.key {
		case "unit":
			unit, err = r.text(inner, m)
		case "requests_per_unit":
			n.limit.amount, err = r.number(inner, m)
		case "unlimited":
			n.limit.unlimited, err = r.flag(inner, m)
		case "name":
			n.limit.name, err = r.text(inner, m)
		case "replaces":
			err = r.replaces(inner, m)
		}
		return err
	})
	if err != nil {
		return err
	}
	window, known := units[strings.ToUpper(unit)]
	switch {
	case n.limit.unlimited && known:
		return fail(r.file, rate.at, inner.path+".unit", "%q together with unlimited, want one of them", unit)
	case !n.limit.unlimited && !known:
		return fail(r.file, rate.at, inner.path+".unit", "%q, want second, minute, hour, day, week, month or year", unit)
	}
	n.limit.window = window
	return nil
}

// replaces reads what a limit takes the place of.
func (r reader) replaces(n *node, m member) error {
	field := n.path + ".replaces"
	list, err := items(r.file, field, m.value)
	if err != nil {
		return err
	}
	for i, e := range list {
		one := &node{file: n.file, line: at(e).line, path: fmt.Sprintf("%s[%d]", field, i)}
		name := ""
		if err := r.each(one, e, []string{"name"}, func(m member) (err error) {
			name, err = r.text(one, m)
			return err
		}); err != nil {
			return err
		}
		if name == "" {
			return fail(r.file, at(e), one.path+".name", "missing or empty, want the name of another limit")
		}
		r.note(one, "", "%q is not replaced: the descriptors of a request are independent, and both limits count", name)
	}
	return nil
}

// text reads a scalar as it is written; null is "".
func (r reader) text(n *node, m member) (string, error) {
	if null(m.value) {
		return "", nil
	}
	s, ok := scalar(m.value)
	if !ok {
		return "", fail(r.file, m.at, join(n.path, m.key), "%s, want a text", kind(m.value))
	}
	return s, nil
}

func (r reader) flag(n *node, m member) (bool, error) {
	s, err := r.text(n, m)
	if err != nil {
		return false, err
	}
	switch strings.ToLower(s) {
	case "true", "yes", "on", "y":
		return true, nil
	case "false", "no", "off", "n", "":
		return false, nil
	}
	return false, fail(r.file, m.at, join(n.path, m.key), "%q, want true or false", s)
}

func (r reader) number(n *node, m member) (uint64, error) {
	s, err := r.text(n, m)
	if err != nil || s == "" {
		return 0, err
	}
	v, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		return 0, fail(r.file, m.at, join(n.path, m.key), "%q, want 0 … %d", s, uint32(1<<32-1))
	}
	return v, nil
}
