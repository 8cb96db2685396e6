package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// How long a node waits before it warns that it finds nobody, since nodes that
// start together come one after another, and how often it does so again.
const (
	lonelyAfter = 5 * time.Second
	lonelyEvery = 30 * time.Second
)

// lonely warns now and again while a node that is to join finds nobody. Used by
// joinLoop only.
type lonely struct {
	next time.Time // zero: not looked yet
}

func (l *lonely) look(n *Node, now time.Time) {
	if l.next.IsZero() {
		l.next = now.Add(lonelyAfter)
	}
	if now.Before(l.next) || len(n.cfg.Join) == 0 || n.registered() || n.gossip.Reached() {
		return
	}
	l.next = now.Add(lonelyEvery)
	n.log.Warn("cannot join yet: " + n.unheard())
}

// alone says for what a node waits that has nothing of a control state.
func (n *Node) alone() string {
	why := n.unheard()
	if n.gossip.Reached() {
		why = n.expected()
	}
	if id := n.clusterID(); id != "" {
		return fmt.Sprintf("nothing is heard of cluster %s yet: %s", id, why)
	}
	return "no cluster is known: " + why
}

// expected says who is there, and what is still to come.
func (n *Node) expected() string {
	var names []string
	for _, m := range n.gossip.Members() {
		if m.Cluster != "" && m.Name != n.self.name {
			return "joining that of " + m.Name
		}
		names = append(names, m.Name)
	}
	twice := len(names)
	names = slices.Compact(names)
	there := strings.Join(names, ", ")
	switch {
	case n.clusterID() != "":
		return "waiting for the others"
	case n.cfg.BootstrapExpect > 0 && len(names) > n.cfg.BootstrapExpect:
		return fmt.Sprintf("%d nodes are there (%s), and --bootstrap-expect says %d", len(names), there, n.cfg.BootstrapExpect)
	case n.cfg.BootstrapExpect > 0 && len(names) < twice:
		return fmt.Sprintf("waiting until an earlier process of one of %s is forgotten", there)
	case n.cfg.BootstrapExpect > 0:
		return fmt.Sprintf("%d of the %d nodes that are to make one are there (%s)", len(names), n.cfg.BootstrapExpect, there)
	}
	return fmt.Sprintf("nobody here (%s) knows one, and none is made without --bootstrap-expect", there)
}

// unheard says why nobody is there: where nobody answers, and what to check.
func (n *Node) unheard() string {
	silent, tried := n.gossip.Silent()
	switch {
	case len(silent) > 0 && n.clusterID() != "":
		return fmt.Sprintf("nobody of it answers at %s: do those nodes run, and are they of this cluster?", strings.Join(silent, ", "))
	case len(silent) == 1:
		return fmt.Sprintf("nobody answers at %s: is it another node's --gossip address?", silent[0])
	case len(silent) > 1:
		return fmt.Sprintf("nobody answers at %s: are they other nodes' --gossip addresses?", strings.Join(silent, ", "))
	case len(n.cfg.Join) == 0 && n.cfg.BootstrapExpect == 1:
		return "making one"
	case len(n.cfg.Join) == 0:
		return "waiting to be contacted, as there is no --join"
	case !tried:
		return "trying " + strings.Join(n.cfg.Join, ", ")
	}
	return fmt.Sprintf("--join names only this node's own address, %s: want another node's --gossip address", strings.Join(n.cfg.Join, ", "))
}
