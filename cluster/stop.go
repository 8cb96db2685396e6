package cluster

import (
	"context"
	"sync"
	"time"
)

// handOver is what a stopping node does while it still serves: it waits until
// every group it is part of is whole without it being the last to know something,
// tells the others, gives the leadership of each group to a replica that is
// caught up, and that of the control group last. All that takes at most the
// drain timeout.
func (n *Node) handOver(ctx context.Context) {
	n.log.Info("stopping: handing leadership over", "at_most", n.cfg.DrainTimeout)
	n.draining.Store(true)
	n.ready.observe(n)
	n.hearSelf()
	n.pause(ctx, 4*digestEvery) // others may have been told to stop at the same moment
	whole, cancel := context.WithTimeout(ctx, n.cfg.DrainTimeout/2)
	n.awaitCopies(whole)
	cancel()
	ctx, cancel = context.WithTimeout(ctx, n.cfg.DrainTimeout/2)
	defer cancel()
	n.stopping.Store(true)
	var wg sync.WaitGroup
	for _, x := range n.hosts.all() {
		wg.Go(func() {
			if err := x.replica.HandOver(ctx); err != nil {
				n.log.Warn("leadership was not handed over", "replica", x.id, "error", err)
			}
		})
	}
	wg.Wait()
	if err := n.handControlOver(ctx); err != nil {
		n.log.Warn("control leadership was not handed over", "error", err)
	}
	// One more digest each way: others and clients learn the new leaders while
	// this node can still point them there.
	n.hearSelf()
	n.pause(ctx, 4*digestEvery)
}

func (n *Node) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// handControlOver gives the control leadership to a voter that answers, if this
// node leads and there is one.
func (n *Node) handControlOver(ctx context.Context) error {
	if !n.control.Leads() {
		return nil
	}
	servers, err := n.control.Servers()
	if err != nil {
		return err
	}
	var next string
	for _, node := range n.control.State().Nodes {
		id := controlID(node.Name, node.Directory)
		if !servers[id] || node.Name == n.self.name || node.Removed || !n.answers(node) {
			continue
		}
		if h, ok := n.table.last(node.Name); next == "" || ok && !h.digest.draining && !node.Draining {
			next = id // rather one that does not stop or drain itself
		}
	}
	if next == "" {
		return nil
	}
	return n.control.HandOver(ctx, next)
}

// awaitCopies waits until every group that has a replica here is whole: what
// this process holds in memory must not be the copy that a majority lacks.
func (n *Node) awaitCopies(ctx context.Context) {
	for waited := false; ; waited = true {
		why := n.uncopied()
		if why == "" {
			return
		}
		if !waited {
			n.log.Info("stopping: waiting for the other replicas", "because", why)
		}
		select {
		case <-time.After(digestEvery):
		case <-ctx.Done():
			n.log.Warn("stopping although a group is not whole", "because", why)
			return
		}
	}
}

// uncopied says what is wrong with a group this node is part of, empty if nothing is.
func (n *Node) uncopied() string {
	s := n.control.State()
	for _, x := range n.hosts.all() {
		g, ok := s.Group(x.parsed.Group)
		if !ok || g.Epoch != x.parsed.Epoch || len(g.Replicas) == 1 {
			continue
		}
		if st := n.groupStatus(s, g); !st.Healthy {
			return st.Problem
		}
		for _, r := range g.Replicas {
			// Of several that were told to stop at once the first by name goes first.
			if h, ok := n.table.last(r.Node); ok && r.Node < n.self.name && h.digest.draining {
				return "node " + r.Node + " is stopping too, and goes first"
			}
		}
	}
	return ""
}
