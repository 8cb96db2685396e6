package envoyimport

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// imported imports texts as files a.yaml, b.yaml ….
func imported(a bucket.Algorithm, texts ...string) (*Result, error) {
	files := make([]File, len(texts))
	for i, text := range texts {
		files[i] = File{string(rune('a'+i)) + ".yaml", []byte(text)}
	}
	return Import(files, Options{Algorithm: a})
}

func TestLimitsBecomePolicies(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		notes          []string
	}{
		{
			"one limit", `
domain: edge
descriptors:
  - key: remote_address
    rate_limit: {unit: minute, requests_per_unit: 10}
`, `
  - id: "edge|remote_address" # a.yaml:4
    match: {descriptor: remote_address, domain: edge}
    scope: [remote_address]
    algorithm: sliding_window
    amount: 10
    window: 1m
`, nil,
		},
		{
			"a value, a wildcard and the rest", `
domain: edge
descriptors:
  - {key: path, value: /login, rate_limit: {unit: SECOND, requests_per_unit: 1}}
  - {key: path, value: "/api*", rate_limit: {unit: Hour, requests_per_unit: 2}}
  - {key: path, rate_limit: {unit: day, requests_per_unit: 3}}
`, `
  - id: "edge|path" # a.yaml:6
    family: "edge|path"
    match: {descriptor: path, domain: edge}
    scope: [path]
    algorithm: sliding_window
    amount: 3
    window: 24h
  - id: "edge|path=/api*" # a.yaml:5
    family: "edge|path"
    match: {descriptor: path, domain: edge, path: "/api*"}
    scope: [path]
    algorithm: sliding_window
    amount: 2
    window: 1h
  - id: "edge|path=/login" # a.yaml:4
    family: "edge|path"
    match: {descriptor: path, domain: edge, path: "/login"}
    scope: [path]
    algorithm: sliding_window
    amount: 1
    window: 1s
`, nil,
		},
		{
			"nested, in shadow mode, repeated keys", `
domain: edge
descriptors:
  - key: generic_key
    value: 80
    descriptors:
      - key: generic_key
        value: "yes"
        shadow_mode: true
        rate_limit: {unit: month, requests_per_unit: 5}
`, `
  - id: "edge|generic_key=80|generic_key=yes" # a.yaml:7
    match: {descriptor: "generic_key/generic_key", domain: edge, generic_key: "80", "generic_key#2": "yes"}
    scope: [generic_key, "generic_key#2"]
    algorithm: sliding_window
    amount: 5
    window: 720h
    mode: shadow
`, nil,
		},
		{
			"a shared wildcard, and names of requests", `
domain: edge
descriptors:
  - key: tenant
    descriptors:
      - {key: method, value: "P*", share_threshold: true, rate_limit: {unit: week, requests_per_unit: 0}}
`, `
  - id: "edge|tenant|method=P*" # a.yaml:6
    match: {descriptor: "tenant/method", domain: edge, "entry.method": "P*"}
    scope: [tenant]
    algorithm: sliding_window
    amount: 0
    window: 168h
`, nil,
		},
		{
			"unlimited beside a limit", `
domain: edge
descriptors:
  - {key: path, value: /health, rate_limit: {unlimited: true}}
  - {key: path, rate_limit: {unit: second, requests_per_unit: 3}}
`, `
  - id: "edge|path" # a.yaml:5
    family: "edge|path"
    match: {descriptor: path, domain: edge}
    scope: [path]
    algorithm: sliding_window
    amount: 3
    window: 1s
  - id: "edge|path=/health"
    family: "edge|path"
    match: {descriptor: path, domain: edge, path: "/health"}
    scope: [path]
    algorithm: token_bucket
    amount: 1000000000
    window: 1ms
`, []string{"a.yaml:4: descriptors[0]: the policy edge|path=/health, which denies nothing"},
		},
		{
			"nothing but unlimited", `
domain: edge
descriptors:
  - {key: path, rate_limit: {unlimited: true}}
`, "", nil,
		},
		{
			"a dead end: the value has no limit, so none applies", `
domain: edge
descriptors:
  - {key: a, value: x, descriptors: [{key: c, rate_limit: {unit: second, requests_per_unit: 1}}]}
  - {key: a, descriptors: [{key: b, rate_limit: {unit: second, requests_per_unit: 2}}]}
`, `
  - id: "edge|a=x|c" # a.yaml:4
    match: {a: x, descriptor: "a/c", domain: edge}
    scope: [a, c]
    algorithm: sliding_window
    amount: 1
    window: 1s
  - id: "edge|a=x|b"
    family: "edge|a|b"
    match: {a: x, descriptor: "a/b", domain: edge}
    scope: [a, b]
    algorithm: token_bucket
    amount: 1000000000
    window: 1ms
  - id: "edge|a|b" # a.yaml:5
    family: "edge|a|b"
    match: {descriptor: "a/b", domain: edge}
    scope: [a, b]
    algorithm: sliding_window
    amount: 2
    window: 1s
`, []string{"a.yaml:4: descriptors[0]: the policy edge|a=x|b, which denies nothing"},
		},
		{
			"the first value of the way counts, not the number of values", `
domain: edge
descriptors:
  - key: a
    value: x
    descriptors:
      - key: b
        descriptors: [{key: c, rate_limit: {unit: second, requests_per_unit: 1}}]
  - key: a
    descriptors:
      - key: b
        value: "y"
        descriptors: [{key: c, value: z, rate_limit: {unit: second, requests_per_unit: 2}}]
`, `
  - id: "edge|a=x|b=y|c=z" # a.yaml:8
    family: "edge|a|b|c"
    match: {a: x, b: "y", c: z, descriptor: "a/b/c", domain: edge}
    scope: [a, b, c]
    algorithm: sliding_window
    amount: 1
    window: 1s
  - id: "edge|a=x|b|c" # a.yaml:8
    family: "edge|a|b|c"
    match: {a: x, descriptor: "a/b/c", domain: edge}
    scope: [a, b, c]
    algorithm: sliding_window
    amount: 1
    window: 1s
  - id: "edge|a|b=y|c=z" # a.yaml:13
    family: "edge|a|b|c"
    match: {b: "y", c: z, descriptor: "a/b/c", domain: edge}
    scope: [a, b, c]
    algorithm: sliding_window
    amount: 2
    window: 1s
`, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := imported(bucket.SlidingWindow, c.in)
			if err != nil {
				t.Fatal(err)
			}
			want := "policies: []\n"
			if c.want != "" {
				want = "policies:" + c.want
			}
			if diff := cmp.Diff("# Made by rlnode policy import envoy of a.yaml.\n"+want, string(got.YAML)); diff != "" {
				t.Error(diff)
			}
			special := notesOf(got, true)
			if len(special) != len(c.notes) {
				t.Errorf("notes %q, want %q", special, c.notes)
			}
			for i := range min(len(special), len(c.notes)) {
				if !strings.HasPrefix(special[i], c.notes[i]) {
					t.Errorf("note %q, want %q", special[i], c.notes[i])
				}
			}
		})
	}
}

