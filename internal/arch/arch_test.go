package arch

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// TestImportDirections applies the rules to the repository itself.
func TestImportDirections(t *testing.T) {
	found, err := Check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// TestRulesHaveReasons keeps the table worth reading.
func TestRulesHaveReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Directions {
		if seen[d.Of] || len(d.Why) < 20 {
			t.Errorf("%s: stands twice, or gives no reason", d.Of)
		}
		seen[d.Of] = true
	}
}

// TestSeededViolationsAreFound breaks each rule once: a checker that finds
// nothing must not pass for a repository that keeps the rules.
func TestSeededViolationsAreFound(t *testing.T) {
	imports := func(ours string) string { return "import _ \"" + Module + "/" + ours + "\"\n" }
	cases := []struct{ name, file, src, want string }{
		{"upwards", "bucket/a.go", "package bucket\n" + imports("cluster"), "bucket/a.go:2: bucket imports cluster"},
		{"sideways", "client/a.go", "package client\n" + imports("cluster"), "client imports cluster"},
		{"own parent", "cluster/group/a.go", "package group\n" + imports("cluster"), "cluster/group imports cluster"},
		{"part of a module", "policy/a.go", "package policy\n" + imports("api/ringlimit/v1"), "policy imports api/ringlimit/v1"},
		{"a name that only begins alike", "policy/a.go", "package policy\n" + imports("bucketing"), "policy imports bucketing"},
		{"no rule", "extra/a.go", "package extra\n", "extra has no rule"},
		{"vague name", "internal/util/a.go", "package util\n", "package util"},
		{"clock", "ring/a.go", "package ring\nimport \"time\"\nvar t = time.Now()\n", "ring/a.go:3: uses time.Now"},
		{"clock as a value", "ring/a.go", "package ring\nimport \"time\"\nvar f = time.After\n", "uses time.After"},
		{"clock by another name", "ring/a.go", "package ring\nimport t \"time\"\nfunc f() { t.Sleep(1) }\n", "uses time.Sleep"},
		{"clock without a name", "ring/a.go", "package ring\nimport . \"time\"\nvar t = Now()\n", "imports time without its name"},
		{"goroutine", "control/a.go", "package control\nfunc f() { go f() }\n", "starts a goroutine"},
		{"socket", "bucket/a.go", "package bucket\nimport _ \"net/http\"\n", "imports net/http"},
		{"log", "policy/a.go", "package policy\nimport _ \"log/slog\"\n", "imports log/slog"},
		{"wall clock", "cluster/group/a.go", "package group\nimport \"time\"\nvar t = time.Now().UnixNano()\n", "calls UnixNano, which reads the wall clock"},
		{"wall clock of a value", "internal/ringlog/a.go", "package ringlog\nimport \"time\"\nfunc f(t time.Time) time.Time { return t.UTC() }\n", "calls UTC, which reads the wall clock"},
		{"chance", "ring/a.go", "package ring\nimport _ \"math/rand/v2\"\n", "imports math/rand/v2"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found, err := Check(fstest.MapFS{c.file: {Data: []byte(c.src)}})
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 || !strings.Contains(found[0].String(), c.want) {
				t.Errorf("found %v, want one about %q", found, c.want)
			}
			if len(found) == 1 && found[0].Why == "" {
				t.Error("a violation without its reason")
			}
		})
	}
}

// TestAllowedCodePasses holds the other side: what the rules allow is not found.
func TestAllowedCodePasses(t *testing.T) {
	imports := func(ours string) string { return "import _ \"" + Module + "/" + ours + "\"\n" }
	found, err := Check(fstest.MapFS{
		"policy/a.go":          {Data: []byte("package policy\nimport \"time\"\n" + imports("api/route") + "var d, _ = time.ParseDuration(\"1s\")\n")},
		"cluster/a.go":         {Data: []byte("package cluster\n" + imports("cluster/group") + "func f() { go f() }\n")},
		"cluster/group/a.go":   {Data: []byte("package group\n" + imports("internal/ringlog"))},
		"bucket/a_test.go":     {Data: []byte("package bucket\n" + imports("cluster"))},
		"bucket/testdata/a.go": {Data: []byte("package util\n")},
		"tools/a.go":           {Data: []byte("package anything\n")},
	})
	if err != nil || len(found) > 0 {
		t.Errorf("found %v, err %v; want nothing", found, err)
	}
}

// TestUnreadableSourceIsAnError: a file that does not parse is not a file without violations.
func TestUnreadableSourceIsAnError(t *testing.T) {
	if _, err := Check(fstest.MapFS{"ring/a.go": {Data: []byte("packag ring")}}); err == nil {
		t.Error("no error for a file that does not parse")
	}
}
