package envoyimport

import (
	"errors"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/ringlimit/ringlimit/policy"
)

// pos is a place in a file, from 1; the zero pos is not known.
type pos struct{ line, column int }

func at(n ast.Node) pos { return of(n.GetToken()) }

func of(t *token.Token) pos {
	if t == nil || t.Position == nil {
		return pos{}
	}
	return pos{t.Position.Line, t.Position.Column}
}

// body returns the one document of a file, nil if it is empty.
func body(f File) (ast.Node, error) {
	if !utf8.Valid(f.Data) {
		return nil, &policy.ParseError{File: f.Name, Reason: "not UTF-8"}
	}
	doc, err := parser.ParseBytes(f.Data, 0)
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) {
			return nil, fail(f.Name, of(y.GetToken()), "", "%s", y.GetMessage())
		}
		return nil, &policy.ParseError{File: f.Name, Reason: err.Error()}
	}
	switch {
	case len(doc.Docs) > 1:
		return nil, fail(f.Name, of(doc.Docs[1].GetToken()), "", "a second document, want one domain a file")
	case len(doc.Docs) == 0:
		return nil, nil
	}
	return doc.Docs[0].Body, nil
}

// member is one key of a mapping.
type member struct {
	key   string
	at    pos
	value ast.Node
}

// members returns the keys of a mapping in order.
func members(file, path string, n ast.Node) ([]member, error) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, fail(file, at(n), path, "%s, want a mapping", kind(n))
	}
	out := make([]member, len(values))
	for i, v := range values {
		key, ok := scalar(v.Key)
		if !ok {
			return nil, fail(file, at(v.Key), path, "%s for a key, want a word", kind(v.Key))
		}
		out[i] = member{key, at(v.Key), v.Value}
	}
	return out, nil
}

// items returns the elements of a list; null has none.
func items(file, path string, n ast.Node) ([]ast.Node, error) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		return n.Values, nil
	case *ast.NullNode, nil:
		return nil, nil
	default:
		return nil, fail(file, at(n), path, "%s, want a list", kind(n))
	}
}

// scalar returns a scalar as it is written: 080 stays 080. Null is none.
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

// kind says what a node is.
func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor, alias or merge key (write it out)"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	}
	if _, ok := scalar(n); ok {
		return "a scalar"
	}
	return "a " + n.Type().String() + " node"
}
