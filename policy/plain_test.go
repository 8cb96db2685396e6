package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sameBothWays holds the quick way of reading to the YAML parser: what it accepts
// is the same. It may refuse what the YAML parser can make sense of.
func sameBothWays(t rapid.TB, data string) (quickly, slowly error) {
	t.Helper()
	quick, err1 := parse("f", []byte(data), true)
	slow, err2 := parse("f", []byte(data), false)
	if err1 == nil && err2 != nil {
		t.Fatalf("%q: the YAML parser says %v", data, err2)
	}
	if d := cmp.Diff(slow, quick); err1 == nil && d != "" {
		t.Fatalf("%q\n%s", data, d)
	}
	return err1, err2
}

// odd are ways to write one policy.
var odd = []string{
	"- {id: a, scope: [tenant], amount: 1, window: 1s}",
	"- id: a\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"-   id: a\n    scope: [ tenant , user ]   # two\n    amount: 1 # one\n    window: \"1s\"\n",
	"- id: 'a'\n  scope:\n  - tenant\n  - user\n  amount: 10\n  window: 1h30m\n\n",
	"- id: a\n  match:\n    route: GET:/v1/*\n    plan: 'x # y'\n  scope: tenant\n  rate_per_second: 7",
	"- id: a\n  match: {}\n  scope: []\n  amount: 0\n  window: 1s\n  on_unavailable:\n    mode: open\n    for: 1m\n    then: closed\n",
	"- id: a\n  match: {account: 007, b: 1.5, c: true, d: 0x1f, e: 1_000, f: 10.0.0.1}\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: a\n  match: {a: \"GET:/x\", b: x*}\n  scope: [tenant]\n  amount: 007\n  window: 1s",
	"- id: a b\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: \"a\\tb\"\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: 'it''s'\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: |\n    a\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: >-\n    a\n    - b\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: a\n  id: b\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: a\n  scope: [tenant, tenant]\n  amount: 1\n  window: 1s",
	"- id: a\n  scope:\n    - tenant\n    - größe\n  amount: 1\n  window: 1s",
	"- id: a # größe\n  scope: [tenant]\n  amount: 1\n  window: 1us",
	"- id: a\n  scope: [tenant]\n  amount: 1e3\n  window: 1s",
	"- id: a\n  scope: [tenant]\n  amount: 1\n  window: null",
	"- id: a\n  scope: [tenant]\n  amount: 1\n  window:",
	"- id: a\n  scope: [tenant]\n   amount: 1\n  window: 1s",
	"- id: a\n  match: {route: GET:/a}\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: a\n  match: {route: [x]}\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: a\n  cost: {default: 3}\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: a\n  cost: {default: 3\n  }\n  scope: [tenant,\n    user]\n  amount: 1\n  window: 1s",
	"- id: -a\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: a\n  scope: [tenant]\n  amount: 1\n  window: 1s\n  ---\n",
	"- id: a\n\tscope: [tenant]\n",
	"- id: a\r\n  scope: [tenant]\r\n  amount: 1\r\n  window: 1s\r\n",
	"-\n  id: a\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id : a\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- \"id\": a\n  scope: [tenant]\n  amount: 1\n  window: 1s",
	"- id: a\n  scope: [tenant]\n  amount: 1\n  window: 1s\n  mode: shadow\n  family: f\n  consistency: leased\n  on_state_loss: full\n  algorithm: sliding_log",
	"- 7", "- [a]", "- a: b", "-", "- - a",
	"- id: a\n  scope: [tenant]\n  amount: 1\n  window: 1s\n  on_unavailable: {mode: local, after: deadline}\n  match:\n    tenant: acme#1\n    plan: a#",
	"- id: a:b\n  scope: [tenant]\n  amount: 1\n  window: 1s\n  family: a::b",
	"- id: \"\"\n  scope: [\"tenant\"]\n  amount: \"1\"\n  window: 1s",
	"- id: a\n  scope: [tenant]\n  amount: 18446744073709551615\n  window: 1s",
	"- id: yes\n  scope: [no]\n  amount: 1\n  window: 1s\n  family: ~",
	"- id: a\n  <<: {scope: [tenant]}\n  amount: 1\n  window: 1s",
	"- id: a\n  scope: &x [tenant]\n  amount: 1\n  window: 1s",
	"- !t id: a",
	"- id: a\n  scope: [tenant] x\n  amount: 1\n  window: 1s",
	"- id: a\n  scope: [tenant]\n  amount: 1 2\n  window: 1s",
	"- id: a\n  scope: [tenant]#x\n  amount: 1\n  window: 1s",
	"- {id: a, scope: [tenant], amount: 1, window: 1s}\n  family: b",
	"- {id: a, scope: [tenant], match: {plan: x}, amount: 1, window: 1s,}",
	"- {id: a,scope: [tenant],amount: 1,window: 1s}",
	"- {id: a, scope: [], match: {}, amount: 1, window: 1m30s}",
}

