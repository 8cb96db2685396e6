package envoyimport

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ringlimit/ringlimit/policy"
)

// The walk through the tree and the choice within a family are two orders of the same
// boxes: level by level there, by the number of exact conditions and the length of
// prefixes here. They are made to agree so: take the boxes of all nodes that lie on a
// way to the shape, and all boxes where some of these meet. The smallest box that a
// descriptor lies in then says which node the walk ends at, and it is the most
// specific one. Most boxes are answered rightly by a larger one already; each of the
// others gets a policy.

// maxOverlaps bounds the boxes that are made where others meet, of one shape.
const maxOverlaps = 20_000

// shape is all descriptors with the same keys in the same order.
type shape struct {
	domain *domain
	keys   []string
	first  *node // with a limit, for messages

	boxes   []box
	known   map[string]bool
	level   int              // by whose exact values boxes are told apart quickly
	byValue map[string][]int // boxes with an exact condition at level, by it
	rest    []int            // all others
}

// shapes are the shapes of a domain that have a limit, in the order of the file.
func (d *domain) shapes() []*shape {
	var out []*shape
	seen := map[string]bool{}
	var walk func(s *siblings, keys []string)
	walk = func(s *siblings, keys []string) {
		for _, n := range s.all {
			all := append(slices.Clone(keys), n.key)
			if name := strings.Join(all, "\x00"); n.limit != nil && !seen[name] {
				seen[name] = true
				out = append(out, &shape{domain: d, keys: all, first: n, known: map[string]bool{}, byValue: map[string][]int{}})
			}
			walk(&n.children, all)
		}
	}
	walk(&d.children, nil)
	return out
}

// collect adds the boxes of all nodes on the way to the shape.
func (s *shape) collect() {
	var boxes []box
	var walk func(level *siblings, conds box)
	walk = func(level *siblings, conds box) {
		for _, n := range level.all {
			if n.key != s.keys[len(conds)] {
				continue
			}
			all := append(slices.Clone(conds), n.cond)
			boxes = append(boxes, append(slices.Clone(all), make(box, len(s.keys)-len(all))...))
			if len(all) < len(s.keys) {
				walk(&n.children, all)
			}
		}
	}
	walk(&s.domain.children, nil)
	s.chooseLevel(boxes)
	for _, b := range boxes {
		s.add(b)
	}
}

// chooseLevel picks the level with the most values.
func (s *shape) chooseLevel(boxes []box) {
	most := 0
	for level := range s.keys {
		values := map[string]bool{}
		for _, b := range boxes {
			if b[level].kind == exact {
				values[b[level].text] = true
			}
		}
		if len(values) > most {
			s.level, most = level, len(values)
		}
	}
}

func (s *shape) add(b box) {
	key := b.key()
	if s.known[key] {
		return
	}
	s.known[key] = true
	i := len(s.boxes)
	s.boxes = append(s.boxes, b)
	if c := b[s.level]; c.kind == exact {
		s.byValue[c.text] = append(s.byValue[c.text], i)
	} else {
		s.rest = append(s.rest, i)
	}
}

// overlap adds the boxes where others meet, until there are no more.
func (s *shape) overlap() error {
	before := len(s.boxes)
	for i := 0; i < len(s.boxes); i++ {
		b := s.boxes[i]
		if c := b[s.level]; c.kind == exact {
			s.meetAll(i, s.byValue[c.text])
			s.meetAll(i, s.rest)
		} else {
			for j := range i {
				s.meetOne(i, j)
			}
		}
		if len(s.boxes)-before > maxOverlaps {
			n := s.first
			return fail(n.file, pos{line: n.line}, n.path, "the descriptors of the keys %s overlap in more than %d ways, which is too many to settle",
				strings.Join(s.keys, ", "), maxOverlaps)
		}
	}
	return nil
}

func (s *shape) meetAll(i int, others []int) {
	for _, j := range others { // those that are added meanwhile come later
		if j < i {
			s.meetOne(i, j)
		}
	}
}

func (s *shape) meetOne(i, j int) {
	if b, ok := s.boxes[i].meet(s.boxes[j]); ok {
		s.add(b)
	}
}

// walk is the node that the tree leads to for descriptors of b and of none of the
// smaller boxes; nil: to none.
func (s *shape) walk(b box) *node {
	n, whole := s.way(b)
	if !whole {
		return nil
	}
	return n
}

// last is the last node on that way, that of the shape if there is none.
func (s *shape) last(b box) *node {
	if n, _ := s.way(b); n != nil {
		return n
	}
	return s.first
}

// way follows the tree as far as it leads; whole is false if it ends early.
func (s *shape) way(b box) (last *node, whole bool) {
	level := &s.domain.children
	for i, key := range s.keys {
		n := level.pick(key, b[i])
		if n == nil {
			return last, false
		}
		last, level = n, &n.children
	}
	return last, true
}

// own is the box of a node itself.
func (n *node) own() box {
	if n == nil {
		return nil
	}
	return append(n.parent.own(), n.cond)
}

// made is a policy that was made of a node for a box of its descriptors.
type made struct {
	node  *node // with a limit, or nil: no limit applies, in place of a larger box that has one
	shape *shape
	box   box
	*policy.Policy
}

// family is the policies of one shape, as they are made.
type family struct {
	byValue map[string][]*made
	rest    []*made
}

func (f *family) add(m *made) {
	if c := m.box[m.shape.level]; c.kind == exact {
		f.byValue[c.text] = append(f.byValue[c.text], m)
	} else {
		f.rest = append(f.rest, m)
	}
}

// larger calls do for the policies whose box holds b.
func (f *family) larger(s *shape, b box, do func(*made)) {
	lists := [][]*made{f.rest}
	if c := b[s.level]; c.kind == exact {
		lists = append(lists, f.byValue[c.text])
	}
	for _, list := range lists {
		for _, m := range list {
			if m.box.contains(b) {
				do(m)
			}
		}
	}
}

// winner is the policy of the family that answers for b, nil if there is none.
func (f *family) winner(s *shape, b box) (best *made) {
	f.larger(s, b, func(m *made) {
		if best == nil || compare(m, best) < 0 {
			best = m
		}
	})
	return best
}

// compare is the order within a family, the most specific first.
func compare(a, b *made) int {
	ae, ap := a.box.specific()
	be, bp := b.box.specific()
	return cmp.Or(cmp.Compare(be, ae), cmp.Compare(bp, ap), strings.Compare(a.ID, b.ID))
}
