package policy

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// member is one key of a mapping with its value.
type member struct {
	key   string
	tok   *token.Token // of the key
	value ast.Node
}

// mapping returns the members of a mapping, in order.
func (r *reader) mapping(n ast.Node, path string) ([]member, error) {
	var pairs []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		return nil, r.fail(tokenOf(n), path, "%s, want keys and values", describe(n))
	}
	out := make([]member, 0, len(pairs))
	seen := make(map[string]bool, len(pairs))
	for _, p := range pairs {
		key, ok := scalar(p.Key)
		if !ok {
			return nil, r.fail(p.Key.GetToken(), path, "%s as a key, want a plain name", describe(p.Key))
		}
		if seen[key] {
			return nil, r.fail(p.Key.GetToken(), join(path, key), "a second %q", key)
		}
		seen[key] = true
		out = append(out, member{key, p.Key.GetToken(), p.Value})
	}
	return out, nil
}

// list returns the elements of a sequence.
func (r *reader) list(m member, path string) ([]ast.Node, error) {
	if s, ok := m.value.(*ast.SequenceNode); ok {
		return s.Values, nil
	}
	return nil, r.fail(m.tok, path, "%s, want a list", describe(m.value))
}

// text reads a scalar as it is written, so that 007 stays 007.
func (r *reader) text(m member, path string) (string, error) {
	s, ok := scalar(m.value)
	if !ok {
		return "", r.fail(m.tok, path, "%s, want a text", describe(m.value))
	}
	return s, nil
}

// whole reads an integer ≥ 0.
func (r *reader) whole(m member, path string) (uint64, error) {
	if n, ok := m.value.(*ast.IntegerNode); ok {
		switch v := n.Value.(type) {
		case uint64:
			return v, nil
		case int64:
			if v >= 0 {
				return uint64(v), nil
			}
		}
	}
	return 0, r.fail(m.tok, path, "%s, want a whole number, 0 or more", describe(m.value))
}

// names reads a list of texts, or one text as a list of one.
func (r *reader) names(m member, path string) ([]string, error) {
	r.places[path] = place{tok: m.tok}
	if s, ok := scalar(m.value); ok {
		return []string{s}, nil
	}
	elements, err := r.list(m, path)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(elements))
	for i, e := range elements {
		at := fmt.Sprintf("%s[%d]", path, i)
		r.places[at] = place{tok: tokenOf(e)}
		if out[i], err = r.text(member{tok: tokenOf(e), value: e}, at); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// scalar returns a scalar as it is written. Null is none.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	default:
		return "", false
	}
}

// describe says what a node is, for messages.
func describe(n ast.Node) string {
	if s, ok := scalar(n); ok {
		return fmt.Sprintf("%q", s)
	}
	switch n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor, alias or merge key"
	case *ast.TagNode:
		return "a tag"
	default:
		return "a " + n.Type().String() + " node"
	}
}

// tokenOf is GetToken for a node that may be nil.
func tokenOf(n ast.Node) *token.Token {
	if n == nil {
		return nil
	}
	return n.GetToken()
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
