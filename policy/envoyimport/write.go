package envoyimport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/policy"
)

// write writes the policies as a file, one policy for each limit, with the place it
// comes from.
func (im *importer) write(files []File) []byte {
	var b bytes.Buffer
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = comment(f.Name)
	}
	fmt.Fprintf(&b, "# Made by rlnode policy import envoy of %s.\n", strings.Join(names, ", "))
	if len(im.policies) == 0 {
		b.WriteString("policies: []\n")
		return b.Bytes()
	}
	b.WriteString("policies:\n")
	for i := range im.policies {
		im.policies[i].write(&b)
	}
	return b.Bytes()
}

func (m *made) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "  - id: %s", quoted(m.ID))
	if m.node != nil {
		fmt.Fprintf(b, " # %s:%d", comment(m.node.file), m.node.line)
	}
	if m.Family != "" {
		fmt.Fprintf(b, "\n    family: %s", quoted(m.Family))
	}
	b.WriteString("\n    match: {")
	for i, c := range m.Match {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(b, "%s: %s", quoted(c.Name), quoted(c.Value))
	}
	b.WriteString("}\n    scope: [")
	for i, name := range m.Scope {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoted(name))
	}
	fmt.Fprintf(b, "]\n    algorithm: %s\n    amount: %d\n    window: %s\n", m.Limit.Algorithm, m.Limit.Amount, window(m.Limit.Window))
	if m.Mode == policy.Shadow {
		b.WriteString("    mode: shadow\n")
	}
}

// window writes a window in its largest whole unit.
func window(ns int64) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d := time.Duration(ns); d%u.of == 0 {
			return fmt.Sprintf("%d%s", d/u.of, u.name)
		}
	}
	return time.Duration(ns).String()
}

// quoted writes a text in quotes, as YAML and JSON have them, unless it is a plain word.
func quoted(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }) < 0
	switch s {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		plain = false
	}
	if plain {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("envoyimport: " + err.Error()) // a string: cannot fail
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// comment is a text that stays in its comment.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return '?'
		}
		return r
	}, s)
}
