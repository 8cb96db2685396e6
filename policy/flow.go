package policy

import "strings"

// flowValue reads a scalar, list or mapping at the start of s and says how long
// it is. depth bounds how deep lists and mappings may nest.
func flowValue(s string, at pos, depth int) (n node, size int, ok bool) {
	switch {
	case s == "" || depth < 0:
		return node{}, 0, false
	case s[0] == '[' || s[0] == '{':
		return flowOf(s, at, depth-1)
	case s[0] == '"' || s[0] == '\'':
		end := strings.IndexByte(s[1:], s[0])
		if end < 0 || strings.HasPrefix(s[end+2:], s[:1]) {
			return node{}, 0, false
		}
		return node{kind: text, at: at, text: s[1 : end+1]}, end + 2, true
	}
	size = strings.IndexAny(s, ",[]{} ")
	if size < 0 {
		size = len(s)
	}
	n, ok = scalarOf(s[:size], at, "")
	return n, size, ok
}

// flowOf reads a list or mapping.
func flowOf(s string, at pos, depth int) (node, int, bool) {
	n, end := node{kind: list, at: at}, byte(']')
	if s[0] == '{' {
		n.kind, end = mapping, '}'
	}
	i := 1
	skip := func() {
		for i < len(s) && s[i] == ' ' {
			i++
		}
	}
	skip()
	if i < len(s) && s[i] == end {
		return n, i + 1, true
	}
	for {
		skip()
		var m member
		if n.kind == mapping {
			size := word(s[i:])
			if size == 0 || !strings.HasPrefix(s[i+size:], ": ") {
				return node{}, 0, false
			}
			m.key, m.at = s[i:i+size], pos{at.line, at.column + i}
			if reserved(m.key) || n.has(m.key) {
				return node{}, 0, false
			}
			i += size + 1
			skip()
		}
		v, size, ok := flowValue(s[i:], pos{at.line, at.column + i}, depth)
		if !ok {
			return node{}, 0, false
		}
		i += size
		skip()
		if n.kind == mapping {
			m.value = v
			n.members = append(n.members, m)
		} else {
			n.items = append(n.items, v)
		}
		switch {
		case i == len(s):
			return node{}, 0, false
		case s[i] == end:
			return n, i + 1, true
		case s[i] != ',':
			return node{}, 0, false
		}
		i++
	}
}

func (n *node) has(key string) bool {
	for i := range n.members {
		if n.members[i].key == key {
			return true
		}
	}
	return false
}

// word is the length of the plain key that s begins with.
func word(s string) int {
	i := 0
	for i < len(s) && (letter(s[i]) || i > 0 && (digit(s[i]) || s[i] == '-')) {
		i++
	}
	return i
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// reserved says whether a word means something else than itself in YAML.
func reserved(s string) bool {
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return true
	}
	return false
}

// scalarOf reads a whole scalar. Beyond letters and digits a plain one may have
// a few harmless characters, those of more included.
func scalarOf(s string, at pos, more string) (node, bool) {
	if s == "" {
		return node{}, false
	}
	if s[0] == '"' || s[0] == '\'' {
		n, size, ok := flowValue(s, at, 0)
		return n, ok && size == len(s)
	}
	digits := 0
	for i := range len(s) {
		switch c := s[i]; {
		case digit(c):
			digits++
		case letter(c) || c == '/':
		case i > 0 && (strings.IndexByte(".*-@", c) >= 0 || strings.IndexByte(more, c) >= 0 && i+1 < len(s)):
		default:
			return node{}, false
		}
	}
	n := node{kind: text, at: at, text: s}
	switch {
	case digits == len(s):
		if len(s) > 18 || len(s) > 1 && s[0] == '0' {
			return node{}, false
		}
		n.kind = number
		for i := range len(s) {
			n.value = 10*n.value + uint64(s[i]-'0')
		}
	case digit(s[0]):
		return n, duration(s)
	}
	return n, !reserved(s)
}

// duration says whether s looks like a Go duration: that is a text in YAML.
func duration(s string) bool {
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && digit(s[i]) {
			i++
		}
		unit := i
		for i < len(s) && (s[i] == 'h' || s[i] == 'm' || s[i] == 's' || s[i] == 'u' || s[i] == 'n') {
			i++
		}
		if start == unit || unit == i {
			return false
		}
	}
	return true
}
