package cluster

import (
	"fmt"

	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/transport"
)

// compareReplicas holds this node's replicas against what their leaders say of
// themselves. At one index all replicas of a group are byte-identical: one that
// differs from its leader has met a fault of the program or the machine, and is
// replaced by a fresh one.
func (n *Node) compareReplicas(from transport.From, d *digest) {
	var here []*hosted
	for i := range d.replicas {
		r := &d.replicas[i]
		if !r.serving {
			continue
		}
		if here == nil {
			here = n.hosts.all()
		}
		for _, x := range here {
			if x.parsed.Group != r.group || x.parsed.Epoch != r.epoch {
				continue
			}
			st := x.replica.Status()
			leader, known := control.ParseReplicaID(st.Leader)
			if !known || leader.Node != from.Node || leader.Serial != r.serial {
				continue
			}
			chain, ok := x.replica.ChainAt(r.applied)
			if !ok || chain == r.chain || x.broken.Load() != nil {
				continue
			}
			n.metrics.differ.Inc()
			x.breaks(fmt.Errorf("at index %d it differs from its leader on %s: %016x, not %016x", r.applied, from.Node, chain, r.chain))
		}
	}
}
