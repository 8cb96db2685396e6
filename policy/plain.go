package policy

import "strings"

// plain reads items that are written in the plain way in which nearly all
// policies of large files are: one key a line, scalars, and lists and mappings
// of scalars, in ASCII. For anything else, also for what is wrong, it leaves the
// item to the YAML parser. It is some twenty times as fast.
type plain struct {
	lines []line
	next  int // line to read
}

// line is a line that says something, without its comment.
type line struct {
	number int
	indent int
	body   string
}

// item reads the text of one item, which begins on a line of the file. The node
// is good until the next call.
func (p *plain) item(s string, first int) (n node, ok bool) {
	if !p.cut(s, first) || len(p.lines) == 0 {
		return node{}, false
	}
	l := &p.lines[0]
	if !strings.HasPrefix(l.body, "- ") {
		return node{}, false
	}
	rest := strings.TrimLeft(l.body[2:], " ")
	if rest == "" {
		return node{}, false
	}
	l.indent, l.body = l.indent+len(l.body)-len(rest), rest
	if rest[0] == '{' {
		n, ok = p.flow(l.body, pos{l.number, l.indent + 1})
		return n, ok && len(p.lines) == 1
	}
	p.next = 0
	n, ok = p.block(l.indent, true)
	return n, ok && p.next == len(p.lines)
}

// cut makes lines of a text and refuses what is not plain in any of them.
func (p *plain) cut(s string, first int) bool {
	p.lines = p.lines[:0]
	for ; s != ""; first++ {
		text, rest, _ := strings.Cut(s, "\n")
		s = rest
		indent := 0
		for indent < len(text) && text[indent] == ' ' {
			indent++
		}
		body, ok := uncomment(text[indent:])
		if !ok {
			return false
		}
		if body != "" {
			p.lines = append(p.lines, line{first, indent, body})
		}
	}
	return true
}

// uncomment drops the comment of a line and the spaces before it.
func uncomment(s string) (string, bool) {
	quote := byte(0)
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '#' && quote == 0 && (i == 0 || s[i-1] == ' '):
			return strings.TrimRight(s[:i], " "), true
		case c < ' ' || c > '~' || c == '\\':
			return "", false
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		}
	}
	return strings.TrimRight(s, " "), quote == 0
}

// block reads lines of one indent as a mapping. Within deep, values may be
// mappings and lists of scalars, else they are scalars.
func (p *plain) block(indent int, deep bool) (node, bool) {
	n := node{kind: mapping, at: pos{p.lines[p.next].number, indent + 1}, members: make([]member, 0, 10)}
	for p.next < len(p.lines) && p.lines[p.next].indent == indent {
		l := p.lines[p.next]
		size := word(l.body)
		if size == 0 || size == len(l.body) || l.body[size] != ':' {
			return node{}, false
		}
		m := member{key: l.body[:size], at: pos{l.number, indent + 1}}
		if reserved(m.key) {
			return node{}, false
		}
		for i := range n.members {
			if n.members[i].key == m.key {
				return node{}, false
			}
		}
		rest := l.body[size+1:]
		value := strings.TrimLeft(rest, " ")
		p.next++
		var ok bool
		switch at := (pos{l.number, indent + len(l.body) - len(value) + 1}); {
		case value == "":
			m.value, ok = p.beneath(indent, deep)
		case len(value) == len(rest): // no space after the colon
		case value[0] == '[' || value[0] == '{':
			m.value, ok = p.flow(value, at)
			ok = ok && deep
		default:
			m.value, ok = scalarOf(value, at, ":")
		}
		if !ok {
			return node{}, false
		}
		n.members = append(n.members, m)
	}
	return n, len(n.members) > 0
}

// beneath reads the lines beneath a key that has nothing on its own line.
func (p *plain) beneath(indent int, deep bool) (node, bool) {
	if !deep || p.next == len(p.lines) {
		return node{}, false
	}
	l := p.lines[p.next]
	if strings.HasPrefix(l.body, "- ") && l.indent >= indent {
		return p.items(l.indent)
	}
	if l.indent <= indent {
		return node{}, false
	}
	return p.block(l.indent, false)
}

// items reads lines "- scalar" of one indent.
func (p *plain) items(indent int) (node, bool) {
	n := node{kind: list, at: pos{p.lines[p.next].number, indent + 1}}
	for p.next < len(p.lines) && p.lines[p.next].indent == indent {
		l := p.lines[p.next]
		if !strings.HasPrefix(l.body, "- ") {
			break
		}
		value := strings.TrimLeft(l.body[2:], " ")
		e, ok := scalarOf(value, pos{l.number, indent + len(l.body) - len(value) + 1}, ":")
		if !ok {
			return node{}, false
		}
		n.items = append(n.items, e)
		p.next++
	}
	return n, true
}

// flow reads [a, b] or {a: b, c: [d]} that fills the rest of a line.
func (p *plain) flow(s string, at pos) (node, bool) {
	n, size, ok := flowValue(s, at, 2)
	return n, ok && size == len(s)
}
