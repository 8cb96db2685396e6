package ring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// copiesOf counts the copies of each node.
func copiesOf(groups [][]string, nodes []string) (least, most int) {
	count := make(map[string]int)
	for _, n := range nodes {
		count[n] = 0
	}
	for _, g := range groups {
		for _, n := range g {
			count[n]++
		}
	}
	return extremes(count)
}

// TestSpreadIsLevelAndRendezvousAloneIsNot: for 3 … 12 nodes of random names. The
// figures are logged: they are why Level is there.
func TestSpreadIsLevelAndRendezvousAloneIsNot(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 8))
	for n := 3; n <= 12; n++ {
		uneven, worst, bare, none := 0, 0, 99, 0
		rounds := 200
		if testing.Short() {
			rounds = 20
		}
		for range rounds {
			nodes := make([]string, n)
			for i := range nodes {
				nodes[i] = fmt.Sprintf("n%x", rnd.Uint32())
			}
			slices.Sort(nodes)
			alone := make([][]string, n)
			for i, owner := range nodes {
				alone[i] = Replicas(owner, nodes, 3)
			}
			least, most := copiesOf(alone, nodes)
			if worst, bare = max(worst, most), min(bare, least); 4*most > 5*3 {
				uneven++
			}
			if least == 1 {
				none++
			}
			spread := Spread(nodes, nodes, 3)
			if least, most := copiesOf(spread, nodes); least != 3 || most != 3 {
				t.Fatalf("%d nodes have %d … %d copies: %v", n, least, most, spread)
			}
			for i, g := range spread {
				if distinct := slices.Compact(slices.Sorted(slices.Values(g))); len(distinct) != 3 || g[0] != nodes[i] {
					t.Fatalf("copies of %s: %v", nodes[i], g)
				}
			}
		}
		t.Logf("%2d nodes by rendezvous alone: at worst %d and %d copies; %d of %d times more than 1.25 × the mean, %d times a node with its own only",
			n, worst, bare, uneven, rounds, none)
	}
}

// TestLevelMovesNoMoreThanItMust: from any placement, each step is one copy to a
// node without, never an owner's, and their number is what lies above the level.
func TestLevelMovesNoMoreThanItMust(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 4))
	for round := range 500 {
		nodes := names(2 + rnd.IntN(9))
		copies := min(len(nodes), 1+2*rnd.IntN(2))
		var groups []Copies
		for _, owner := range nodes[:1+rnd.IntN(len(nodes))] {
			others := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == owner })
			rnd.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
			groups = append(groups, Copies{owner, append([]string{owner}, others[:copies-1]...)})
		}
		must := surplus(groups, nodes)
		for step := 0; ; step++ {
			s, ok := Level(groups, nodes)
			if !ok {
				if step != must {
					t.Fatalf("round %d: %d steps, want %d", round, step, must)
				}
				break
			}
			g := &groups[s.Group]
			at := slices.Index(g.Nodes, s.From)
			if at < 0 || s.From == g.Owner || slices.Contains(g.Nodes, s.To) || !slices.Contains(nodes, s.To) || step > must {
				t.Fatalf("round %d, step %d of %d: %+v of %+v", round, step, must, s, *g)
			}
			g.Nodes[at] = s.To
		}
	}
}

// surplus is how many copies lie above a level placement at least.
func surplus(groups []Copies, nodes []string) int {
	count, total := make(map[string]int), 0
	for _, g := range groups {
		for _, n := range g.Nodes {
			count[n]++
			total++
		}
	}
	floor, rest := total/len(nodes), total%len(nodes)
	above, below, high := 0, 0, 0
	for _, n := range nodes {
		c := count[n]
		above += max(0, c-floor-1)
		below += max(0, floor-c)
		if c > floor {
			high++
		}
	}
	if rest == 0 {
		return below
	}
	return max(above, below)
}

func TestLevelDoesNotDependOnTheOrderOfNodes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	nodes := names(7)
	groups := []Copies{
		{nodes[0], []string{nodes[0], nodes[1], nodes[2]}},
		{nodes[1], []string{nodes[1], nodes[0], nodes[2]}},
		{nodes[2], []string{nodes[2], nodes[1], nodes[0]}},
	}
	want, ok := Level(groups, nodes)
	if !ok {
		t.Fatal("it is not level")
	}
	for range 20 {
		rnd.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		if got, _ := Level(groups, nodes); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

// The first placement is computed by every node from the log: this is part of the
// contract of this version.
func TestSpreadIsTheSameInEveryBuild(t *testing.T) {
	var out strings.Builder
	for _, list := range []string{"a", "a b c", "a b c d e", "a b c d e f g"} {
		nodes := strings.Fields(list)
		for _, g := range Spread(nodes, nodes, 3) {
			fmt.Fprint(&out, strings.Join(g, ""), " ")
		}
		fmt.Fprintln(&out)
	}
	want := "a \n" +
		"acb bca cba \n" +
		"ace bca cbd dae edb \n" +
		"age bca cbe dgc edf fba gfd \n"
	if got := out.String(); got != want {
		t.Errorf("copies:\n%swant:\n%s", got, want)
	}
}

func FuzzLevelNeverPanics(f *testing.F) {
	f.Add("a:abc b:bca c:cab", "a b c d e")
	f.Add("a: b:xyz", "q q")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, list, now string) {
		nodes := strings.Fields(now)
		var groups []Copies
		for _, text := range strings.Fields(list) {
			owner, on, _ := strings.Cut(text, ":")
			groups = append(groups, Copies{owner, strings.Split(on, "")})
		}
		if s, ok := Level(groups, nodes); ok {
			if g := groups[s.Group]; s.From == g.Owner || slices.Contains(g.Nodes, s.To) || !slices.Contains(nodes, s.To) {
				t.Fatalf("%+v of %+v among %q", s, g, nodes)
			}
		}
	})
}
