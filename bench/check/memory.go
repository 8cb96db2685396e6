package check

import (
	"math"
	"slices"
	"time"
)

// Memory is what a run knows of where state was: the voters of each group as they were
// seen, and which processes ended, whose memory is gone until all was seen whole again.
// It has no lock of its own.
type Memory struct {
	homes   []home    // in the order in which they were seen
	emptied []emptied // in the order of their beginning
}

// home is where a group's state was from a time on.
type home struct {
	group uint32
	nodes []string // in order
	at    time.Duration
}

// emptied is a time in which a node may be without what it had held. To is Forever until
// all was seen whole.
type emptied struct {
	node string
	Span
}

// Lose says that the process of a node is about to end.
func (m *Memory) Lose(node string, at time.Duration) {
	m.emptied = append(m.emptied, emptied{node, Span{at, Forever}})
}

// Open are the nodes that may be without their memory now.
func (m *Memory) Open() (nodes []string) {
	for _, e := range m.emptied {
		if e.To == Forever && !slices.Contains(nodes, e.node) {
			nodes = append(nodes, e.node)
		}
	}
	return nodes
}

// Regained says that all replicas were seen up to date, by looks from a time to another, and
// that such nodes were started anew before that. Who was emptied since may be so still.
func (m *Memory) Regained(from, to time.Duration, nodes []string) {
	for i := range m.emptied {
		if e := &m.emptied[i]; e.To == Forever && e.From < from && slices.Contains(nodes, e.node) {
			e.To = to
		}
	}
}

// Voters says which nodes vote in a group. One that was emptied and lost its vote with
// its memory still counts: its replica is being made anew.
func (m *Memory) Voters(group uint32, nodes []string, at time.Duration) {
	nodes = slices.Clone(nodes)
	last := m.last(group)
	if last != nil {
		for _, e := range m.emptied {
			if e.To == Forever && slices.Contains(last.nodes, e.node) {
				nodes = append(nodes, e.node)
			}
		}
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if len(nodes) > 0 && (last == nil || !slices.Equal(last.nodes, nodes)) {
		m.homes = append(m.homes, home{group, nodes, at})
	}
}

func (m *Memory) last(group uint32) *home {
	for i := len(m.homes) - 1; i >= 0; i-- {
		if m.homes[i].group == group {
			return &m.homes[i]
		}
	}
	return nil
}

// around are where a group's state was at a time: as it was seen last, and as it was seen
// next, since nobody looks all the time.
func (m *Memory) around(group uint32, at time.Duration) (homes []home) {
	for _, h := range m.homes {
		switch {
		case h.group != group:
		case h.at <= at:
			homes = []home{h}
		default:
			return append(homes, h)
		}
	}
	return homes
}

// lost finds the first moment after one and by another at which a group may have lost a
// majority: at which as many of its nodes were empty as the smaller of the two groups around
// it can not do without. Such a moment is one at which a process ended.
func (m *Memory) lost(group uint32, after, by time.Duration) (at time.Duration, ok bool) {
	for _, e := range m.emptied {
		if e.From <= after || e.From > by {
			continue
		}
		var nodes []string
		enough := math.MaxInt
		for _, h := range m.around(group, e.From) {
			nodes = append(nodes, h.nodes...)
			enough = min(enough, len(h.nodes)-len(h.nodes)/2)
		}
		if m.empty(nodes, e.From) >= enough {
			return e.From, true
		}
	}
	return 0, false
}

// saw says whether a group was seen by a time.
func (m *Memory) saw(group uint32, by time.Duration) bool {
	return slices.ContainsFunc(m.homes, func(h home) bool { return h.group == group && h.at <= by })
}

// empty counts those of some nodes that may be without their memory at a time.
func (m *Memory) empty(nodes []string, at time.Duration) int {
	names := make(map[string]bool)
	for _, e := range m.emptied {
		if e.From <= at && at <= e.To && slices.Contains(nodes, e.node) {
			names[e.node] = true
		}
	}
	return len(names)
}
