// Package arch holds the shape of the repository: which package may import
// which, and what the pure packages keep out. The rules are data in rules.go,
// each with its reason; the test of this package applies them to the sources.
package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Violation is one place that breaks a rule.
type Violation struct {
	Where string // file:line, below the root
	What  string
	Why   string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s\n\twhy not: %s", v.Where, v.What, v.Why)
}

// Check reads all Go files below root, except tests, testdata, tools and hidden
// directories, and returns what breaks the rules, in file order.
func Check(root fs.FS) ([]Violation, error) {
	var found []Violation
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped(name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		f := &file{name: name, set: token.NewFileSet()}
		if f.ast, err = parser.ParseFile(f.set, name, src, parser.SkipObjectResolution); err != nil {
			return fmt.Errorf("parse %s: %w", name, err)
		}
		found = append(found, f.check()...)
		return nil
	})
	return found, err
}

// skipped reports whether a directory holds nothing that the rules are about.
func skipped(dir string) bool {
	base := path.Base(dir)
	return base != "." && (base[0] == '.' || base[0] == '_' || base == "testdata" || dir == "tools" || dir == "bin")
}

// file is one parsed source file.
type file struct {
	name string // below the root
	set  *token.FileSet
	ast  *ast.File
}

func (f *file) check() []Violation {
	found := f.checkName()
	found = append(found, f.checkDirections()...)
	if slices.ContainsFunc(Pure, func(p string) bool { return beneath(path.Dir(f.name), p) }) {
		found = append(found, f.checkPure()...)
	}
	if slices.ContainsFunc(Elapsed, func(p string) bool { return beneath(path.Dir(f.name), p) }) {
		found = append(found, f.checkWallClock()...)
	}
	return found
}

func (f *file) checkName() []Violation {
	if name := f.ast.Name; slices.Contains(vagueNames, name.Name) {
		return []Violation{{f.at(name), "package " + name.Name, vagueWhy}}
	}
	return nil
}

func (f *file) checkDirections() []Violation {
	dir := path.Dir(f.name)
	rule, ok := ruleOf(dir)
	if !ok {
		return []Violation{{
			f.at(f.ast.Name), "package " + dir + " has no rule",
			"internal/arch/rules.go says for every part what it may import; add a line for this one",
		}}
	}
	var found []Violation
	for _, spec := range f.ast.Imports {
		ours, ok := strings.CutPrefix(importPath(spec), Module+"/")
		if !ok || rule.allows(ours) {
			continue
		}
		found = append(found, Violation{f.at(spec), rule.Of + " imports " + ours, rule.Why})
	}
	return found
}

// ruleOf returns the longest rule that fits a package.
func ruleOf(dir string) (best Direction, ok bool) {
	for _, d := range Directions {
		if beneath(dir, d.Of) && len(d.Of) >= len(best.Of) {
			best, ok = d, true
		}
	}
	return best, ok
}

// allows reports whether the rule lets a package import ours. Being named in
// May covers what lies beneath; a part always may import itself.
func (d Direction) allows(ours string) bool {
	if beneath(ours, d.Of) {
		return true
	}
	return slices.ContainsFunc(d.May, func(p string) bool { return beneath(ours, p) })
}

// beneath reports whether package dir is parent or lies beneath it.
func beneath(dir, parent string) bool {
	return dir == parent || strings.HasPrefix(dir, parent+"/")
}

func importPath(spec *ast.ImportSpec) string {
	p, _ := strconv.Unquote(spec.Path.Value) // the parser took it
	return p
}

func (f *file) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.name, f.set.Position(n.Pos()).Line)
}
