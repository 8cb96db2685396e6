package transport

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/peer"
)

// conns are the connections of callers, by remote address. grpc has no way to
// end one stream whose peer takes nothing: its status waits behind the data. So
// the connection is cut.
type conns struct {
	mu   sync.Mutex // guards open
	open map[string]net.Conn
}

// Source is the connection that a call or a stream of ctx came by, to be compared;
// nil if there is none.
func Source(ctx context.Context) any {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr
	}
	return nil
}

// Serve is grpc's, over connections that can be cut.
func (s *Server) Serve(l net.Listener) error { return s.Server.Serve(&tracked{l, &s.conns}) }

// cut closes the connection that the caller behind ctx uses.
func (s *Server) cut(ctx context.Context) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return
	}
	s.conns.mu.Lock()
	c := s.conns.open[p.Addr.String()]
	s.conns.mu.Unlock()
	if c != nil {
		_ = c.Close() // it may be closed already
	}
}

// tracked is a listener that notes its connections.
type tracked struct {
	net.Listener
	conns *conns
}

func (t *tracked) Accept() (net.Conn, error) {
	c, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	key := c.RemoteAddr().String()
	t.conns.mu.Lock()
	defer t.conns.mu.Unlock()
	if t.conns.open == nil {
		t.conns.open = make(map[string]net.Conn)
	}
	t.conns.open[key] = c
	return &trackedConn{Conn: c, conns: t.conns, key: key}, nil
}

// trackedConn forgets itself when it is closed.
type trackedConn struct {
	net.Conn
	conns *conns
	key   string
}

func (c *trackedConn) Close() error {
	c.conns.mu.Lock()
	if c.conns.open[c.key] == c.Conn {
		delete(c.conns.open, c.key)
	}
	c.conns.mu.Unlock()
	return c.Conn.Close()
}
