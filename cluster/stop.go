package cluster

import (
	"context"
	"sync"
	"time"
)

// handOver is what a stopping node does while it still serves: it tells the
// others, gives the leadership of each group to a replica that is caught up,
// and that of the control group last. It is bounded by the drain timeout.
func (n *Node) handOver(ctx context.Context) {
	n.log.Info("stopping: handing leadership over", "at_most", n.cfg.DrainTimeout)
	ctx, cancel := context.WithTimeout(ctx, n.cfg.DrainTimeout)
	defer cancel()
	n.stopping.Store(true)
	n.ready.observe(n)
	var wg sync.WaitGroup
	for _, x := range n.hosts.all() {
		wg.Go(func() {
			if err := x.replica.HandOver(ctx); err != nil {
				n.log.Warn("leadership was not handed over", "replica", x.id, "error", err)
			}
		})
	}
	wg.Wait()
	if err := n.control.HandOver(ctx); err != nil {
		n.log.Warn("control leadership was not handed over", "error", err)
	}
	// One more digest each way: others and clients learn the new leaders while
	// this node can still point them there.
	n.hearSelf()
	select {
	case <-time.After(4 * digestEvery):
	case <-ctx.Done():
	}
}
