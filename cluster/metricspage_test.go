package cluster

import (
	cliflag "flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringlimit/ringlimit/transport/envoy"
)

var rewrite = cliflag.Bool("rewrite", false, "write the metrics there are into docs/metrics.md")

const (
	metricsPage  = "../docs/metrics.md"
	metricsBegin = "<!-- metrics -->\n"
	metricsEnd   = "<!-- end -->\n"
)

// TestMetricsPage: docs/metrics.md lists what a node exports, with labels and help.
func TestMetricsPage(t *testing.T) {
	b, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), metricsBegin)
	listed, after, also := strings.Cut(rest, metricsEnd)
	if !ok || !also {
		t.Fatalf("%s has no %q … %q", metricsPage, metricsBegin, metricsEnd)
	}
	want := metricsTable(t)
	if *rewrite {
		if err := os.WriteFile(metricsPage, []byte(before+metricsBegin+want+metricsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if d := cmp.Diff(strings.Split(listed, "\n"), strings.Split(want, "\n")); d != "" {
		t.Errorf("%s is not what a node exports: go test -run TestMetricsPage ./cluster -args -rewrite\n%s", metricsPage, d)
	}
}

var descOf = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "(.*)", unit: "[^"]*", constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

// metricsTable is a row for each metric of the project's own, by name.
func metricsTable(t *testing.T) string {
	ch := make(chan *prometheus.Desc, 1024)
	registry := newMetrics(new(Node)).registry
	registry.MustRegister(envoy.New(envoy.Options{})) // as Open does with that of its server
	registry.Describe(ch)
	close(ch)
	var rows []string
	for d := range ch {
		m := descOf.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		name, help, labels := m[1], m[2], m[3]
		if !strings.HasPrefix(name, "ringlimit_") {
			continue // of the Go runtime and the process
		}
		if labels != "" {
			labels = "`" + strings.ReplaceAll(labels, ",", "`, `") + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", name, labels, help))
	}
	slices.Sort(rows)
	return "\n| metric | labels | what it says |\n|---|---|---|\n" + strings.Join(rows, "") + "\n"
}