// around are files that a policy can stand in; %s is where.
var around = []string{
	"policies:\n%s\n",
	"home: [tenant]\nno_match: deny\npolicies: # some\n%s\n",
	"policies:\n  # first\n%s\n# the end\nhome: [region]\n",
	"policies:\n%s\n\nroute_classes:\n  - {name: a, routes: [\"GET:/*\"]}\n",
	"policies:\n%s\nhome: []\n",
	"policies:\n%s\npolicies: []\n",
	"policies:\n%s\nunknown: 1\n",
	"home: \"x\npolicies:\n%s\n",
	"a: b\n---\npolicies:\n%s\n",
	"policies:\n%s\n...\n",
	"policies:\n%s\n  - {id: z, scope: [tenant], amount: 1, window: 1s}\n",
	"policies:\n%s\n- {id: z, scope: [tenant], amount: 1, window: 1s}\n",
	"no_match: |\n  policies:\n%s\n",
	" policies:\n%s\n",
	"policies: []\n%s\n",
}

func indented(s string, by int) string {
	pad := strings.Repeat(" ", by)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = pad + l
		}
	}
	return strings.Join(lines, "\n")
}

func TestBothWaysOfReadingAgree(t *testing.T) {
	for _, file := range around {
		for _, item := range odd {
			for _, by := range []int{0, 2} {
				data := fmt.Sprintf(file, indented(item, by))
				a, b := sameBothWays(t, data)
				e, ok1 := a.(*ParseError)
				f, ok2 := b.(*ParseError)
				// Errors of the YAML parser may come in another order.
				if ok1 != ok2 || ok1 && e.Field != "" && f.Field != "" && *e != *f {
					t.Errorf("%q\nquick: %v\nslow: %v", data, a, b)
				}
			}
		}
	}
}

func TestBothWaysOfReadingAgreeOnMutations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		by := rapid.SampledFrom([]int{0, 2, 4}).Draw(t, "indent")
		for range rapid.IntRange(1, 3).Draw(t, "items") {
			b.WriteString(indented(rapid.SampledFrom(odd).Draw(t, "item"), by) + "\n")
		}
		data := []byte(fmt.Sprintf(rapid.SampledFrom(around).Draw(t, "file"), b.String()))
		for range rapid.IntRange(0, 2).Draw(t, "mutations") {
			i := rapid.IntRange(0, len(data)-1).Draw(t, "at")
			data[i] = rapid.SampledFrom([]byte("ab1 -:#,[]{}'\"\n.*")).Draw(t, "byte")
		}
		_, _ = sameBothWays(t, string(data))
	})
}

// Nearly all of a large file is read without the YAML parser.
func TestPlainItemsAreReadQuickly(t *testing.T) {
	d := document{r: newReader("f"), quick: true, text: string(large(50)) + sample[strings.Index(sample, "  - id: payments"):]}
	if err := d.open(); err != nil || !d.split || d.count() != 54 {
		t.Fatal(err, d.split, d.count())
	}
	for i, c := range d.items {
		if _, ok := d.plain.item(d.text[c.start:c.end], c.line); !ok && !strings.Contains(d.text[c.start:c.end], "007") {
			t.Errorf("item %d is left to the YAML parser:\n%s", i, d.text[c.start:c.end])
		}
	}
}

func FuzzBothWaysOfReadingAgree(f *testing.F) {
	for _, item := range odd {
		f.Add(fmt.Sprintf(around[0], indented(item, 2)))
	}
	f.Fuzz(func(t *testing.T, data string) { _, _ = sameBothWays(t, data) })
}
