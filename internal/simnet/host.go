package simnet

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"time"
)

// backlog bounds the connections that wait for Accept.
const backlog = 128

// Host is a handle to one life of one host; see Network.Host.
type Host struct {
	n    *Network
	h    *host
	life int
}

// Name returns the host's name.
func (h *Host) Name() string { return h.h.name }

// alive reports whether the life of this handle goes on. n.mu is held.
func (h *Host) alive() bool { return !h.h.dead && h.life == h.h.life }

// Listen opens a listener on this host. The address is "host:port" or ":port";
// port 0 picks a free one. A port in use gives EADDRINUSE, another host's name
// EADDRNOTAVAIL, a dead host ENETDOWN.
func (h *Host) Listen(addr string) (net.Listener, error) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	name, port, err := split(addr, h.h.name)
	if err != nil {
		return nil, opError("listen", addr, err)
	}
	if h.n.lookup(name) != h.h {
		return nil, opError("listen", addr, syscall.EADDRNOTAVAIL)
	}
	if !h.alive() {
		return nil, opError("listen", addr, syscall.ENETDOWN)
	}
	for port == 0 {
		h.h.next++
		if h.h.ports[h.h.next] == nil {
			port = h.h.next
		}
	}
	if h.h.ports[port] != nil {
		return nil, opError("listen", addr, syscall.EADDRINUSE)
	}
	l := &listener{h: h, port: port, addr: join(h.h.name, port), wake: make(chan struct{})}
	h.h.ports[port] = l
	h.n.changed()
	return l, nil
}

// Dial connects to a listener. A dead host, or one that does not listen there,
// refuses at once; an unknown name is an error at once; over a cut, in either
// direction, Dial waits until it is healed or ctx ends. A stream takes one round
// trip to be made.
func (h *Host) Dial(ctx context.Context, addr string) (net.Conn, error) {
	name, port, err := split(addr, h.h.name)
	if err != nil {
		return nil, opError("dial", addr, err)
	}
	began := time.Now()
	for {
		c, wake, until, err := h.try(name, port, began)
		if err != nil {
			return nil, opError("dial", addr, err)
		}
		if c != nil {
			return c, nil
		}
		var timeout <-chan time.Time
		if !until.IsZero() {
			t := time.NewTimer(time.Until(until))
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-ctx.Done():
			return nil, opError("dial", addr, ctx.Err())
		case <-wake:
		case <-timeout:
		}
	}
}

// try makes the connection if it can be made now; else it returns what to wait
// for: a change of the network, or a moment.
func (h *Host) try(name string, port int, began time.Time) (c net.Conn, wake chan struct{}, until time.Time, err error) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	if !h.alive() {
		return nil, nil, until, syscall.ENETDOWN
	}
	to := h.n.lookup(name)
	if to == nil {
		return nil, nil, until, fmt.Errorf("no such host %q", name)
	}
	there, back := h.n.path(h.h, to), h.n.path(to, h.h)
	if there.cut || back.cut || h.h.frozen {
		return nil, h.n.wake, until, nil
	}
	if ready := began.Add(there.delay + back.delay); time.Now().Before(ready) {
		return nil, h.n.wake, ready, nil
	}
	l := to.ports[port]
	if l == nil || len(l.queue) >= backlog {
		return nil, nil, until, syscall.ECONNREFUSED
	}
	h.h.next++
	return l.connect(h.h, join(h.h.name, h.h.next)), nil, until, nil
}

func opError(op, addr string, err error) error {
	return &net.OpError{Op: op, Net: "sim", Addr: Addr(addr), Err: err}
}
