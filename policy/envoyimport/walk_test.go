package envoyimport

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/policy/descriptor"
)

// branch is a descriptor of a configuration as a test makes it; its limit is unique.
type branch struct {
	key, value string
	amount     int // 0: no limit; −1: unlimited
	beneath    []*branch
}

var keys, values, wanted = []string{"a", "b"}, []string{"", "", "x", "y", "x*", "xy*", "*", "xyz"}, []string{"x", "y", "xy", "xyz", "xyzz", "z", ""}

// grow makes a random level.
func grow(r *rand.Rand, depth int, next *int) (level []*branch) {
	seen := map[string]bool{}
	for range r.IntN(6) {
		b := &branch{key: keys[r.IntN(len(keys))], value: values[r.IntN(len(values))]}
		if name := b.key + "=" + b.value; seen[name] {
			continue
		} else {
			seen[name] = true
		}
		switch r.IntN(4) {
		case 0:
			b.amount = -1
		case 1:
		default:
			*next++
			b.amount = *next
		}
		if depth > 1 {
			b.beneath = grow(r, depth-1, next)
		}
		level = append(level, b)
	}
	return level
}

func write(b *strings.Builder, level []*branch, indent string) {
	for _, x := range level {
		fmt.Fprintf(b, "%s- key: %s\n%s  value: %q\n", indent, x.key, indent, x.value)
		switch {
		case x.amount < 0:
			fmt.Fprintf(b, "%s  rate_limit: {unlimited: true}\n", indent)
		case x.amount > 0:
			fmt.Fprintf(b, "%s  rate_limit: {unit: hour, requests_per_unit: %d}\n", indent, x.amount)
		}
		if len(x.beneath) > 0 {
			fmt.Fprintf(b, "%s  descriptors:\n", indent)
			write(b, x.beneath, indent+"    ")
		}
	}
}

// walk is the rule by which envoyproxy/ratelimit finds the limit of a descriptor: the
// value, else the first wildcard, else the key alone; never back. 0: no limit.
func walk(level []*branch, entries []descriptor.Entry) int {
	var found *branch
	for i, e := range entries {
		found = nil
		for _, fits := range []func(*branch) bool{
			func(b *branch) bool { return b.value != "" && !strings.HasSuffix(b.value, "*") && b.value == e.Value },
			func(b *branch) bool {
				text, wild := strings.CutSuffix(b.value, "*")
				return wild && strings.HasPrefix(e.Value, text)
			},
			func(b *branch) bool { return b.value == "" },
		} {
			for _, b := range level {
				if found == nil && b.key == e.Key && fits(b) {
					found = b
				}
			}
		}
		if found == nil {
			return 0
		}
		if i < len(entries)-1 {
			level = found.beneath
		}
	}
	return max(found.amount, 0)
}

// TestPoliciesAnswerAsTheTreeDoes: for random trees, all descriptors of up to three
// entries fall under the limit that the walk finds, and under no other.
func TestPoliciesAnswerAsTheTreeDoes(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		next := 0
		tree := grow(r, 3, &next)
		var text strings.Builder
		text.WriteString("domain: edge\ndescriptors:\n")
		write(&text, tree, "  ")
		got, err := imported(bucket.SlidingWindow, text.String())
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, &text)
		}
		index, err := policy.Compile(got.Set, policy.Keys{Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			entries := make([]descriptor.Entry, 1+r.IntN(3))
			for i := range entries {
				entries[i] = descriptor.Entry{Key: keys[r.IntN(len(keys))], Value: wanted[r.IntN(len(wanted))]}
			}
			if have, want := found(t, index, entries), walk(tree, entries); have != want {
				t.Fatalf("seed %d: %q falls under %d, want %d\n%s\n%s", seed, entries, have, want, &text, got.YAML)
			}
		}
	}
}

// found is the amount of the policy that applies to a descriptor of the domain edge.
func found(t *testing.T, index *policy.Index, entries []descriptor.Entry) int {
	r := &policy.Request{Attributes: []policy.Attribute{
		{Name: descriptor.Domain, Value: "edge"}, {Name: descriptor.Shape, Value: descriptor.ShapeOf(entries)},
	}}
	for i, name := range descriptor.Names(nil, entries) {
		r.Attributes = append(r.Attributes, policy.Attribute{Name: name, Value: descriptor.Value(name, entries[i].Value)})
	}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	hits := index.Match(r, nil)
	switch {
	case len(hits) > 1:
		t.Errorf("%d policies apply to %q", len(hits), entries)
		return -1
	case len(hits) == 0 || hits[0].Policy.Limit.Window == 1e6:
		return 0
	}
	return int(hits[0].Policy.Limit.Amount)
}
