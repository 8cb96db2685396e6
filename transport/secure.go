package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// Secure proves to nodes who the other one is. Its methods are called by several
// goroutines at once and must not block.
type Secure interface {
	// Server is for a connection that another node makes; Check says afterwards whether
	// that is the node which its hello names.
	Server() *tls.Config
	// Client is for a connection to a node: the handshake fails if somebody else answers.
	Client(node string) *tls.Config
	// Check says why the other side of a connection is not that node, by what is believed now.
	Check(state tls.ConnectionState, node string) error
}

// secured is a TLS connection that ends at once: tls.Conn would first say goodbye, for
// up to 5 s if the other side takes nothing, and whoever ends a link must not wait.
type secured struct {
	*tls.Conn
	raw net.Conn
}

// Close ends the connection. What has been written is sent, as by the plain one.
func (s *secured) Close() error { return s.raw.Close() }

// encrypted makes TLS of a connection, by this side's part of the handshake, which may
// take dialTimeout. Without Config.Secure it returns nc as it is. It closes nc if it fails.
func (p *Peers) encrypted(ctx context.Context, nc net.Conn, part func(net.Conn) *tls.Conn) (net.Conn, error) {
	if p.cfg.Secure == nil {
		return nc, nil
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	nc.SetDeadline(time.Now().Add(dialTimeout))
	s := &secured{Conn: part(nc), raw: nc}
	if err := s.Handshake(); err != nil {
		nc.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	nc.SetDeadline(time.Time{})
	return s, nil
}

// dial connects to where a node listens, and to nobody else if Config.Secure is set.
func (p *Peers) dial(ctx context.Context, node string) (*socket, error) {
	addr, ok := p.cfg.Resolve(node)
	if !ok {
		return nil, fmt.Errorf("address of node %s is not known", node)
	}
	dctx, cancel := context.WithTimeout(ctx, dialTimeout)
	nc, err := p.cfg.Network.Dial(dctx, addr)
	cancel()
	if err != nil {
		return nil, err
	}
	nc, err = p.encrypted(ctx, nc, func(nc net.Conn) *tls.Conn { return tls.Client(nc, p.cfg.Secure.Client(node)) })
	if err != nil {
		return nil, err
	}
	return p.socket(nc), nil
}

// vouched says why the other side of nc cannot be the node it claims to be; "" if it
// can, or if nobody proves anything here.
func (p *Peers) vouched(nc *socket, node string) string {
	s, ok := nc.Conn.(*secured)
	if !ok {
		return ""
	}
	if err := p.cfg.Secure.Check(s.ConnectionState(), node); err != nil {
		return fmt.Sprintf("you are not node %s: %v", node, err)
	}
	return ""
}

// doubted ends a connection that has just been installed if its certificate is not
// believed any more, and says why: the authorities may have changed between the handshake
// and now, and Recheck have passed before the link had it. No lock may be held.
func (p *Peers) doubted(c *conn) (refusal string) {
	if refusal = p.vouched(c.nc, c.l.node); refusal != "" {
		c.end(fmt.Errorf("%w: %s", errRefused, refusal))
	}
	return refusal
}

// recheckPause is between two links that Recheck ends: a leader that lost several
// followers at once would be voted out.
const recheckPause = time.Second

// Recheck ends the links to nodes that Config.Secure would not let in any more, one after
// the other, until ctx ends; they are made anew at once, with the certificates of the
// moment. It is for when the authorities that are believed have changed.
func (p *Peers) Recheck(ctx context.Context) {
	for _, l := range p.all() {
		c := l.cur.Load()
		if c == nil {
			continue
		}
		if refusal := p.vouched(c.nc, l.node); refusal != "" {
			p.log.Warn("peer: the link ends, its certificate is not believed any more", "node", l.node, "reason", refusal)
			c.end(fmt.Errorf("%w: %s", errRefused, refusal))
			p.pause(ctx, recheckPause+rand.N(recheckPause/2))
		}
	}
}
