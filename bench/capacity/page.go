package main

import (
	"fmt"
	"os"
	"strings"
)

// A block of the page stands between two lines, <!-- capacity: NAME --> and
// <!-- end -->, and is what this program prints.
const (
	blockBegin = "<!-- capacity: "
	blockName  = " -->"
	blockEnd   = "<!-- end -->"
)

// writePage writes the blocks of a page anew.
func writePage(file string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	next, err := renew(string(old), blocks(simulate))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(next), 0o644)
}

// renew returns a page with each of its blocks as made; all must stand in it once.
func renew(page string, made map[string]func() (string, error)) (string, error) {
	var out strings.Builder
	seen := map[string]bool{}
	for {
		before, rest, ok := strings.Cut(page, blockBegin)
		out.WriteString(before)
		if !ok {
			break
		}
		name, rest, _ := strings.Cut(rest, blockName)
		_, rest, closed := strings.Cut(rest, blockEnd)
		f := made[name]
		if f == nil || !closed || seen[name] {
			return "", fmt.Errorf("block %q: known %v, closed %v, there before %v", name, f != nil, closed, seen[name])
		}
		text, err := f()
		if err != nil {
			return "", fmt.Errorf("block %q: %w", name, err)
		}
		seen[name] = true
		out.WriteString(blockBegin + name + blockName + "\n\n" + text + "\n" + blockEnd)
		page = rest
	}
	for name := range made {
		if !seen[name] {
			return "", fmt.Errorf("block %q is not there", name)
		}
	}
	return out.String(), nil
}

// simulator is simulate, or what remembers its results.
type simulator func(nodes, slots int) (simulation, error)

// blocks are what the page shows.
func blocks(sim simulator) map[string]func() (string, error) {
	return map[string]func() (string, error){
		"constants": func() (string, error) {
			_, sources := measuredConstants()
			return sourceTable(sources), nil
		},
		"example": func() (string, error) {
			c, _ := measuredConstants()
			return "```text\n" + size(defaultLoad(), defaultShape(), c).text() + "```\n", nil
		},
		"nodes":      func() (string, error) { return nodeTable(examples()), nil },
		"changes":    func() (string, error) { return changeTable(examples()), nil },
		"against":    func() (string, error) { return againstTable(), nil },
		"simulation": func() (string, error) { return simulationTable(sim) },
	}
}

// table is rows in Markdown; the first is the head.
func table(rows [][]string) string {
	var w strings.Builder
	for i, r := range rows {
		fmt.Fprintf(&w, "| %s |\n", strings.Join(r, " | "))
		if i == 0 {
			fmt.Fprintf(&w, "|%s\n", strings.Repeat("---|", len(r)))
		}
	}
	return w.String()
}

// sourceTable says what is counted with.
func sourceTable(sources []source) string {
	rows := [][]string{{"flag", "", "value", "", "from"}}
	for _, s := range sources {
		rows = append(rows, []string{"`-" + s.flag + "`", s.what, fmt.Sprint(*s.value), string(s.kind), s.from})
	}
	return table(rows)
}
