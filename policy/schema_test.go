package policy

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var write = flag.Bool("write", false, "write docs/policy.schema.json anew")

const schemaFile = "../docs/policy.schema.json"

// TestSchemaIsWritten holds the file that users' editors read to the code.
func TestSchemaIsWritten(t *testing.T) {
	if *write {
		if err := os.WriteFile(schemaFile, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(Schema()), string(got)); d != "" {
		t.Errorf("run go test ./policy -run Schema -write\n%s", d)
	}
}

// TestSchemaKnowsEveryKey: what Parse reads and what the schema allows is the same.
func TestSchemaKnowsEveryKey(t *testing.T) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Defs       map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(slices.Sorted(slices.Values(policyKeys)), slices.Sorted(maps.Keys(s.Defs["policy"].Properties))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"home", "no_match", "policies", "route_classes"}, slices.Sorted(maps.Keys(s.Properties))); d != "" {
		t.Error(d)
	}
}
