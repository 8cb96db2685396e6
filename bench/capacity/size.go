package main

import "math"

// answer is what a load needs. Where no number of nodes of one cluster is enough,
// Clusters side by side are counted, each with an equal part of the load.
type answer struct {
	Load     load  `json:"load"`
	Shape    shape `json:"shape"`
	Clusters int   `json:"clusters"` // 0: more than most
	Nodes    int   `json:"nodes"`    // of each cluster
	// What each would need alone; 0: no number of nodes up to the most is enough.
	ByCPU     int     `json:"nodes_by_cpu"`
	ByMemory  int     `json:"nodes_by_memory"`
	ByNetwork int     `json:"nodes_by_network"`
	ByGroup   int     `json:"nodes_by_group"`
	Binds     string  `json:"binds"` // cpu, memory, network, group (one leader decides for each), or replicas: fewer nodes cannot hold so many
	Rate      float64 `json:"rate"`  // decisions a second of one cluster that fit, with headroom
	Buckets   float64 `json:"buckets"`
	PerNode   perNode `json:"per_node"`
	Change    change  `json:"change"`
}

// perNode is the fullest node, each as a share or a figure of its own.
type perNode struct {
	Slots     int     `json:"slots"`      // mean, rounded
	MostSlots int     `json:"most_slots"` // that one owns at most
	Decisions float64 `json:"decisions"`  // a second, with headroom
	Commits   float64 `json:"commits"`    // a second, of its own group
	Batch     float64 `json:"batch"`      // takes that share one
	Cores     float64 `json:"cores"`      // used
	CoresGone float64 `json:"cores_gone"` // by the one that takes over from a dead one
	Mesh      float64 `json:"mesh"`       // of Cores: for the other nodes' pings
	Memory    memory  `json:"memory"`
	Traffic   traffic `json:"traffic"`
	Sweep     float64 `json:"sweep"`   // seconds of a pass over its buckets
	Arrival   float64 `json:"arrival"` // seconds that a snapshot of a group takes to a fresh replica
	Reach     float64 `json:"reach"`   // seconds that the log of a group waits for a snapshot: Arrival must be less
}

// mostClusters bounds the search.
const mostClusters = 1 << 20

// size finds the fewest clusters, and of those the fewest nodes, that carry l.
func size(l load, s shape, c *constants) answer {
	a := answer{Load: l, Shape: s}
	k := fewest(mostClusters, func(k int) bool { return nodes(l.split(k), s, c, node.fits) > 0 })
	if k == 0 {
		return a
	}
	l = l.split(k)
	a.Clusters, a.Rate, a.Buckets = k, l.rate(), l.buckets()
	a.Nodes = nodes(l, s, c, node.fits)
	a.ByCPU, a.ByMemory = nodes(l, s, c, node.fitsCPU), nodes(l, s, c, node.fitsMemory)
	a.ByNetwork, a.ByGroup = nodes(l, s, c, node.fitsNetwork), nodes(l, s, c, node.fitsGroup)
	switch a.Nodes {
	case s.least():
		a.Binds = "replicas"
	case a.ByCPU:
		a.Binds = "cpu"
	case a.ByMemory:
		a.Binds = "memory"
	case a.ByGroup:
		a.Binds = "group"
	default:
		a.Binds = "network"
	}
	x := node{l, s, c, a.Nodes}
	a.PerNode, a.Change = x.filled(), x.change()
	return a
}

// least is the fewest nodes that hold all replicas.
func (s shape) least() int { return s.Replicas }

// fits says whether so many nodes are enough in everything.
func (x node) fits() bool { return x.fitsCPU() && x.fitsMemory() && x.fitsNetwork() && x.fitsGroup() }

// nodes returns the fewest for which fits is true, 0 if there are none. It asks each:
// pings make a node dearer with each other one, so that more are not always enough.
func nodes(l load, s shape, c *constants, fits func(node) bool) int {
	for n := s.least(); n <= s.MaxNodes; n++ {
		if fits(node{l, s, c, n}) {
			return n
		}
	}
	return 0
}

// fewest returns the least of 1 … most for which ok is true, where it stays true
// once it is; 0 if it is for none.
func fewest(most int, ok func(int) bool) int {
	lo, hi := 1, most
	if ok(lo) {
		return lo
	}
	if !ok(hi) {
		return 0
	}
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; ok(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// split is the part of one of k clusters. Each has all policies.
func (l load) split(k int) load { return l.times(1 / float64(k)) }

func (x node) filled() perNode {
	t := x.takes()
	p := perNode{
		Slots: int(math.Round(float64(x.s.Slots) / float64(x.n))), MostSlots: int(math.Round(x.part() * float64(x.s.Slots))),
		Decisions: t + x.denials(), Commits: x.rounds(t), Batch: 1 + t*x.c.CommitTime,
		Cores: x.cores(x.whole()), Mesh: x.c.PeerCPU * float64(x.n-1),
		Memory: x.memory(), Traffic: x.traffic(x.whole()), Sweep: x.sweep(), Arrival: x.arrival(), Reach: x.reach(),
	}
	for _, r := range x.gone() {
		p.CoresGone = math.Max(p.CoresGone, x.cores(r))
	}
	return p
}
