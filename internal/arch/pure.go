package arch

import (
	"go/ast"
	"path"
	"slices"
)

// checkPure finds what a pure package must not have: impure imports, go
// statements, and calls that read a clock.
func (f *file) checkPure() []Violation {
	found := f.checkImpureImports()
	clock := f.importedAs("time")
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, Violation{f.at(n), "starts a goroutine", pureWhy})
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == clock && slices.Contains(clockCalls, n.Sel.Name) {
				found = append(found, Violation{f.at(n), "uses time." + n.Sel.Name, pureWhy})
			}
		}
		return true
	})
	return found
}

func (f *file) checkImpureImports() []Violation {
	var found []Violation
	for _, spec := range f.ast.Imports {
		p := importPath(spec)
		if slices.ContainsFunc(impureImports, func(bad string) bool { return beneath(p, bad) }) {
			found = append(found, Violation{f.at(spec), "imports " + p, pureWhy})
		}
		if p == "time" && spec.Name != nil && spec.Name.Name == "." {
			found = append(found, Violation{f.at(spec), "imports time without its name", pureWhy})
		}
	}
	return found
}

// importedAs returns the name that a file knows a package by, "" if it does not.
func (f *file) importedAs(p string) string {
	for _, spec := range f.ast.Imports {
		switch {
		case importPath(spec) != p:
		case spec.Name != nil:
			return spec.Name.Name
		default:
			return path.Base(p)
		}
	}
	return ""
}

// checkWallClock finds what would let a step of the wall clock into elapsed
// time: methods of time.Time that read it, or drop the monotonic reading that
// time.Since and Sub go by. Calendar and comparison with times from elsewhere are
// none of these packages' business.
func (f *file) checkWallClock() []Violation {
	var found []Violation
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(wallCalls, sel.Sel.Name) {
			found = append(found, Violation{f.at(n), "calls " + sel.Sel.Name + ", which reads the wall clock", elapsedWhy})
		}
		return true
	})
	return found
}
