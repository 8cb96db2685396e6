package fleet

import (
	"errors"
	"net"
	"slices"
	"time"
)

// errNotRelayed is returned by whatever cuts links of a fleet without relays
// and namespaces.
var errNotRelayed = errors.New("fleet: started without relays or namespaces")

// Cut stops all bytes and gossip between a node and the other nodes, both ways.
// Callers still reach it. Connections stay open and silent, as when a cable is
// pulled.
func (f *Fleet) Cut(name string) error { return f.Part([]string{name}, false) }

// Heal undoes Cut; what the kernels still hold is delivered late.
func (f *Fleet) Heal(name string) error { return f.Part([]string{name}, true) }

// Part cuts all links between some nodes and all others, or heals them (open).
func (f *Fleet) Part(side []string, open bool) error {
	if f.links == nil && f.yard == nil {
		return errNotRelayed
	}
	for _, a := range side {
		for _, n := range f.List() {
			if slices.Contains(side, n.Name) {
				continue
			}
			if err := errors.Join(f.Block(a, n.Name, AllPlanes, open), f.Block(n.Name, a, AllPlanes, open)); err != nil {
				return err
			}
		}
	}
	return nil
}

// dialer names the node at the other end of a connection, "" if none: by its
// address, or where all have the same, by whose socket it is.
func (f *Fleet) dialer(remote net.Addr) string {
	at := remote.(*net.TCPAddr)
	if f.yard != nil {
		return f.at(at.IP)
	}
	return f.holder(at.Port)
}

// at names the node with an address of its own.
func (f *Fleet) at(addr net.IP) string {
	for _, n := range f.List() {
		if host, _, _ := net.SplitHostPort(n.Gossip); host == addr.String() {
			return n.Name
		}
	}
	return ""
}

// holder names the node that holds the local end of a loopback connection.
func (f *Fleet) holder(localPort int) string {
	pids := make(map[int]string)
	for _, n := range f.List() {
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

// sender names the node that sends packets from an address, "" if none: memberlist
// sends from where it listens.
func (f *Fleet) sender(remote net.Addr) string {
	for _, n := range f.List() {
		if n.Gossip == remote.String() {
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
	for _, p := range planes {
		g := f.links.gate(from, to, p)
		writes, packets = writes+g.writes.Load(), packets+g.packets.Load()
	}
	return writes, packets, nil
}
