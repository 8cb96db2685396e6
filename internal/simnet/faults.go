package simnet

import (
	"syscall"
	"time"
)

// Cut stops everything on its way from one host to the other; the opposite
// direction goes on. Packets are lost. Bytes of streams wait, as TCP would send
// them again, until Heal. Dials between the two wait, whichever side dials.
func (n *Network) Cut(from, to string) { n.setCut(from, to, true) }

// Heal undoes Cut of this direction.
func (n *Network) Heal(from, to string) { n.setCut(from, to, false) }

func (n *Network) setCut(from, to string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.path(n.host(from), n.host(to)).cut = cut
	n.changed()
}

// Isolate cuts both directions between the host and every other host known now.
func (n *Network) Isolate(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.host(name)
	for _, o := range n.hosts {
		if o != h {
			n.path(h, o).cut, n.path(o, h).cut = true, true
		}
	}
	n.changed()
}

// HealAll undoes every Cut and Isolate. Delays, losses and dead or frozen hosts
// stay as they are.
func (n *Network) HealAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.paths {
		p.cut = false
	}
	n.changed()
}

// Delay makes bytes and packets sent from now on take d from one host to the
// other. Streams stay in order.
func (n *Network) Delay(from, to string, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.path(n.host(from), n.host(to)).delay = d
}

// Drop loses a share of the packets (gossip, not streams) from one host to the
// other: 0 none, 1 all. Which ones depends on nothing but the seed, the two names
// and the number of the packet on this path.
func (n *Network) Drop(from, to string, share float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.path(n.host(from), n.host(to)).loss = share
}

// lost decides whether the next packet of p is lost. n.mu is held.
func (n *Network) lost(p *path) bool {
	p.packets++
	if p.loss <= 0 {
		return false
	}
	return p.chance("lost", p.packets) < p.loss
}

// Kill ends the host's present life, as the death of its process would: its
// listeners close, both ends of its streams break with a reset (the far end
// sees it when the path is not cut) and its handles fail from now on.
func (n *Network) Kill(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.host(name)
	h.dead, h.frozen = true, false
	for _, l := range h.ports {
		l.shut()
	}
	for _, g := range h.gossip {
		g.shut()
	}
	for c := range h.conns {
		c.die(syscall.ECONNRESET, true)
	}
	n.changed()
}

// Revive begins a new life of a killed host, without listeners; take a new
// handle with Host. It does nothing to a living host.
func (n *Network) Revive(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.host(name); h.dead {
		h.dead = false
		h.life++
	}
	n.changed()
}

// Freeze models a stopped process (SIGSTOP) as others see it: nothing it sends
// leaves and nothing reaches it, but the system still completes connections to
// its listeners. Packets to and from it are lost; bytes of streams wait for Thaw.
// Its own goroutines go on running: the network cannot stop them.
func (n *Network) Freeze(name string) { n.setFrozen(name, true) }

// Thaw undoes Freeze.
func (n *Network) Thaw(name string) { n.setFrozen(name, false) }

func (n *Network) setFrozen(name string, frozen bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.host(name)
	h.frozen = frozen && !h.dead
	n.changed()
}

// changed wakes everybody, because a fault came or went. n.mu is held.
func (n *Network) changed() {
	close(n.wake)
	n.wake = make(chan struct{})
	for _, h := range n.hosts {
		for c := range h.conns {
			c.notify()
		}
		for _, l := range h.ports {
			l.notify()
		}
	}
}

// hash is a 64-bit FNV-1a: the same in every process, unlike maphash.
func hash(s string) uint64 {
	x := uint64(14695981039346656037)
	for i := range len(s) {
		x = (x ^ uint64(s[i])) * 1099511628211
	}
	return x
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
