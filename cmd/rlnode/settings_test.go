package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func sampleFlags() *pflag.FlagSet {
	f := pflag.NewFlagSet("t", pflag.ContinueOnError)
	f.String("config", "", "")
	f.String("name", "default", "")
	f.StringSlice("join", nil, "")
	f.Int("groups", 0, "")
	f.Duration("drain-timeout", 0, "")
	return f
}

func TestFlagWinsOverEnvironmentOverFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("name: file\ngroups: 3\njoin: [a:1, b:2]\ndrain-timeout: 5s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RLNODE_GROUPS", "2")
	t.Setenv("RLNODE_DRAIN_TIMEOUT", "7s")
	f := sampleFlags()
	if err := f.Parse([]string{"--config", file, "--drain-timeout", "9s"}); err != nil {
		t.Fatal(err)
	}
	if err := settle(f); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"name": "file", "groups": "2", "join": "[a:1,b:2]", "drain-timeout": "9s"} {
		if got := f.Lookup(name).Value.String(); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
}

func TestConfigFileErrorsNameThePlace(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\nnmae: b\n":   "c.yaml:2:1: unknown key \"nmae\"",
		"groups: many\n":       "c.yaml:1:1: groups:",
		"name: {a: b}\n":       "c.yaml:1:1: name: want one value",
		"- a\n":                "want a mapping",
		"name: a\n  b: [\n":    "--config c.yaml:",
		"drain-timeout: 5\n":   "c.yaml:1:1: drain-timeout:",
		"config: other.yaml\n": "unknown key \"config\"",
	} {
		err := settleFile(sampleFlags(), "c.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
