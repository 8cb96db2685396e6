package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// listenPackets relays packets to addr on to target, the gossip port of node to.
// sender names the node that a packet comes from by its port. What comes while a
// direction is cut is dropped, as by a cable that is pulled.
func (l *links) listenPackets(addr, target, to string, sender func(port int) string) error {
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
			from := sender(src.(*net.UDPAddr).Port)
			if from == "" {
				continue
			}
			if g := l.gate(from, to); g.isOpen() {
				g.packets.Add(1)
				_, _ = conn.WriteTo(buf[:n], dest)
			}
		}
	})
	return nil
}
