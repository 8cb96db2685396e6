package cluster

import (
	"context"
	"time"

	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/transport"
)

// watchLoop keeps this node's own digest fresh and notices changes of leaders.
func (n *Node) watchLoop(ctx context.Context) error {
	tick := time.NewTimer(untilLook())
	defer tick.Stop()
	last := time.Now()
	var calm time.Time // until then this node does not trust its own sense of silence
	for {
		n.hearSelf()
		now := time.Now()
		n.observeControlLag(now)
		n.ready.observe(n)
		if now.Sub(last) > 2*digestEvery {
			// This process itself was not run: what it missed says nothing about others.
			calm = now.Add(5 * digestEvery)
		}
		if last = now; now.After(calm) {
			n.watchLeaders()
		}
		select {
		case <-tick.C:
			tick.Reset(untilLook())
		case <-n.linkChanged:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

const (
	digestEvery  = 50 * time.Millisecond // how old this node's own digest may be when it is sent
	digestGrowth = 64                    // bytes that one is mostly longer than the last one, at most
)

// untilLook is how long to wait for the next look: half a beat before the next ping, so
// that a ping never takes the digest of the look before, and what a replica's log has
// grown by is known to the others within settled.
func untilLook() time.Duration {
	return transport.UntilBeat(time.Now().Add(digestEvery/2), digestEvery)
}

// hearSelf takes this node's own state in as if another node had told it.
func (n *Node) hearSelf() {
	d := n.observe()
	raw := appendDigest(make([]byte, 0, len(n.ownDigest())+digestGrowth), d)
	n.ownBytes.Store(&raw)
	if n.table.again(n.self.name, n.self.incarnation, raw, time.Now()) == nil && n.table.hear(n.self.name, n.self.incarnation, d, raw, time.Now()) {
		n.leadersChanged()
	}
}

// ownDigest is called by every link for every ping.
func (n *Node) ownDigest() []byte {
	if b := n.ownBytes.Load(); b != nil {
		return *b
	}
	return appendDigest(nil, &digest{})
}

func (n *Node) onDigest(from transport.From, b []byte) {
	if !n.registeredAs(from) {
		return
	}
	if d := n.table.again(from.Node, from.Incarnation, b, time.Now()); d != nil {
		n.compareReplicas(from, d)
		return
	}
	d, err := parseDigest(b)
	if err != nil {
		n.log.Debug("digest not understood", "from", from.Node, "error", err)
		return
	}
	n.compareReplicas(from, d)
	news := n.table.news(from.Node, d)
	if n.table.hear(from.Node, from.Incarnation, d, b, time.Now()) {
		n.leadersChanged()
	}
	if news {
		n.lookAtLinks()
	}
}

// lookAtLinks makes watchLoop look at once. It never blocks.
func (n *Node) lookAtLinks() {
	select {
	case n.linkChanged <- struct{}{}:
	default:
	}
}

func (n *Node) onLink(node string, up bool) {
	n.log.Debug("link", "to", node, "up", up)
	n.lookAtLinks()
	n.wake()
}

// observe reads this node's own state.
func (n *Node) observe() *digest {
	d := &digest{control: n.control.Applied(), stopping: n.stopping.Load(), draining: n.draining.Load()}
	nodes, hosted := n.control.State().Nodes, n.hosts.all()
	d.up, d.replicas = make([]string, 0, len(nodes)), make([]replicaDigest, 0, len(hosted))
	for _, node := range nodes {
		if n.linkTo(control.ID{Node: node.Name, Incarnation: node.Incarnation}) {
			d.up = append(d.up, node.Name)
		}
	}
	for _, x := range hosted {
		st := x.replica.Status()
		r := replicaDigest{
			group: x.parsed.Group, epoch: x.parsed.Epoch, serial: x.parsed.Serial,
			applied: st.Applied, chain: st.Chain, term: st.Term, lastTerm: st.LastTerm, lastIndex: st.LastIndex, leads: st.Leading, serving: st.Serving,
			buckets: uint64(st.Buckets), held: uint64(st.HeldSlots), time: st.Time,
		}
		voters := st.Voters
		if !st.Leading {
			voters = x.replica.Electorate()
		}
		r.voters = make([]uint64, 0, len(voters))
		for _, id := range voters {
			if v, ok := control.ParseReplicaID(id); ok {
				r.voters = append(r.voters, v.Serial)
			}
		}
		d.replicas = append(d.replicas, r)
	}
	return d
}
