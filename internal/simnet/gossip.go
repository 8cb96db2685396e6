package simnet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// packetBacklog bounds the packets that wait to be read; more are lost, as UDP
// loses them.
const packetBacklog = 256

// gossip is a memberlist.Transport on one port of a host: packets and streams.
type gossip struct {
	h       *Host
	port    int
	lis     net.Listener
	packets chan *memberlist.Packet
	streams chan net.Conn
	done    chan struct{}
	accept  sync.WaitGroup // the one goroutine that moves connections to streams

	closed bool // guarded by n.mu
}

// Gossip opens a memberlist transport on a port (both packets and streams), to be
// set as memberlist.Config.Transport. Shutdown closes it. Members are reached by
// IP (Network.IP); memberlist would resolve a name by real DNS.
func (h *Host) Gossip(port int) (memberlist.Transport, error) {
	lis, err := h.Listen(string(join(h.h.name, port)))
	if err != nil {
		return nil, err
	}
	g := &gossip{
		h: h, port: lis.(*listener).port, lis: lis,
		packets: make(chan *memberlist.Packet, packetBacklog),
		streams: make(chan net.Conn),
		done:    make(chan struct{}),
	}
	h.n.mu.Lock()
	h.h.gossip[g.port] = g
	h.n.mu.Unlock()
	g.accept.Go(g.run)
	return g, nil
}

// run hands accepted connections on until the listener closes.
func (g *gossip) run() {
	for {
		c, err := g.lis.Accept()
		if err != nil {
			return
		}
		select {
		case g.streams <- c:
		case <-g.done:
			c.Close()
			return
		}
	}
}

// FinalAdvertiseAddr returns the host's made-up IP and the port.
func (g *gossip) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return g.h.h.ip, g.port, nil
}

// WriteTo sends one packet; whether it arrives nobody learns.
func (g *gossip) WriteTo(b []byte, addr string) (time.Time, error) {
	name, port, err := split(addr, "")
	if err != nil {
		return time.Time{}, err
	}
	n := g.h.n
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if g.closed || !g.h.alive() {
		return now, fmt.Errorf("send to %s: %w", addr, net.ErrClosed)
	}
	to := n.lookup(name)
	if to == nil {
		return now, nil
	}
	p := n.path(g.h.h, to)
	if n.lost(p) || p.blocked() {
		return now, nil
	}
	packet := &memberlist.Packet{Buf: append([]byte(nil), b...), From: join(g.h.h.ip.String(), g.port)}
	p.send(packet, port, p.delay+p.varied("packet", p.packets))
	if p.doubled > 0 && p.chance("doubled", p.packets) < p.doubled {
		again := *packet
		again.Buf = append([]byte(nil), b...)
		p.send(&again, port, p.delay+p.varied("copy", p.packets))
	}
	return now, nil
}

// send delivers a packet after d, if nothing is in its way by then. n.mu is held.
func (p *path) send(packet *memberlist.Packet, port int, d time.Duration) {
	if d == 0 {
		p.deliver(packet, port)
		return
	}
	time.AfterFunc(d, func() {
		p.n.mu.Lock()
		defer p.n.mu.Unlock()
		if !p.blocked() {
			p.deliver(packet, port)
		}
	})
}

// deliver puts a packet into the queue of the port, if there is one with room.
// n.mu is held.
func (p *path) deliver(packet *memberlist.Packet, port int) {
	g := p.to.gossip[port]
	if g == nil {
		return
	}
	packet.Timestamp = time.Now()
	select {
	case g.packets <- packet:
	default:
	}
}

func (g *gossip) PacketCh() <-chan *memberlist.Packet { return g.packets }
func (g *gossip) StreamCh() <-chan net.Conn           { return g.streams }

// DialTimeout opens a stream to another member.
func (g *gossip) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return g.h.Dial(ctx, addr)
}

// Shutdown closes the port and waits for the transport's goroutine. Calling it
// again does nothing.
func (g *gossip) Shutdown() error {
	g.h.n.mu.Lock()
	g.shut()
	g.h.n.mu.Unlock()
	g.lis.Close()
	g.accept.Wait()
	return nil
}

// shut takes the port out of the network. n.mu is held.
func (g *gossip) shut() {
	if g.closed {
		return
	}
	g.closed = true
	close(g.done)
	if g.h.h.gossip[g.port] == g {
		delete(g.h.h.gossip, g.port)
	}
}
