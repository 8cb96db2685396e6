package httplimit

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestLinksWhatTheClientLinks: the middleware brings along net/http and nothing else
// that the client has not already.
func TestLinksWhatTheClientLinks(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".", "..")
	cmd.Stderr = os.Stderr
	all, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "..")
	cmd.Stderr = os.Stderr
	client, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields(string(client))
	more := slices.DeleteFunc(strings.Fields(string(all)), func(p string) bool { return slices.Contains(known, p) })
	slices.Sort(more)
	const root = "github.com/ringlimit/ringlimit/"
	if want := []string{root + "api/ratelimit", root + "client/httplimit", root + "client/internal/clientip"}; !slices.Equal(more, want) {
		t.Errorf("links %q besides, want %q", more, want)
	}
}
