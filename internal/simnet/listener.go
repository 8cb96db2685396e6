package simnet

import "net"

// listener is one open port of a host. n.mu guards its fields.
type listener struct {
	h      *Host
	port   int
	addr   Addr
	queue  []*conn // made, not yet accepted
	closed bool
	wake   chan struct{} // closed and replaced when Accept should look again
}

// Accept waits for a connection. While the host is frozen none is handed out.
func (l *listener) Accept() (net.Conn, error) {
	l.h.n.mu.Lock()
	defer l.h.n.mu.Unlock()
	for {
		switch {
		case l.closed:
			return nil, opError("accept", string(l.addr), net.ErrClosed)
		case len(l.queue) > 0 && !l.h.h.frozen:
			c := l.queue[0]
			l.queue = l.queue[1:]
			return c, nil
		}
		wake := l.wake
		l.h.n.mu.Unlock()
		<-wake
		l.h.n.mu.Lock()
	}
}

// Close frees the port and breaks connections nobody has accepted.
func (l *listener) Close() error {
	l.h.n.mu.Lock()
	defer l.h.n.mu.Unlock()
	l.shut()
	return nil
}

// Addr returns "host:port".
func (l *listener) Addr() net.Addr { return l.addr }

// shut closes the listener. n.mu is held.
func (l *listener) shut() {
	if l.closed {
		return
	}
	l.closed = true
	delete(l.h.h.ports, l.port)
	for _, c := range l.queue {
		c.die(net.ErrClosed, true)
	}
	l.queue = nil
	l.notify()
}

// notify wakes Accept. n.mu is held.
func (l *listener) notify() {
	close(l.wake)
	l.wake = make(chan struct{})
}

// connect queues the far end of a new stream and returns the near end. n.mu is held.
func (l *listener) connect(from *host, local Addr) *conn {
	n, to := l.h.n, l.h.h
	there, back := &pipe{path: n.path(from, to)}, &pipe{path: n.path(to, from)}
	near := &conn{n: n, h: from, local: local, remote: l.addr, in: back, out: there}
	far := &conn{n: n, h: to, local: l.addr, remote: local, in: there, out: back}
	near.peer, far.peer = far, near
	from.conns[near] = struct{}{}
	to.conns[far] = struct{}{}
	l.queue = append(l.queue, far)
	l.notify()
	return near
}
