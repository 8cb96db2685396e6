package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// listenPackets relays packets to addr on to target, the gossip port of node to.
// sender names the node that a packet comes from, "" if none. What comes while a
// direction is cut is dropped, as by a cable that is pulled.
func (l *links) listenPackets(addr, target, to string, sender func(net.Addr) string) error {
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		return fmt.Errorf("relay before node %s: %w", to, err)
	}
	dest, err := net.ResolveUDPAddr("udp", target)
	if err != nil {
		_ = conn.Close()
		return fmt.Errorf("relay before node %s: %w", to, err)
	}
	context.AfterFunc(l.ctx, func() { _ = conn.Close() })
	l.wg.Go(func() {
		for buf := make([]byte, 64<<10); ; {
			n, src, err := conn.ReadFrom(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue // a node that is down: the kernel says so at the next read
			}
			from := sender(src)
			if from == "" {
				continue
			}
			if g := l.gate(from, to, GossipPlane); g.isOpen() {
				g.packets.Add(1)
				pass(conn, dest, buf[:n], g.shape.Load())
			}
		}
	})
	return nil
}

// pass sends a packet, and its copies, when they are due.
func pass(conn net.PacketConn, dest net.Addr, packet []byte, s *Shape) {
	if s == nil {
		_, _ = conn.WriteTo(packet, dest)
		return
	}
	if s.drops() {
		return
	}
	packet = bytes.Clone(packet)
	due := s.due(time.Now())
	for _, at := range append(s.copies(due), due) {
		time.AfterFunc(time.Until(at), func() { _, _ = conn.WriteTo(packet, dest) })
	}
}
