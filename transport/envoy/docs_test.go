package envoy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/transport/envoy"
)

// TestDocsLoadAndName: what operators copy is a policy file, and the page has the words
// that the service has.
func TestDocsLoadAndName(t *testing.T) {
	data, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	_, text, found := strings.Cut(page, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	if set, err := policy.Parse("docs/envoy.md", []byte(text)); !found || err != nil || len(set.Policies) == 0 {
		t.Errorf("the sample: %v", err)
	}
	for _, word := range []string{
		"`" + envoy.HeadersKey + "`", "| `ratelimit` |", "| `x-ratelimit` |", "| `legacy` |", "| `retry-after` |",
		"`domain descriptor limit route method route_class principal principals principal_type principal_id`",
		"| `closed` |", "| `open` for a time, then … |", "| `local`, the default |",
	} {
		if !strings.Contains(page, word) {
			t.Errorf("the page does not have %s", word)
		}
	}
}
