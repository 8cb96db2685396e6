package main

import "math"

// node is one node of a cluster of so many, and what a group of it does each second.
type node struct {
	l load
	s shape
	c *constants
	n int // nodes, and so groups
}

// part is the largest part of all slots that a node owns: ring.Plan lets it have 1.10
// times the mean, rounded up.
func (x node) part() float64 {
	most := (110*x.s.Slots + 100*x.n - 1) / (100 * x.n)
	return float64(min(most, x.s.Slots)) / float64(x.s.Slots)
}

// rounds is how many commits a second a group with so many takes a second makes: the
// next gathers while one is under way, and a lonely one goes at once. A busy machine
// takes longer for a commit, so that more takes share it: then this counts too many.
func (x node) rounds(takes float64) float64 { return takes / (1 + takes*x.c.CommitTime) }

// takes is what a group commits each second.
func (x node) takes() float64 { return x.l.commits() * x.part() }

func (x node) denials() float64 { return x.l.denials() * x.part() }

// buckets is what a group holds on the last day.
func (x node) buckets() float64 { return x.l.buckets() * x.part() }

// followed is how many groups a node holds that others lead.
func (x node) followed() float64 { return float64(min(x.s.Replicas, x.n) - 1) }

// roles is how many groups a node leads, and follows.
type roles struct{ leads, follows float64 }

func (x node) whole() roles { return roles{1, x.followed()} }

// gone is the worst node just after another died: it leads that one's group too,
// which it followed before. Once all is made anew each of the others has its share.
func (x node) gone() []roles {
	each := float64(x.n) / math.Max(1, float64(x.n-1))
	return []roles{{2, math.Max(0, x.followed()-1)}, {each, x.followed() * each}}
}
