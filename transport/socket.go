package transport

import (
	"bufio"
	"net"
	"sync/atomic"
)

// socket is a connection with a buffered reader that notes when bytes came.
type socket struct {
	net.Conn
	r     *bufio.Reader // reads this socket
	p     *Peers
	heard atomic.Int64 // Peers.now
}

func (p *Peers) socket(nc net.Conn) *socket {
	s := &socket{Conn: nc, p: p}
	s.r = bufio.NewReaderSize(s, readBuffer)
	s.heard.Store(p.now())
	return s
}

// Read reads from the connection; everybody else reads s.r.
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if n > 0 {
		s.heard.Store(s.p.now())
	}
	return n, err
}
