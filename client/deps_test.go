package client

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linked are the modules of which a program has something that links the client. It is
// a list and no number, so that one more is a decision.
var linked = []string{
	"github.com/cespare/xxhash/v2",
	"github.com/dchest/siphash",
	"github.com/go-logr/logr",
	"github.com/go-logr/stdr",
	"github.com/goccy/go-yaml",
	"github.com/klauspost/cpuid/v2",
	"github.com/ringlimit/ringlimit",
	"github.com/ringlimit/ringlimit/api",
	"github.com/ringlimit/ringlimit/client",
	"github.com/sony/gobreaker/v2",
	"github.com/zeebo/xxh3",
	"go.opentelemetry.io/auto/sdk",
	"go.opentelemetry.io/otel",
	"go.opentelemetry.io/otel/log",
	"go.opentelemetry.io/otel/metric",
	"go.opentelemetry.io/otel/trace",
	"golang.org/x/net",
	"golang.org/x/sys",
	"golang.org/x/text",
	"golang.org/x/time",
	"google.golang.org/genproto/googleapis/rpc",
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
}

// ours are the packages of this repository outside of the client that it links: what
// decides alike on both sides, the wire, and how files of authorities are read.
var ours = []string{"api/fault", "api/ringlimit/v1", "api/route", "api/wire", "bucket", "internal/pemfile", "policy"}

// list returns the lines that go list prints, each once and sorted.
func list(t *testing.T, format string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", format, ".")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	slices.Sort(lines)
	return slices.Compact(lines)
}

// TestClientLinksLittle: an application that uses the client gets these modules, the
// page for callers prints them, and of ours nothing that makes a node.
func TestClientLinksLittle(t *testing.T) {
	if got := list(t, "{{with .Module}}{{.Path}}{{end}}"); !slices.Equal(got, linked) {
		t.Errorf("modules %q, want %q", got, linked)
	}
	page, err := os.ReadFile("../docs/client.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range linked {
		if !strings.Contains(string(page), "`"+m+"`") {
			t.Errorf("docs/client.md does not name %s", m)
		}
	}
	const root = "github.com/ringlimit/ringlimit/"
	for _, p := range list(t, "{{.ImportPath}}") {
		if name, ok := strings.CutPrefix(p, root); ok && !strings.HasPrefix(name, "client") && !slices.Contains(ours, name) {
			t.Errorf("the client links %s", p)
		}
	}
}
