package ring

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("node-%d", i)
	}
	return out
}

func count(owner []string) map[string]int {
	n := map[string]int{}
	for _, o := range owner {
		n[o]++
	}
	return n
}

func TestNoOwnerHasMoreThanItsShare(t *testing.T) {
	for _, slots := range []int{1, 2, 3, 16, 71, 1024, 4096} {
		for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 12, 16, 33, 64} {
			nodes := names(n)
			owner, err := Owners(nodes, slots)
			if err != nil {
				t.Fatalf("%d nodes, %d slots: %v", n, slots, err)
			}
			if len(owner) != slots {
				t.Fatalf("%d nodes, %d slots: %d owners", n, slots, len(owner))
			}
			mean := float64(slots) / float64(n)
			for node, c := range count(owner) {
				if !slices.Contains(nodes, node) {
					t.Fatalf("%d nodes, %d slots: owner %q is not a node", n, slots, node)
				}
				if most := math.Ceil(1.10 * mean); float64(c) > most {
					t.Errorf("%d nodes, %d slots: %s owns %d, want at most %v", n, slots, node, c, most)
				}
			}
		}
	}
}

// The figures are logged, so that they can be read with -v; every node must own something.
func TestBalance(t *testing.T) {
	for _, n := range []int{3, 5, 8, 16} {
		owner, err := Owners(names(n), 1024)
		if err != nil {
			t.Fatal(err)
		}
		c, mean := count(owner), 1024/float64(n)
		least, most := 1024, 0
		for _, node := range names(n) {
			least, most = min(least, c[node]), max(most, c[node])
		}
		t.Logf("%2d nodes: least %.2f, most %.2f of the mean %.0f", n, float64(least)/mean, float64(most)/mean, mean)
		if float64(least) < 0.4*mean {
			t.Errorf("%d nodes: one owns only %d slots of a mean of %.0f", n, least, mean)
		}
	}
}

func TestOrderOfNodesDoesNotMatter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	nodes := names(9)
	want, err := Owners(nodes, 1024)
	if err != nil {
		t.Fatal(err)
	}
	wantReplicas := Replicas("node-3", nodes, 3)
	for range 20 {
		rnd.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		got, err := Owners(nodes, 1024)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(wantReplicas, Replicas("node-3", nodes, 3)); d != "" {
			t.Fatal(d)
		}
	}
}

// A placement is stored, but nodes that plan apart must agree: these owners are
// part of the contract of this version of the library and this hash.
func TestOwnersAreTheSameInEveryBuild(t *testing.T) {
	owner, err := Owners([]string{"a", "b", "c"}, 16)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(owner, ""), "cacccabbbccbabba"; got != want {
		t.Errorf("owners of 16 slots: %s, want %s", got, want)
	}
	if got, want := strings.Join(Rendezvous("a", []string{"a", "b", "c", "d", "e"}), ""), "caebd"; got != want {
		t.Errorf("ranked: %s, want %s", got, want)
	}
}

func TestAddingANodeMovesAboutItsShare(t *testing.T) {
	for _, n := range []int{3, 4, 5, 8, 16} {
		before, err := Owners(names(n), 1024)
		if err != nil {
			t.Fatal(err)
		}
		after, err := Owners(names(n+1), 1024)
		if err != nil {
			t.Fatal(err)
		}
		moved := 0
		for slot := range before {
			if before[slot] != after[slot] {
				moved++
			}
		}
		part, ideal := float64(moved)/1024, 1/float64(n+1)
		t.Logf("%2d → %2d nodes: %.3f of the slots move, ideal %.3f", n, n+1, part, ideal)
		if part > 2*ideal {
			t.Errorf("%d → %d nodes: %.3f of the slots move, want about %.3f", n, n+1, part, ideal)
		}
	}
}

func TestBadRingsAreErrors(t *testing.T) {
	many := names(MaxNodes + 1)
	for name, c := range map[string]struct {
		nodes []string
		slots int
		want  string
	}{
		"no nodes":   {nil, 16, "ring of 0 nodes"},
		"many nodes": {many, 16, "ring of 257 nodes"},
		"no slots":   {[]string{"a"}, 0, "ring of 0 slots"},
		"minus":      {[]string{"a"}, -1, "ring of -1 slots"},
		"many slots": {[]string{"a"}, MaxSlots + 1, "ring of 65537 slots"},
		"empty name": {[]string{"a", ""}, 16, "without a name"},
		"same twice": {[]string{"a", "b", "a"}, 16, `node "a" twice`},
	} {
		owner, err := Owners(c.nodes, c.slots)
		if err == nil || owner != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want an error with %q", name, owner, err, c.want)
		}
	}
}

func FuzzOwnersNeverPanics(f *testing.F) {
	f.Add("a b c", 1)
	f.Add("a", 1024)
	f.Add("a b", 3)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, list string, slots int) {
		if slots > 2048 {
			slots %= 2048
		}
		nodes := strings.Split(list, " ")
		owner, err := Owners(nodes, slots)
		if (err == nil) != (owner != nil) {
			t.Fatalf("%v and %v", owner, err)
		}
		if err == nil && len(owner) != slots {
			t.Fatalf("%d owners of %d slots", len(owner), slots)
		}
	})
}

func TestLargestRing(t *testing.T) {
	if testing.Short() {
		t.Skip("sorts 25,600 points")
	}
	if _, err := Owners(names(MaxNodes), 4096); err != nil {
		t.Error(err)
	}
}
