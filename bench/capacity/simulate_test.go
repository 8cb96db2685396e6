package main

import "testing"

// known are results that two tests look at; tests of this package run one at a time.
var known = map[[2]int]simulation{}

// remembered is simulate, once for each cluster.
func remembered(nodes, slots int) (simulation, error) {
	key := [2]int{nodes, slots}
	if r, ok := known[key]; ok {
		return r, nil
	}
	r, err := simulate(nodes, slots)
	if err == nil {
		known[key] = r
	}
	return r, err
}

// TestPlacementOfManyNodes: the planner keeps 50 and 200 nodes even, and moves no more
// than it must when one comes or goes.
func TestPlacementOfManyNodes(t *testing.T) {
	for _, nodes := range []int{50, 200} {
		const slots = 16_384
		r, err := remembered(nodes, slots)
		if err != nil {
			t.Fatal(err)
		}
		t.Log("\n" + r.text())
		for _, s := range r.rows() {
			b := s.balance
			most := (110*slots + 100*b.Nodes - 1) / (100 * b.Nodes)
			if b.MaxSlots > most {
				t.Errorf("%d nodes, %s: a node has %d slots, want at most 1.10 times the mean, %d", nodes, s.what, b.MaxSlots, most)
			}
			if b.MaxReplicas-b.MinReplicas > 1 {
				t.Errorf("%d nodes, %s: %d … %d replicas of a node", nodes, s.what, b.MinReplicas, b.MaxReplicas)
			}
			// The first node to come also fills those that the first placement left below
			// three quarters of the mean.
			bound := 1.12 * float64(b.Mean)
			if s.what == "joined" {
				bound = 2.5 * float64(b.Mean)
			}
			if s.what != "made" && (float64(b.Moved) > bound || 4*b.MinSlots < 3*(slots/b.Nodes)) {
				t.Errorf("%d nodes, %s: %d slots moved, %d in the mean; a node has %d", nodes, s.what, b.Moved, b.Mean, b.MinSlots)
			}
			if b.ReplicaSteps > 3 {
				t.Errorf("%d nodes, %s: %d replicas were made", nodes, s.what, b.ReplicaSteps)
			}
		}
	}
}
