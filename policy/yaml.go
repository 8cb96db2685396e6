package policy

import (
	"errors"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// pos is a place in a file, from 1; the zero pos is not known.
type pos struct{ line, column int }

// kind is what a node of a file is.
type kind uint8

const (
	nothing kind = iota // null, or no value at all
	text                // a scalar that is not a whole number ≥ 0
	number              // a whole number ≥ 0
	mapping
	list
	other // what policy files have no use for: anchors, tags, …
)

// node is a value in a policy file.
type node struct {
	kind    kind
	at      pos
	text    string // text, number: as it is written, so that 007 stays 007; other: what it is
	value   uint64 // number
	members []member
	items   []node
}

// member is one key of a mapping with its value.
type member struct {
	key    string
	at     pos    // of the key
	badKey string // what stands in place of a plain key; "": key is one
	value  node
}

// parseYAML reads one document whose first line is line first of the file.
func (r *reader) parseYAML(data string, first int) (node, error) {
	doc, err := parser.ParseBytes([]byte(data), 0)
	if err != nil {
		return node{}, r.syntax(err, first)
	}
	y := converter{first - 1}
	if len(doc.Docs) > 1 {
		return node{}, r.fail(y.pos(doc.Docs[1].GetToken()), "", "a second document, want one")
	}
	if len(doc.Docs) == 0 || doc.Docs[0].Body == nil {
		return node{}, nil
	}
	return y.node(doc.Docs[0].Body), nil
}

// syntax makes an error of the YAML parser ours.
func (r *reader) syntax(err error, first int) error {
	var y yaml.Error
	if errors.As(err, &y) {
		return r.fail(converter{first - 1}.pos(y.GetToken()), "", "%s", y.GetMessage())
	}
	return &ParseError{File: r.file, Reason: err.Error()}
}

// converter makes nodes of syntax trees.
type converter struct{ before int } // lines of the file before the text that was parsed

func (y converter) pos(t *token.Token) pos {
	if t == nil || t.Position == nil {
		return pos{}
	}
	return pos{t.Position.Line + y.before, t.Position.Column}
}

func (y converter) node(n ast.Node) node {
	if n == nil {
		return node{}
	}
	out := node{at: y.pos(n.GetToken())}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.IntegerNode:
		out.kind, out.text = text, n.GetToken().Value
		switch v := n.Value.(type) {
		case uint64:
			out.kind, out.value = number, v
		case int64:
			if v >= 0 {
				out.kind, out.value = number, uint64(v)
			}
		}
	case *ast.MappingNode:
		out.kind, out.members = mapping, y.members(n.Values)
	case *ast.MappingValueNode:
		out.kind, out.members = mapping, y.members([]*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out.kind = list
		for _, v := range n.Values {
			out.items = append(out.items, y.node(v))
		}
	default:
		if s, ok := scalar(n); ok {
			out.kind, out.text = text, s
		} else {
			out.kind, out.text = other, strange(n)
		}
	}
	return out
}

func (y converter) members(values []*ast.MappingValueNode) []member {
	out := make([]member, len(values))
	for i, v := range values {
		key, ok := scalar(v.Key)
		out[i] = member{key: key, at: y.pos(v.Key.GetToken()), value: y.node(v.Value)}
		if !ok {
			n := y.node(v.Key)
			out[i].badKey = n.describe()
		}
	}
	return out
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

func strange(n ast.Node) string {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor, alias or merge key"
	case *ast.TagNode:
		return "a tag"
	default:
		return "a " + n.Type().String() + " node"
	}
}
