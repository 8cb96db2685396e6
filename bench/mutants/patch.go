package main

import (
	"embed"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// patches are the bugs: each a few words on what is wrong, then a unified diff of the
// product's code without line numbers.
//
//go:embed patches/*.patch
var patches embed.FS

// patch is one of them.
type patch struct {
	about string // what is wrong
	hunks []hunk
}

// hunk is one place that changes.
type hunk struct {
	file        string // below the root
	was, became string
}

// readPatch reads a patch by its name.
func readPatch(name string) (patch, error) {
	b, err := patches.ReadFile("patches/" + name + ".patch")
	if err != nil {
		return patch{}, err
	}
	p, err := parsePatch(string(b))
	if err != nil {
		return patch{}, fmt.Errorf("%s.patch: %w", name, err)
	}
	return p, nil
}

// parsePatch reads a patch. Line numbers are not looked at: what a hunk changes is
// found by its lines.
func parsePatch(text string) (patch, error) {
	about, diff, found := strings.Cut(text, "\n\n--- ")
	p := patch{about: strings.Join(strings.Fields(about), " ")}
	if !found || p.about == "" {
		return p, fmt.Errorf("want some words, an empty line, and a diff")
	}
	file := ""
	for i, line := range strings.SplitAfter("--- "+diff, "\n") {
		switch {
		case line == "", strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+++ b/"):
			file = strings.TrimSpace(strings.TrimPrefix(line, "+++ b/"))
		case strings.HasPrefix(line, "@@"):
			p.hunks = append(p.hunks, hunk{file: file})
		case len(p.hunks) == 0 || file == "":
			return p, fmt.Errorf("line %d of the diff belongs to no hunk", i+1)
		default:
			h := &p.hunks[len(p.hunks)-1]
			if line[0] != '+' {
				h.was += line[1:]
			}
			if line[0] != '-' {
				h.became += line[1:]
			}
			if !strings.ContainsRune(" +-", rune(line[0])) {
				return p, fmt.Errorf("line %d of the diff begins with %q", i+1, line[:1])
			}
		}
	}
	if len(p.hunks) == 0 {
		return p, fmt.Errorf("it changes nothing")
	}
	return p, nil
}

// apply returns the files that patches change, as they are then, by name. What a hunk
// changes must be in its file exactly once.
func apply(root fs.FS, list ...patch) (map[string]string, error) {
	files := make(map[string]string)
	for _, p := range list {
		for _, h := range p.hunks {
			text, ok := files[h.file]
			if !ok {
				b, err := fs.ReadFile(root, filepath.ToSlash(h.file))
				if err != nil {
					return nil, err
				}
				text = string(b)
			}
			if n := strings.Count(text, h.was); n != 1 || h.was == h.became {
				return nil, fmt.Errorf("%s has %d times what is to change:\n%s", h.file, n, h.was)
			}
			files[h.file] = strings.Replace(text, h.was, h.became, 1)
		}
	}
	return files, nil
}
