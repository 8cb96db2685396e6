package envoyimport

import (
	"strings"
	"time"
)

// domain is the tree of one domain.
type domain struct {
	name     string
	children siblings
}

// node is one descriptor of the configuration.
type node struct {
	file   string
	line   int
	path   string // in the file, such as descriptors[0].descriptors[2]
	parent *node

	key  string
	cond cond // on the value
	wild bool // declared with a * at the end: tried in the order of the file
	// Of a wild one: all values share one counter, and the keys beneath do not tell them
	// apart either.
	share    bool
	limit    *limit
	children siblings
}

// limit is what a descriptor may use.
type limit struct {
	unlimited bool
	amount    uint64 // 0 … 2^32 − 1
	window    time.Duration
	shadow    bool // counted and never denied
	name      string
}

// siblings are the descriptors of one level.
type siblings struct {
	all   []*node
	byKey map[string]*choice
}

// choice are the siblings of one key.
type choice struct {
	exact map[string]*node
	wild  []*node // in the order of the file
	any   *node
}

// add files a node; false if there is one of the same key and value.
func (s *siblings) add(n *node) bool {
	if s.byKey == nil {
		s.byKey = map[string]*choice{}
	}
	c := s.byKey[n.key]
	if c == nil {
		c = &choice{exact: map[string]*node{}}
		s.byKey[n.key] = c
	}
	switch {
	case n.wild:
		for _, w := range c.wild {
			if w.cond == n.cond {
				return false
			}
		}
		c.wild = append(c.wild, n)
	case n.cond.kind == exact:
		if c.exact[n.cond.text] != nil {
			return false
		}
		c.exact[n.cond.text] = n
	default:
		if c.any != nil {
			return false
		}
		c.any = n
	}
	s.all = append(s.all, n)
	return true
}

// pick is the node that an entry leads to whose value fits x and nothing narrower: the
// value itself, else the first wildcard that fits, else the key alone.
func (s *siblings) pick(key string, x cond) *node {
	c := s.byKey[key]
	if c == nil {
		return nil
	}
	if x.kind == exact && c.exact[x.text] != nil {
		return c.exact[x.text]
	}
	for _, w := range c.wild {
		if w.cond.contains(x) {
			return w
		}
	}
	return c.any
}

// condKind is what a value must be.
type condKind uint8

const (
	whatever condKind = iota
	prefix            // begin with text, which is not empty
	exact             // be text
)

// cond is a set of values. Two of them are apart, or one holds the other.
type cond struct {
	kind condKind
	text string
}

// contains says whether every value of x is one of c.
func (c cond) contains(x cond) bool {
	switch c.kind {
	case whatever:
		return true
	case prefix:
		return x.kind != whatever && strings.HasPrefix(x.text, c.text)
	}
	return x == c
}

// box is a set of descriptors of one shape: a condition for each entry.
type box []cond

func (b box) contains(x box) bool {
	for i := range b {
		if !b[i].contains(x[i]) {
			return false
		}
	}
	return true
}

// meet are the descriptors that are in both, unless one box holds the other: false if
// it does, or if there are none.
func (b box) meet(x box) (box, bool) {
	larger, smaller := false, false
	for i := range b {
		bx, xb := b[i].contains(x[i]), x[i].contains(b[i])
		if !bx && !xb {
			return nil, false
		}
		larger, smaller = larger || bx && !xb, smaller || xb && !bx
	}
	if !larger || !smaller {
		return nil, false
	}
	out := make(box, len(b))
	for i := range b {
		out[i] = b[i]
		if b[i].contains(x[i]) {
			out[i] = x[i]
		}
	}
	return out, true
}

// specific is how close a box is, as families compare it: exact conditions, then the
// lengths of prefixes.
func (b box) specific() (exacts, prefixes int) {
	for _, c := range b {
		switch c.kind {
		case exact:
			exacts++
		case prefix:
			prefixes += 1 + len(c.text)
		}
	}
	return exacts, prefixes
}

// key tells all boxes of a shape apart.
func (b box) key() string {
	var s strings.Builder
	for _, c := range b {
		s.WriteByte('0' + byte(c.kind))
		s.WriteString(c.text)
		s.WriteByte(0)
	}
	return s.String()
}
