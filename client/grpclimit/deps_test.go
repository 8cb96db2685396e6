package grpclimit_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// modules are those of which a package has something.
func modules(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(out))
	slices.Sort(all)
	return slices.Compact(all)
}

// TestInterceptorsLinkWhatTheClientDoes: its test bounds that.
func TestInterceptorsLinkWhatTheClientDoes(t *testing.T) {
	if got, want := modules(t, "."), modules(t, ".."); !slices.Equal(got, want) || len(got) < 3 {
		t.Errorf("modules %q, of the client %q", got, want)
	}
}