// notesOf are the notes about a place, or about all limits.
func notesOf(r *Result, special bool) (out []string) {
	for _, n := range r.Notes {
		if (n.File != "") == special {
			out = append(out, n.String())
		}
	}
	return out
}

func TestDifferencesAreTold(t *testing.T) {
	got, err := imported(bucket.FixedWindow, `
domain: edge
descriptors:
  - {key: path, rate_limit: {unit: second, requests_per_unit: 4000000000, name: all}, detailed_metric: true}
  - {key: path, value: "/a*", rate_limit: {unit: second, requests_per_unit: 2, replaces: [{name: all}]}, quota_mode: yes}
  - {key: path, value: "/ab*", value_to_metric: true, rate_limit: {unit: second, requests_per_unit: 3}}
  - {key: user, unit: second, descriptors: []}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a.yaml:4: descriptors[0].detailed_metric: no metric of its own: ringlimit counts by group and by outcome, and its answers name the policy",
		`a.yaml:5: descriptors[1].rate_limit.replaces[0]: "all" is not replaced: the descriptors of a request are independent, and both limits count`,
		"a.yaml:5: descriptors[1].quota_mode: becomes shadow: counted and never denied, without the metadata of quota violations",
		"a.yaml:6: descriptors[2].value_to_metric: no metric of its own: ringlimit counts by group and by outcome, and its answers name the policy",
		"a.yaml:7: descriptors[3].unit: has no effect here, want it in another place",
		"a.yaml:4: descriptors[0].rate_limit.requests_per_unit: 4000000000 becomes 1000000000, the largest amount there is",
		"a.yaml:5: descriptors[1]: in shadow mode it does not lift the more general limit of a.yaml:4: that stays in force, so that trying out takes nothing away",
		"a.yaml:6: descriptors[2]: left out: no request reaches it, another descriptor of its level fits first",
	}
	if diff := cmp.Diff(want, notesOf(got, true)); diff != "" {
		t.Error(diff)
	}
	general := strings.Join(notesOf(got, false), "\n")
	for _, part := range []string{"denied is not counted", "windows of each key begin at a time of its own", "current_limit.name"} {
		if !strings.Contains(general, part) {
			t.Errorf("%q does not tell that %s", general, part)
		}
	}
}

// TestFilesOfOneDomain are one tree; those of others are trees of their own.
func TestFilesOfOneDomain(t *testing.T) {
	const one = "domain: edge\ndescriptors: [{key: a, rate_limit: {unit: second, requests_per_unit: 1}}]\n"
	got, err := imported(bucket.TokenBucket, one, strings.Replace(one, "key: a", "key: b", 1), strings.Replace(one, "edge", "inner", 1))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range got.Set.Policies {
		ids = append(ids, p.ID)
	}
	if diff := cmp.Diff([]string{"edge|a", "edge|b", "inner|a"}, ids); diff != "" {
		t.Error(diff)
	}
	if _, err := imported(bucket.TokenBucket, one, one); err == nil || !strings.HasPrefix(err.Error(), "b.yaml:2:") {
		t.Errorf("the same twice: %v", err)
	}
}

// TestIDsStayApart although what they are made of looks alike, or is too long.
func TestIDsStayApart(t *testing.T) {
	got, err := imported(bucket.SlidingWindow, `
domain: edge
descriptors:
  - {key: "a|b", rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: a, descriptors: [{key: b, rate_limit: {unit: second, requests_per_unit: 2}}]}
  - {key: é, value: `+strings.Repeat("v", 300)+`, rate_limit: {unit: second, requests_per_unit: 3}}
  - {key: é, value: `+strings.Repeat("v", 301)+`, rate_limit: {unit: second, requests_per_unit: 4}}
`)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range got.Set.Policies {
		seen[p.ID] = true
	}
	if len(seen) != 4 || !seen["edge|a|b"] {
		t.Errorf("ids %v", seen)
	}
}

func TestBadInputNamesThePlace(t *testing.T) {
	const head = "domain: edge\ndescriptors:\n"
	deep := strings.Repeat("{key: k, descriptors: [", 14) + strings.Repeat("]}", 14)
	for _, c := range []struct{ in, want string }{
		{"", "a.yaml: domain: missing: the file is empty"},
		{"descriptors: []\n", "a.yaml:1:12: domain: missing or empty, want the domain that Envoy asks about"},
		{"domain: 'a*'\n", `domain: "a*", want no *`},
		{"[a]", "a.yaml:1:1: a list, want a mapping"},
		{"domain: a\n---\ndomain: b\n", "a second document, want one domain a file"},
		{"domain: a\ndomain: b\n", "a.yaml:2:1: "},
		{"domain: \xff", "a.yaml: not UTF-8"},
		{"domain: [a]\n", "a.yaml:1:1: domain: a list, want a text"},
		{"domain: a\nlimits: []\n", "a.yaml:2:1: limits: unknown key, want domain, descriptors"},
		{"domain: a\ndescriptors: {}\n", "descriptors: a mapping, want a list"},
		{head + "  - {}\n", "a.yaml:3:5: descriptors[0].key: missing or empty, want the key of an entry"},
		{head + "  - {key: a, valeu: b}\n", "descriptors[0].valeu: unknown key, want key, value, "},
		{head + "  - {key: 'a*'}\n", `descriptors[0].key: "a*", want no * at the end`},
		{head + "  - {key: a, value: 'x*y'}\n", `descriptors[0].value: "x*y", want a * only at the end`},
		{head + "  - {key: a, value: '" + strings.Repeat("x", 221) + "*'}\n", "descriptors[0].value: 221 bytes before the *, want at most 220"},
		{head + "  - {key: a}\n  - {key: a}\n", `a.yaml:4:5: descriptors[1]: a second descriptor of the key "a" with this value, want one`},
		{head + "  - {key: a, value: 'x*'}\n  - {key: a, value: 'x*'}\n", "descriptors[1]: a second descriptor"},
		{head + "  - {key: a, share_threshold: true, value: x}\n", `descriptors[0].share_threshold: set for the value "x", want a value that ends in *`},
		{head + "  - {key: a, rate_limit: {requests_per_unit: 1}}\n", `descriptors[0].rate_limit.unit: "", want second, minute, hour, day, week, month or year`},
		{head + "  - {key: a, rate_limit: {unit: fortnight}}\n", `descriptors[0].rate_limit.unit: "fortnight", want second`},
		{head + "  - {key: a, rate_limit: {unit: day, unlimited: true}}\n", `descriptors[0].rate_limit.unit: "day" together with unlimited`},
		{head + "  - {key: a, rate_limit: {unit: day, requests_per_unit: -1}}\n", `a.yaml:3:38: descriptors[0].rate_limit.requests_per_unit: "-1", want 0 … 4294967295`},
		{head + "  - {key: a, rate_limit: {unit: day, unlimited: perhaps}}\n", `descriptors[0].rate_limit.unlimited: "perhaps", want true or false`},
		{head + "  - {key: a, rate_limit: {unit: day, replaces: [{}]}}\n", "descriptors[0].rate_limit.replaces[0].name: missing or empty"},
		{head + "  - {key: a, rate_limit: [1]}\n", "descriptors[0].rate_limit: a list, want a mapping"},
		{head + "  - &x {key: a}\n", "descriptors[0]: an anchor, alias or merge key (write it out), want a mapping"},
		{head + "  - {? {a: b} : c}\n", "a.yaml:3:"},
		{head + "  - " + deep + "\n", "descriptors of more than 13 entries, which no request carries"},
		{"domain: [\n", "a.yaml:1:"},
	} {
		_, err := imported(bucket.SlidingWindow, c.in)
		var e *policy.ParseError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v\nwant %s", c.in, err, c.want)
		}
	}
}

// FuzzImport: no input panics, every error has a place, and what is made is a policy
// file.
func FuzzImport(f *testing.F) {
	f.Add("domain: edge\ndescriptors:\n  - key: a\n    value: b*\n    rate_limit: {unit: minute, requests_per_unit: 10}\n    descriptors: [{key: c}]\n", uint8(3))
	f.Add("domain: edge\ndescriptors: [{key: a, value: x, shadow_mode: true, rate_limit: {unit: day, replaces: [{name: y}]}}, {key: a, rate_limit: {unlimited: true}}]", uint8(0))
	f.Add("domain: \"a|b\\n\"\ndescriptors: [{key: \"#\", rate_limit: {unit: day}}, {key: tenant, value: é*, share_threshold: on, rate_limit: {unit: year}}]", uint8(2))
	f.Fuzz(func(t *testing.T, text string, algorithm uint8) {
		a := []bucket.Algorithm{bucket.TokenBucket, bucket.FixedWindow, bucket.SlidingWindow, bucket.SlidingLog}[algorithm%4]
		got, err := imported(a, text)
		if err != nil {
			var e *policy.ParseError
			if !errors.As(err, &e) || e.File == "imported policies" {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if _, err := policy.Parse("again", got.YAML); err != nil {
			t.Errorf("%q makes\n%s: %v", text, got.YAML, err)
		}
	})
}
