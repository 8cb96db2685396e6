package policy

import "strings"

// document is a policy file whose policies can be read one at a time. Where it
// is written in the usual way, as a block of "- " items beneath the key policies,
// the items are told apart without the YAML parser, and most of them are also
// read without it (see plain); for whatever is written otherwise it is asked.
type document struct {
	r     *reader
	quick bool
	text  string
	body  node    // the file; without its policies if it is split
	split bool    // items has the policies
	items []chunk // in order
	list  []node  // the policies if it is not split
	plain plain
}

// chunk is the text of one item.
type chunk struct {
	start, end int // offsets
	line       int // of start
}

// open reads all but the policies.
func (d *document) open() (err error) {
	if d.quick {
		if s, ok := split(d.text); ok {
			d.items = s.items
			d.body, d.split = d.settings(s)
		}
		if d.split {
			return nil
		}
	}
	d.body, err = d.r.parseYAML(d.text, 1)
	return err
}

// settings reads the file without its policies. ok is false if what is left is
// not what it should be, and the whole has to be read at once to say why.
func (d *document) settings(s splitText) (n node, ok bool) {
	n, err := d.r.parseYAML(d.text[:s.head]+d.text[s.tail:], 1)
	if err != nil || n.kind != mapping {
		return n, false
	}
	n.each(func(at *pos) {
		if at.line > s.headLines {
			at.line += s.tailLine - s.headLines - 1
		}
	})
	for i := range n.members {
		ok = ok || n.members[i].key == "policies"
		if n.members[i].key == "policies" && n.members[i].value.kind != nothing {
			return n, false
		}
	}
	return n, ok
}

// each calls f for every position in n.
func (n *node) each(f func(*pos)) {
	f(&n.at)
	for i := range n.members {
		f(&n.members[i].at)
		n.members[i].value.each(f)
	}
	for i := range n.items {
		n.items[i].each(f)
	}
}

// count is the number of policies.
func (d *document) count() int {
	if d.split {
		return len(d.items)
	}
	return len(d.list)
}

// item reads one policy. The node is good until the next call.
func (d *document) item(i int) (node, error) {
	if !d.split {
		return d.list[i], nil
	}
	c := d.items[i]
	if n, ok := d.plain.item(d.text[c.start:c.end], c.line); ok {
		return n, nil
	}
	n, err := d.r.parseYAML(d.text[c.start:c.end], c.line)
	if err != nil {
		return node{}, err
	}
	if n.kind != list || len(n.items) != 1 {
		return node{}, d.r.fail(pos{c.line, 1}, "policies", "%s, want one item of the list", n.describe())
	}
	return n.items[0], nil
}

// splitText is where the policies of a file begin and end.
type splitText struct {
	items     []chunk
	head      int // end of the lines up to the key policies
	headLines int // how many
	tail      int // start of what follows the policies
	tailLine  int // its line
}

// split finds the items beneath the key policies. ok is false if they are not
// written as a block, or the file has something that split does not know.
func split(text string) (s splitText, ok bool) {
	indent := -1 // of the items
	s.tail, s.tailLine = len(text), 0
	found, ended := false, false
	line := 0
	for start := 0; start < len(text); {
		end := start + len(text[start:])
		if i := strings.IndexByte(text[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		line++
		content := strings.TrimRight(text[start:end], " \r\n")
		depth := len(content) - len(strings.TrimLeft(content, " "))
		body := content[depth:]
		switch {
		case depth == 0 && (strings.HasPrefix(body, "---") || strings.HasPrefix(body, "...") || strings.HasPrefix(body, "%")):
			return s, false // more than one document, or directives
		case !found:
			if key, rest, _ := strings.Cut(body, ":"); depth == 0 && key == "policies" {
				if rest = strings.TrimLeft(rest, " "); rest != "" && rest[0] != '#' {
					return s, false
				}
				found, s.head, s.headLines = true, end, line
			}
		case ended, body == "", body[0] == '#':
		case strings.IndexByte(body, '\t') == 0:
			return s, false
		case body == "-":
			return s, false // what follows is not always told apart from the next key
		case strings.HasPrefix(body, "- ") && (indent < 0 || depth == indent):
			indent = depth
			s.items = append(s.items, chunk{start: start, line: line})
		case indent < 0:
			return s, false
		case depth > indent:
		case depth == 0:
			ended, s.tail, s.tailLine = true, start, line
		default:
			return s, false
		}
		start = end
	}
	if !found || len(s.items) == 0 {
		return s, false
	}
	if !ended {
		s.tailLine = line + 1
	}
	for i := range s.items {
		s.items[i].end = s.tail
		if i+1 < len(s.items) {
			s.items[i].end = s.items[i+1].start
		}
	}
	return s, true
}
