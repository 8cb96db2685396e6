package ring

import (
	"slices"
)

// Copies says where the copies of one group are: Nodes, all distinct, Owner among
// them. The owner is the group's key in rendezvous, as in Replicas.
type Copies struct {
	Owner string
	Nodes []string
}

// Shift takes one copy of a group, by its place in the list that Level was given,
// from a node to one that has none of it.
type Shift struct {
	Group    int
	From, To string
}

// Level returns the next step towards a placement in which no node has two copies
// more than another, and false when it is there. Copies on their group's owner stay.
//
// Each step goes from a node that has most to one that has least, so that no
// sequence of steps is shorter, none comes back to where it was, and of two
// placements that are level none is preferred: when a node joins, it is given its
// share, and nothing else moves. Rendezvous decides what is left open, here as in
// Replicas: the copy goes that fits worst where it is and best where it comes to.
// Rendezvous alone would move as much and level little: with one group a node and
// three copies each, in nearly all sets of 4 or more nodes some node has more than
// 1.25 times the mean, 6 of 7 groups at worst, and in half of them another one has
// its own group only.
//
// Where every node owns at most one of the groups, the steps end only when it is
// level. The order of nodes does not matter; that of groups only between groups of
// one owner.
func Level(groups []Copies, nodes []string) (Shift, bool) {
	count := make(map[string]int, len(nodes))
	for _, n := range nodes {
		count[n] = 0
	}
	for _, g := range groups {
		for _, n := range g.Nodes {
			if _, ok := count[n]; ok {
				count[n]++
			}
		}
	}
	least, most := extremes(count)
	if most-least < 2 {
		return Shift{}, false
	}
	var best Shift
	gain := 0
	for i, g := range groups {
		var ranked []string // only for groups that have a copy to give
		for _, from := range g.Nodes {
			if c, ok := count[from]; !ok || c < most || from == g.Owner {
				continue
			}
			if ranked == nil {
				ranked = Rendezvous(g.Owner, nodes)
			}
			at := slices.Index(ranked, from)
			for rank, to := range ranked {
				if count[to] > least || slices.Contains(g.Nodes, to) {
					continue
				}
				if better := len(nodes) + at - rank; better > gain { // at least 1
					gain, best = better, Shift{i, from, to}
				}
			}
		}
	}
	return best, gain > 0
}

// extremes returns the least and the most of some counts; none are 0 and 0.
func extremes(count map[string]int) (least, most int) {
	first := true
	for _, c := range count {
		if first {
			least, most, first = c, c, false
		}
		least, most = min(least, c), max(most, c)
	}
	return least, most
}

// Spread gives each owner n copies, its own first, as Replicas does, and then
// levels them. Owners are distinct and among nodes.
func Spread(owners, nodes []string, n int) [][]string {
	groups := make([]Copies, len(owners))
	for i, owner := range owners {
		groups[i] = Copies{Owner: owner, Nodes: Replicas(owner, nodes, n)}
	}
	for {
		s, ok := Level(groups, nodes)
		if !ok {
			break
		}
		at := slices.Index(groups[s.Group].Nodes, s.From)
		groups[s.Group].Nodes[at] = s.To
	}
	out := make([][]string, len(groups))
	for i, g := range groups {
		out[i] = g.Nodes
	}
	return out
}
