package fleet

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"time"
)

// errNotRelayed is returned by whatever cuts links of a fleet without relays.
var errNotRelayed = errors.New("fleet: started without relays")

// Cut stops all bytes and gossip between a node and the other nodes, both ways.
// Callers still reach it. Connections stay open and silent, as when a cable is
// pulled.
func (f *Fleet) Cut(name string) error { return f.Part([]string{name}, false) }

// Heal undoes Cut; what the kernels still hold is delivered late.
func (f *Fleet) Heal(name string) error { return f.Part([]string{name}, true) }

// Part cuts all links between some nodes and all others, or heals them (open).
func (f *Fleet) Part(side []string, open bool) error {
	if f.links == nil {
		return errNotRelayed
	}
	for _, a := range side {
		for _, n := range f.list() {
			if !slices.Contains(side, n.Name) {
				f.links.set(a, n.Name, open)
				f.links.set(n.Name, a, open)
			}
		}
	}
	return nil
}

// Direction cuts what one node sends to another, or lets it through (open); what
// comes the other way is left as it is.
func (f *Fleet) Direction(from, to string, open bool) error {
	if f.links == nil {
		return errNotRelayed
	}
	f.links.set(from, to, open)
	return nil
}

// dialer names the node that holds the local end of a connection, "" if none.
func (f *Fleet) dialer(localPort int) string {
	pids := make(map[int]string)
	for _, n := range f.list() {
		if pid := n.PID(); pid > 0 {
			pids[pid] = n.Name
		}
	}
	// The dialer's socket is in its table before we accept; its process may
	// need a moment to be readable.
	for range 20 {
		if pid, ok := socketOwner(localPort, pids); ok {
			return pids[pid]
		}
		time.Sleep(time.Millisecond)
	}
	return ""
}

// sender names the node that sends packets from a port, "" if none: memberlist
// sends from where it listens.
func (f *Fleet) sender(port int) string {
	for _, n := range f.list() {
		if _, p, _ := net.SplitHostPort(n.Gossip); p == strconv.Itoa(port) {
			return n.Name
		}
	}
	return ""
}

// Writes counts what has gone from one node to another through the relays: reads
// of a relay, each of which was one write of the node or more, and packets.
func (f *Fleet) Writes(from, to string) (writes, packets uint64, err error) {
	if f.links == nil {
		return 0, 0, errNotRelayed
	}
	g := f.links.gate(from, to)
	return g.writes.Load(), g.packets.Load(), nil
}
