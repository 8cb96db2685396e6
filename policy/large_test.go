package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// large is a file of n policies, as a generator would write it.
func large(n int) []byte {
	var b strings.Builder
	b.WriteString("home: [tenant]\npolicies:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - id: tenant-%d-payments\n    match: {tenant: tenant-%d, route: \"POST:/v1/payments\"}\n"+
			"    scope: [tenant, api_key]\n    algorithm: token_bucket\n    amount: %d\n    window: 1s\n    burst: 40\n", i, i, 20+i%7)
	}
	return []byte(b.String())
}

const many = 100_000

func BenchmarkParseMany(b *testing.B) {
	data := large(many)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Parse("large.yaml", data); err != nil {
			b.Fatal(err)
		}
	}
}

func manyParsed(b testing.TB) *Set {
	s, err := Parse("large.yaml", large(many))
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkCompileMany(b *testing.B) {
	s := manyParsed(b)
	for b.Loop() {
		if _, err := Compile(s, keys); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDiffMany(b *testing.B) {
	s, other := manyParsed(b), manyParsed(b)
	for b.Loop() {
		if d := Diff(s, other); len(d) != 0 {
			b.Fatal(len(d))
		}
	}
}

// How long it takes, BenchmarkParseMany and its like say: 2 s in all.
func TestLargeFilesAreRead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a few seconds")
	}
	s := manyParsed(t)
	if _, err := Compile(s, keys); err != nil {
		t.Fatal(err)
	}
	next := s.With(&Policy{ID: "new", Scope: []string{"tenant"}, Limit: tokens(1, 1, 1e9)})
	if d := Diff(s, next); len(d) != 1 {
		t.Error(len(d))
	}
}

// shapes are ways in which many policies can tell requests apart.
var shapes = map[string]func(i int) Policy{
	"tenant and route": func(i int) Policy {
		return Policy{Match: On("tenant", fmt.Sprintf("t%d", i/316), "route", fmt.Sprintf("GET:/v1/r%d", i%316))}
	},
	"tenant and prefix": func(i int) Policy {
		return Policy{Match: On("tenant", fmt.Sprintf("t%d", i/316), "route", fmt.Sprintf("GET:/v1/r%d/*", i%316))}
	},
	"prefix": func(i int) Policy {
		return Policy{Match: On("plan", "gold", "route", fmt.Sprintf("GET:/v1/r%d/*", i))}
	},
	"tenant in families": func(i int) Policy {
		match := [][]string{{}, {"plan", "gold"}, {"plan", "gold", "route", "GET:/v1/*"}}[i%3]
		return Policy{Family: fmt.Sprintf("f%d", i/3), Match: On(append(match, "tenant", fmt.Sprintf("t%d", i/3))...)}
	},
	"user": func(i int) Policy { return Policy{Match: On("user", fmt.Sprintf("u%d", i))} },
}

func shaped(b testing.TB, shape string) *Index {
	s := &Set{Home: []string{"tenant"}}
	for i := range many {
		p := shapes[shape](i)
		p.ID, p.Scope, p.Limit = fmt.Sprintf("p%06d", i), []string{"tenant"}, tokens(1, 1, 1e9)
		s.Policies = append(s.Policies, &p)
	}
	return compileSet(b, s)
}

func BenchmarkMatchAmongMany(b *testing.B) {
	for _, shape := range slices.Sorted(maps.Keys(shapes)) {
		b.Run(shape, func(b *testing.B) {
			ix := shaped(b, shape)
			requests := make([]Request, 1024)
			for i := range requests {
				requests[i] = Request{
					Tenant: fmt.Sprintf("t%d", i*7%316), Plan: "gold", Route: fmt.Sprintf("GET:/v1/r%d/items?x", i*3%316), Cost: 1,
					Principals: []Principal{{"user", fmt.Sprintf("u%d", i*97)}, {"ip", "2001:db8::1"}},
				}
				if shape == "tenant and route" {
					requests[i].Route = fmt.Sprintf("GET:/v1/r%d", i*3%316)
				}
			}
			dst := make([]Hit, 0, 8)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if dst = ix.Match(&requests[i&1023], dst[:0]); len(dst) != 1 {
					b.Fatal(len(dst))
				}
				i++
			}
		})
	}
}
