package cluster

import (
	"fmt"
	"strings"

	"github.com/ringlimit/ringlimit/control"
)

// loss is why a group has no leader, as one node sees it: which of the replicas
// that vote, or did, are gone for good, and which do not answer at present. Only of
// the first is it known that what they held is gone; the others may be slow.
type loss struct {
	gone, silent []string // nodes, in the order of the replicas
	voters       int
}

// countLoss adds a replica. The process before this one is known to have ended as
// soon as this one has its directory, before the control group hears of it.
func (n *Node) countLoss(l *loss, s *control.State, m control.Replica, reachable bool) {
	node, _ := s.Node(m.Node)
	own := m.Node == n.self.name && m.Incarnation != n.self.incarnation && node.Directory == n.self.directory
	l.voters++
	switch {
	case s.Lost(m) || own && n.follows(node):
		l.gone = append(l.gone, m.Node)
	case reachable:
	case node.Incarnation == m.Incarnation && m.Node != n.self.name:
		l.silent = append(l.silent, m.Node)
	default:
		l.silent = append(l.silent, m.Node+" as it ran before, from another --data-dir")
	}
}

// text says it for people, behind "no leader"; viewer is the node that sees it. It
// is empty as long as a majority answers: an election takes a moment.
func (l *loss) text(viewer string) string {
	if 2*(len(l.gone)+len(l.silent)) <= l.voters {
		return ""
	}
	var parts []string
	if len(l.silent) > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d replicas do not answer (%s)", len(l.silent), l.voters, strings.Join(l.silent, ", ")))
	}
	if len(l.gone) > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d replicas are gone with their processes (%s)", len(l.gone), l.voters, strings.Join(l.gone, ", ")))
	}
	what := "the control leader begins a new epoch: within seconds, if there is one"
	if len(l.silent) > 0 {
		what = "a majority is back: see whether those processes run and the network reaches them; start again, from its --data-dir, only what has ended, " +
			"or `rlnode remove` what will never return"
	}
	return fmt.Sprintf(": as %s sees it, %s; it refuses all takes until %s", viewer, strings.Join(parts, " and "), what)
}
