package simnet

import (
	"math"
	"syscall"
	"time"
)

// Seed makes what is lost, late or doubled depend on seed too. Each packet and each
// write is judged by the seed, the two names, what may become of it and its number
// on its path: never by a stream of chance that all share, so that one more message
// somewhere changes nothing elsewhere.
func (n *Network) Seed(seed uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seed = seed
}

// Jitter makes each packet, and each write to a stream, up to most later than Delay
// says. Packets may overtake each other; bytes of a stream never do.
func (n *Network) Jitter(from, to string, most time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.path(n.host(from), n.host(to)).jitter = most
}

// Double delivers a share of the packets (gossip, not streams) twice.
func (n *Network) Double(from, to string, share float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.path(n.host(from), n.host(to)).doubled = share
}

// Resend holds a share of the writes to streams up for d, and with it what is
// written behind them: what a lost segment does to TCP.
func (n *Network) Resend(from, to string, share float64, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.path(n.host(from), n.host(to))
	p.resent, p.resend = share, d
}

// Reset breaks every stream between two hosts: both ends see ECONNRESET, at once.
func (n *Network) Reset(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, o := n.host(a), n.host(b)
	for c := range h.conns {
		if c.peer.h == o {
			c.die(syscall.ECONNRESET, true)
			c.peer.die(syscall.ECONNRESET, true)
		}
	}
}

// late is how much later than usual the next write arrives. n.mu is held.
func (p *path) late() time.Duration {
	number := uint64(p.writes)
	d := p.varied("write", number)
	if p.resent > 0 && p.chance("resent", number) < p.resent {
		d += p.resend
	}
	return d
}

// varied is a part of the jitter. n.mu is held.
func (p *path) varied(kind string, number uint64) time.Duration {
	if p.jitter == 0 {
		return 0
	}
	return time.Duration(p.chance(kind, number) * float64(p.jitter))
}

// chance is a number from 0 to 1 that depends on its arguments, the path and the
// seed alone. n.mu is held.
func (p *path) chance(kind string, number uint64) float64 {
	x := mix(p.n.seed ^ hash(kind))
	x = mix(mix(x ^ hash(p.from.name) ^ mix(hash(p.to.name)^mix(number))))
	return float64(x) / math.MaxUint64
}
