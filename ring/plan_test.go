package ring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// change is what a step from one set of nodes to the next may move, and did.
func change(t *testing.T, present, before, nodes []string) (next []string, ratio float64) {
	t.Helper()
	next, err := Plan(present, nodes)
	if err != nil {
		t.Fatal(err)
	}
	moved, changed := 0, 0
	for slot := range next {
		if next[slot] != present[slot] {
			moved++
		}
	}
	for _, n := range before {
		if !slices.Contains(nodes, n) {
			changed++
		}
	}
	for _, n := range nodes {
		if !slices.Contains(before, n) {
			changed++
		}
	}
	most := (110*len(present) + 100*len(nodes) - 1) / (100 * len(nodes))
	for node, c := range count(next) {
		if !slices.Contains(nodes, node) || c > most {
			t.Fatalf("%s has %d slots of %d, %d nodes", node, c, len(next), len(nodes))
		}
	}
	if changed == 0 {
		if moved > 0 {
			t.Fatalf("%d slots move though nobody came or went", moved)
		}
		return next, 0
	}
	return next, float64(moved) / float64(len(next)) / (float64(changed) / float64(max(len(before), len(nodes))))
}

// TestMovedSlotsAreBounded: at most twice the part of nodes that came or went,
// through random histories of random names.
func TestMovedSlotsAreBounded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 5))
	worst := 0.0
	rounds := 150
	if testing.Short() {
		rounds = 20
	}
	for round := range rounds {
		pool := make([]string, 20)
		for i := range pool {
			pool[i] = fmt.Sprintf("n%x", rnd.Uint32())
		}
		nodes := slices.Clone(pool[:1+rnd.IntN(5)])
		present, err := Owners(nodes, 1024)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			next := pool[:1+rnd.IntN(len(pool))]
			if rnd.IntN(2) == 0 { // one comes or goes
				next = slices.Clone(nodes)
				if i := rnd.IntN(len(pool)); slices.Contains(next, pool[i]) && len(next) > 1 {
					next = slices.DeleteFunc(next, func(n string) bool { return n == pool[i] })
				} else if !slices.Contains(next, pool[i]) {
					next = append(next, pool[i])
				}
			}
			next = slices.Clone(next)
			var ratio float64
			present, ratio = change(t, present, nodes, next)
			if ratio > 2 {
				t.Errorf("round %d: %d → %d nodes move %.2f times their part", round, len(nodes), len(next), ratio)
			}
			worst = max(worst, ratio)
			nodes = next
			rnd.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
		}
	}
	t.Logf("at worst %.2f times the part of nodes that came or went", worst)
}

func TestPlanDoesNotDependOnTheOrderOfNodes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 9))
	present, err := Owners(names(4), 300)
	if err != nil {
		t.Fatal(err)
	}
	nodes := names(9)[2:]
	want, err := Plan(present, nodes)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		rnd.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		if got, err := Plan(present, nodes); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %v", nodes, err)
		}
	}
}

// Plans are stored, but a new leader must not come to another one: this is part
// of the contract of this version.
func TestPlanIsTheSameInEveryBuild(t *testing.T) {
	var out strings.Builder
	present := make([]string, 16)
	for _, nodes := range []string{"a", "a b c", "a b c d", "b c d", "a b c d e f"} {
		next, err := Plan(present, strings.Fields(nodes))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&out, strings.Join(next, ""))
		present = next
	}
	want := "aaaaaaaaaaaaaaaa\n" +
		"cacccabbbccbaaaa\n" +
		"daccdadbbccbabda\n" +
		"dbccdbdbbccbcbdd\n" +
		"aacedafebfcbcbdd\n"
	if out.String() != want {
		t.Errorf("owners of 16 slots:\n%swant:\n%s", out.String(), want)
	}
}

func FuzzPlanNeverPanics(f *testing.F) {
	f.Add("a a b b c", "a b c d")
	f.Add("a b c d e", "c")
	f.Add("x  x", "a b")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, list, now string) {
		present, nodes := strings.Split(list, " "), strings.Split(now, " ")
		next, err := Plan(present, nodes)
		if (err == nil) != (next != nil) {
			t.Fatalf("%v and %v", next, err)
		}
		most := (110*len(present) + 100*len(nodes) - 1) / (100 * len(nodes))
		for node, n := range count(next) {
			if !slices.Contains(nodes, node) || n > most {
				t.Fatalf("%s has %d slots of %d among %q", node, n, len(next), nodes)
			}
		}
	})
}

// TestPlanFromNothingIsEven: a first placement leaves no node without slots, and
// the first node that joins moves no more than its part.
func TestPlanFromNothingIsEven(t *testing.T) {
	for _, n := range []int{1, 3, 7, 50, 200, MaxNodes} {
		for _, slots := range []int{1024, 16384} {
			owner, err := Plan(make([]string, slots), names(n))
			if err != nil {
				t.Fatal(err)
			}
			count := make(map[string]int)
			for _, o := range owner {
				count[o]++
			}
			for _, name := range names(n) {
				if c := count[name]; 4*c < 3*(slots/n) || c > slots/n+1 {
					t.Errorf("%d slots on %d nodes: %s has %d", slots, n, name, c)
				}
			}
		}
	}
}
