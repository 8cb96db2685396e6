package main

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ringlimit/ringlimit/bench/check"
)

const root = "../.."

// TestEveryPatchApplies: a bug that no longer fits the product is no longer looked for.
func TestEveryPatchApplies(t *testing.T) {
	for _, name := range patchNames(t) {
		t.Run(name, func(t *testing.T) {
			p, err := readPatch(name)
			if err != nil {
				t.Fatal(err)
			}
			files, err := apply(os.DirFS(root), p)
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range files {
				if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
					t.Error(err)
				}
				if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "bench/") {
					t.Errorf("it changes %s: a bug is one of the product", file)
				}
			}
		})
	}
}

// TestEveryPatchIsInTheTable, as a bug or a condition; and the table names nothing
// that is not there.
func TestEveryPatchIsInTheTable(t *testing.T) {
	var named []string
	for i := range mutants {
		named = append(append(named, mutants[i].name), mutants[i].sim.with...)
	}
	slices.Sort(named)
	named = slices.Compact(named)
	if have := patchNames(t); !slices.Equal(named, have) {
		t.Errorf("the table names %v, there are %v", named, have)
	}
	if len(mutants) < required {
		t.Errorf("%d bugs, every merge must see %d", len(mutants), required)
	}
}

// TestTableNamesCheckers: what is to see a bug must exist.
func TestTableNamesCheckers(t *testing.T) {
	known := []string{"replicas", "resources", "liveness", "epochs"} // those that judge no history
	for _, c := range check.Checkers() {
		known = append(known, c.Name)
	}
	for i := range mutants {
		m := &mutants[i]
		if len(m.sees) == 0 || (m.test.pkg == "") == (m.sim.works == "") {
			t.Errorf("%s: nothing is to see it, or two things are", m.name)
		}
		if m.test.pkg != "" {
			if m.test.why == "" || !slices.Equal(m.sees, []string{m.test.run}) {
				t.Errorf("%s: why is it a test that sees it?", m.name)
			}
			continue
		}
		for _, name := range m.sees {
			if !slices.Contains(known, name) {
				t.Errorf("%s: there is no checker %s", m.name, name)
			}
		}
	}
}

func patchNames(t *testing.T) (names []string) {
	t.Helper()
	list, err := patches.ReadDir("patches")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, strings.TrimSuffix(e.Name(), ".patch"))
	}
	return names
}

// TestPatchThatDoesNotFitIsAnError: neither one whose lines are gone, nor one that
// could mean two places.
func TestPatchThatDoesNotFitIsAnError(t *testing.T) {
	p, err := parsePatch("Wrong.\n\n--- a/x.go\n+++ b/x.go\n@@\n a\n-b\n+c\n")
	if err != nil {
		t.Fatal(err)
	}
	for text, fits := range map[string]bool{"a\nb\n": true, "a\n": false, "a\nb\na\nb\n": false} {
		files, err := apply(fstest.MapFS{"x.go": {Data: []byte(text)}}, p)
		if (err == nil) != fits {
			t.Errorf("%q: %v", text, err)
		}
		if fits && files["x.go"] != "a\nc\n" {
			t.Errorf("%q became %q", text, files["x.go"])
		}
	}
	for _, text := range []string{"", "words", "words\n\n--- a/x\n+++ b/x\n", "words\n\n--- a/x\n+++ b/x\n@@\n*a\n", "words\n\n--- a/x\n+++ b/x\n a\n", "\n\n--- a/x\n+++ b/x\n@@\n-a\n"} {
		if _, err := parsePatch(text); err == nil {
			t.Errorf("%q was taken for a patch", text)
		}
	}
}

// TestOnlyVerdictsCount: a panic is not a checker that saw something.
func TestOnlyVerdictsCount(t *testing.T) {
	v, err := judged("x\nseed 3: FOUND by order, replay: order: bucket b: bad\n--- FAIL\n")
	if err != nil || !slices.Equal(v.found, []string{"order", "replay"}) || v.words != "order: bucket b: bad" {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := judged("seed 3: HELD: 5 operations\n"); err != nil || v.found != nil || v.void {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := judged("seed 3: VOID: too little\n"); err != nil || !v.void {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := judged("panic: boom\n"); err == nil {
		t.Error("a panic passed for a verdict")
	}
	if _, err := tested("--- FAIL: TestX (0.1s)\npanic: boom\n", "TestX"); err == nil {
		t.Error("a panic passed for a failed test")
	}
	if words, err := tested("--- FAIL: TestX (0.1s)\n    x_test.go:3: it went back\n", "TestX"); err != nil || words != "x_test.go:3: it went back" {
		t.Errorf("%q, %v", words, err)
	}
}
