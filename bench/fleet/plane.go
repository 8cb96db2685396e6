package fleet

import "errors"

// Plane is what a link carries: faults may meet one of them alone.
type Plane uint8

// The planes between nodes. What callers send is none of them.
const (
	AllPlanes   Plane = iota
	PeerPlane         // raft, pings, forwarded takes: TCP
	GossipPlane       // UDP and TCP
)

// planes are the two that links have; AllPlanes stands for both.
var planes = []Plane{PeerPlane, GossipPlane}

func (p Plane) String() string { return [...]string{"all", "peer", "gossip"}[p] }

// errNoLoss is returned by Loss of a fleet without namespaces.
var errNoLoss = errors.New("fleet: losing packets needs namespaces without relays")

// Block cuts (or with open heals) one direction of one link, on one plane or all.
// A fleet with relays holds the bytes of a stream back, one with namespaces alone
// drops the packets; either way connections stay open and silent, and gossip
// is lost.
func (f *Fleet) Block(from, to string, plane Plane, open bool) error {
	switch {
	case f.links != nil:
		for _, p := range planes {
			if plane == AllPlanes || plane == p {
				f.links.gate(from, to, p).set(open)
			}
		}
		return nil
	case f.yard != nil:
		return f.yard.rules.block(pair{from, to}, plane, open)
	}
	return errNotRelayed
}

// Loss drops so many of a hundred packets of one direction of a link; 0: none.
func (f *Fleet) Loss(from, to string, percent int) error {
	if f.yard == nil || f.links != nil {
		return errNoLoss
	}
	return f.yard.rules.lose(pair{from, to}, percent)
}

// Shape makes the relays treat one direction of a link as s says; the zero Shape:
// carry all as it comes.
func (f *Fleet) Shape(from, to string, s Shape) error {
	if f.links == nil {
		return errNotRelayed
	}
	for _, p := range planes {
		f.links.gate(from, to, p).shape.Store(&s)
	}
	return nil
}

// Link takes the link of a node to everything, callers too, down or up.
func (f *Fleet) Link(name string, up bool) error {
	if f.yard == nil {
		return errNotIsolated
	}
	return f.yard.link(name, up)
}

// Isolated says whether each node has a namespace of its own, and Relayed whether
// relays stand between them.
func (f *Fleet) Isolated() bool { return f.yard != nil }

// Relayed says whether relays stand before the peer and gossip ports.
func (f *Fleet) Relayed() bool { return f.links != nil }
