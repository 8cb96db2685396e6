package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// pair is one direction of one link.
type pair struct{ from, to string }

// lane is one direction of one link on one plane.
type lane struct {
	pair
	plane Plane
}

// links are the relays of a fleet and what they let through. A cut direction
// holds its bytes back; nothing is lost or closed by it.
type links struct {
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup // all accept loops and pumps

	mu    sync.Mutex // guards gates
	gates map[lane]*gate
}

func newLinks() *links {
	ctx, stop := context.WithCancel(context.Background())
	return &links{ctx: ctx, stop: stop, gates: map[lane]*gate{}}
}

// gate is open or shut, counts what comes to it, and says how it is passed on.
type gate struct {
	writes  atomic.Uint64 // pieces of streams, each of one write or more
	packets atomic.Uint64
	shape   atomic.Pointer[Shape] // nil: as it comes

	mu   sync.Mutex    // guards open
	open chan struct{} // closed while the gate is open
}

// gate returns the gate of one lane, made open at its first use.
func (l *links) gate(from, to string, plane Plane) *gate {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := lane{pair{from, to}, plane}
	g := l.gates[at]
	if g == nil {
		g = &gate{open: make(chan struct{})}
		close(g.open)
		l.gates[at] = g
	}
	return g
}

// set opens or shuts one direction of a link, on all planes.
func (l *links) set(from, to string, open bool) {
	for _, p := range planes {
		l.gate(from, to, p).set(open)
	}
}

// set opens or shuts the gate; doing so twice does nothing.
func (g *gate) set(open bool) {
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

// listen relays connections to addr on to target, a port of node to on a plane.
// dialer names the node at the other end of a connection, "" if none.
func (l *links) listen(addr, target, to string, plane Plane, dialer func(net.Addr) string) error {
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
				l.wg.Go(func() { l.relay(conn.(*net.TCPConn), target, to, plane, dialer) })
			}
		}
	})
	return nil
}

// relay carries one connection until either end closes.
func (l *links) relay(in *net.TCPConn, target, to string, plane Plane, dialer func(net.Addr) string) {
	defer in.Close()
	from := dialer(in.RemoteAddr())
	if from == "" || l.gate(from, to, plane).pass(l.ctx) != nil {
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

	var link atomic.Bool // frames follow the first messages
	there := &pump{dst: out, src: in, gate: l.gate(from, to, plane)}
	back := &pump{dst: in, src: out, gate: l.gate(to, from, plane)}
	if plane == PeerPlane {
		there.split.link, back.split.link = link.Load, link.Load
		there.split.hello = func(b []byte) { link.Store(opensLink(b)) }
	}
	var both sync.WaitGroup
	both.Go(func() { there.run(l.ctx) })
	both.Go(func() { back.run(l.ctx) })
	both.Wait()
}

// close ends all relays and waits for them.
func (l *links) close() {
	l.stop()
	l.wg.Wait()
}
