package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// pair is one direction of one link.
type pair struct{ from, to string }

// links are the relays of a fleet and what they let through. A cut direction
// holds its bytes back; nothing is lost, duplicated or closed by it.
type links struct {
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup // all accept loops and pumps

	mu    sync.Mutex // guards gates
	gates map[pair]*gate
}

func newLinks() *links {
	ctx, stop := context.WithCancel(context.Background())
	return &links{ctx: ctx, stop: stop, gates: map[pair]*gate{}}
}

// gate is open or shut, and counts what comes to it.
type gate struct {
	writes  atomic.Uint64 // pieces of streams, each of one write or more
	packets atomic.Uint64

	mu   sync.Mutex    // guards open
	open chan struct{} // closed while the gate is open
}

// gate returns the gate of one direction, made open at its first use.
func (l *links) gate(from, to string) *gate {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gates[pair{from, to}]
	if g == nil {
		g = &gate{open: make(chan struct{})}
		close(g.open)
		l.gates[pair{from, to}] = g
	}
	return g
}

// set opens or shuts one direction; setting it twice does nothing.
func (l *links) set(from, to string, open bool) {
	g := l.gate(from, to)
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		if !open {
			g.open = make(chan struct{})
		}
	default:
		if open {
			close(g.open)
		}
	}
}

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isOpen says whether the gate is open now.
func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		return true
	default:
		return false
	}
}

// listen relays connections to addr on to target, the peer port of node to.
// dialer names the node at the other end by its local port.
func (l *links) listen(addr, target, to string, dialer func(port int) string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("relay before node %s: %w", to, err)
	}
	context.AfterFunc(l.ctx, func() { _ = ln.Close() })
	l.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				l.wg.Go(func() { l.relay(conn.(*net.TCPConn), target, to, dialer) })
			}
		}
	})
	return nil
}

// relay carries one connection until either end closes.
func (l *links) relay(in *net.TCPConn, target, to string, dialer func(int) string) {
	defer in.Close()
	_, port, _ := net.SplitHostPort(in.RemoteAddr().String())
	p, _ := strconv.Atoi(port)
	from := dialer(p)
	if from == "" || l.gate(from, to).pass(l.ctx) != nil {
		return // nobody of ours: refuse rather than carry what cannot be cut
	}
	conn, err := net.DialTimeout("tcp", target, time.Second)
	if err != nil {
		return
	}
	out := conn.(*net.TCPConn)
	defer out.Close()
	stop := context.AfterFunc(l.ctx, func() { _ = in.Close(); _ = out.Close() })
	defer stop()

	var both sync.WaitGroup
	both.Go(func() { l.pump(out, in, l.gate(from, to)) })
	both.Go(func() { l.pump(in, out, l.gate(to, from)) })
	both.Wait()
}

// pump copies src to dst through a gate. When src ends it closes both, once the
// gate lets the news through.
func (l *links) pump(dst, src *net.TCPConn, g *gate) {
	defer dst.Close()
	defer src.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			g.writes.Add(1)
		}
		if g.pass(l.ctx) != nil {
			return
		}
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = dst.SetLinger(0) // pass a reset on as a reset
			}
			return
		}
	}
}

// close ends all relays and waits for them.
func (l *links) close() {
	l.stop()
	l.wg.Wait()
}
