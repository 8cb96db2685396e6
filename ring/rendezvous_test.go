package ring

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReplicasAreDistinctAndBeginWithTheOwner(t *testing.T) {
	for n := range 9 {
		nodes := names(n)
		for want := -1; want <= 5; want++ {
			for _, owner := range nodes {
				got := Replicas(owner, nodes, want)
				if len(got) != max(0, min(want, n)) {
					t.Fatalf("%d of %d nodes: %v", want, n, got)
				}
				if len(got) > 0 && got[0] != owner {
					t.Errorf("replicas of %s: %v", owner, got)
				}
				slices.Sort(got)
				if len(slices.Compact(got)) != len(got) {
					t.Errorf("replicas of %s: twice the same in %v", owner, got)
				}
			}
		}
	}
}

func TestRendezvousKeepsTheOrderOfTheOthers(t *testing.T) {
	nodes := names(12)
	before := Rendezvous("g", nodes)
	for _, gone := range nodes {
		left := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == gone })
		want := slices.DeleteFunc(slices.Clone(before), func(n string) bool { return n == gone })
		if d := cmp.Diff(want, Rendezvous("g", left)); d != "" {
			t.Fatalf("without %s: %s", gone, d)
		}
	}
}

func TestRendezvousSpreadsKeys(t *testing.T) {
	nodes := names(8)
	first := map[string]int{}
	for i := range 8000 {
		first[Rendezvous(fmt.Sprint(i), nodes)[0]]++
	}
	for _, n := range nodes {
		if c := first[n]; c < 850 || c > 1150 {
			t.Errorf("%s is first for %d of 8,000 keys, want about 1,000", n, c)
		}
	}
}

func TestRendezvousTellsKeyAndNodeApart(t *testing.T) {
	// ("a", "bc") and ("ab", "c") are hashed apart; the same node twice counts once.
	if got := Rendezvous("k", []string{"x", "x"}); len(got) != 1 {
		t.Errorf("x twice: %v", got)
	}
	if got := Rendezvous("k", nil); len(got) != 0 {
		t.Errorf("no nodes: %v", got)
	}
}
