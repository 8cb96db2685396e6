package transport

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A connection begins with one message from the dialling side, the hello, and
// one back, the welcome. Both are a uint16 length and that many bytes.

const (
	magic        = "RLPEER"
	helloVersion = 1
	maxHello     = 4 << 10
)

// purpose says what a connection is for.
type purpose uint8

const (
	forLink     purpose = 1
	forSnapshot purpose = 2
	forBulk     purpose = 3 // see Peers.CallBulk
)

// hello introduces the node that dials.
type hello struct {
	version uint64
	purpose purpose
	cluster string
	from    From
	target  string // the node meant
	id      uint64 // of this connection, random
	seen    uint64 // the newest connection between the two that the dialling side took for made
}

// welcome is the answer: refusal is empty if the connection is accepted.
type welcome struct {
	refusal string
	cluster string
	from    From
}

// errRefused is wrapped by the errors of connections that the other side refused.
var errRefused = errors.New("refused")

func (h hello) append(b []byte) []byte {
	return message(b, func(b []byte) []byte {
		b = append(b, magic...)
		b = binary.AppendUvarint(b, helloVersion)
		b = append(b, byte(h.purpose))
		b = appendBytes(b, h.cluster)
		b = appendBytes(b, h.from.Node)
		b = appendBytes(b, h.from.Incarnation)
		b = appendBytes(b, h.target)
		b = binary.LittleEndian.AppendUint64(b, h.id)
		return binary.LittleEndian.AppendUint64(b, h.seen)
	})
}

// parseHello reads a hello. Of another version only the version is filled in.
func parseHello(b []byte) (h hello, err error) {
	d := decoder{b: b}
	for i := range len(magic) {
		if d.byte() != magic[i] {
			return h, errors.New("not a peer of ours")
		}
	}
	if h.version = d.uint(); h.version != helloVersion {
		return h, nil
	}
	h.purpose = purpose(d.byte())
	h.cluster = d.name()
	h.from.Node, h.from.Incarnation = d.name(), d.name()
	h.target = d.name()
	h.id, h.seen = d.fixed(), d.fixed()
	if !d.end() {
		return h, errors.New("malformed hello")
	}
	return h, nil
}

func (w welcome) append(b []byte) []byte {
	return message(b, func(b []byte) []byte {
		b = append(b, helloVersion)
		b = appendBytes(b, w.refusal)
		b = appendBytes(b, w.cluster)
		b = appendBytes(b, w.from.Node)
		return appendBytes(b, w.from.Incarnation)
	})
}

func parseWelcome(b []byte) (w welcome, err error) {
	d := decoder{b: b}
	if v := d.byte(); v != helloVersion && !d.bad {
		return w, fmt.Errorf("speaks version %d, this node %d", v, helloVersion)
	}
	w = welcome{refusal: d.name(), cluster: d.name(), from: From{Node: d.name(), Incarnation: d.name()}}
	if !d.end() {
		return w, errors.New("malformed welcome")
	}
	return w, nil
}

func (d *decoder) fixed() uint64 {
	if len(d.b) < 8 {
		d.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(d.b)
	d.b = d.b[8:]
	return v
}

// message appends a uint16 length and what encode appends.
func message(b []byte, encode func([]byte) []byte) []byte {
	start := len(b)
	b = encode(append(b, 0, 0))
	binary.LittleEndian.PutUint16(b[start:], uint16(len(b)-start-2))
	return b
}

// readMessage reads one message of at most maxHello bytes.
func readMessage(r io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint16(head[:])
	if n > maxHello {
		return nil, fmt.Errorf("hello of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

// check says why a hello cannot be accepted, whatever the state of the link; ""
// if it can.
//
// Without Config.Secure anyone can claim any name here, so only names that Resolve knows get further:
// whoever else connects leaves no trace. A node that is about to join is no
// exception; it asks by gRPC, and needs no link before the others know it. But
// the cluster id may be empty, even where this node knows its own: a node that
// was just let in learns the id from its control replica, which is fed over
// exactly such a link. The id keeps clusters apart that meet by accident. It is
// no secret and proves nothing.
func (p *Peers) check(h hello) string {
	mine := p.cluster()
	switch {
	case h.version != helloVersion:
		return fmt.Sprintf("node %s speaks version %d of the peer protocol, you speak %d", p.cfg.Name, helloVersion, h.version)
	case h.target != p.cfg.Name:
		return fmt.Sprintf("this is node %s, not %s", p.cfg.Name, h.target)
	case h.from.Node == p.cfg.Name:
		return fmt.Sprintf("this node is called %s too", p.cfg.Name)
	case !p.knows(h.from.Node):
		return fmt.Sprintf("node %s knows no node %s", p.cfg.Name, h.from.Node)
	case differ(mine, h.cluster):
		return fmt.Sprintf("node %s belongs to cluster %s, you to %s", p.cfg.Name, mine, h.cluster)
	}
	return ""
}

// differ reports whether two cluster ids are known and not the same.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// greet says hello on a connection this node dialled, and waits for the welcome.
// The connection's deadline is set by the caller.
func (p *Peers) greet(nc *socket, h hello) (welcome, error) {
	if _, err := nc.Write(h.append(nil)); err != nil {
		return welcome{}, err
	}
	b, err := readMessage(nc.r)
	if err != nil {
		return welcome{}, fmt.Errorf("no welcome: %w", err)
	}
	w, err := parseWelcome(b)
	switch {
	case err != nil:
		return w, err
	case w.refusal == errCrossed.Error():
		return w, errCrossed
	case w.refusal != "":
		return w, fmt.Errorf("%w: %s", errRefused, w.refusal)
	case w.from.Node != h.target:
		return w, fmt.Errorf("node %s answers in place of %s", w.from.Node, h.target)
	case differ(w.cluster, h.cluster):
		return w, fmt.Errorf("node %s belongs to cluster %s, this node to %s", w.from.Node, w.cluster, h.cluster)
	}
	return w, nil
}

// admit handles a connection somebody dialled, until it ends.
func (p *Peers) admit(ctx context.Context, accepted net.Conn) {
	plain, err := p.encrypted(ctx, accepted, func(nc net.Conn) *tls.Conn { return tls.Server(nc, p.cfg.Secure.Server()) })
	if err != nil {
		<-p.greeting
		p.warn("peer: connection refused", "address", accepted.RemoteAddr(), "error", err)
		return
	}
	nc := p.socket(plain)
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	nc.SetDeadline(time.Now().Add(dialTimeout))
	b, err := readMessage(nc.r)
	<-p.greeting
	if err != nil {
		nc.Close()
		return
	}
	h, err := parseHello(b)
	if err != nil {
		p.warn("peer: connection refused", "address", nc.RemoteAddr(), "error", err)
		nc.Close()
		return
	}
	refusal := p.check(h)
	if refusal == "" {
		refusal = p.vouched(nc, h.from.Node)
	}
	switch {
	case refusal != "":
		p.complain(h, nc, refusal)
	case h.purpose == forLink:
		refusal = p.accepted(h, nc) // if "", it has served the connection
	case h.purpose == forSnapshot:
		p.receiveSnapshot(h, nc)
	case h.purpose == forBulk:
		p.serveBulk(ctx, h, nc)
	default:
		refusal = "unknown purpose"
	}
	if refusal != "" {
		_, _ = nc.Write(p.welcome(refusal).append(nil)) // a courtesy: it is closed anyway
	}
	nc.Close()
}

// welcome returns this node's answer to a hello.
func (p *Peers) welcome(refusal string) welcome {
	return welcome{refusal: refusal, cluster: p.cluster(), from: p.self()}
}

// knows reports whether Resolve knows a node.
func (p *Peers) knows(node string) bool {
	_, ok := p.cfg.Resolve(node)
	return ok
}

// complain logs a refusal: once for the same refusal of the same node, and few
// lines whatever names are claimed.
func (p *Peers) complain(h hello, nc net.Conn, refusal string) {
	p.mu.RLock()
	told := p.refused[h.from.Node] == refusal
	p.mu.RUnlock()
	if told || !p.warn("peer: node refused", "node", h.from.Node, "incarnation", h.from.Incarnation,
		"address", nc.RemoteAddr(), "told", refusal) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) >= maxRefused {
		clear(p.refused)
	}
	p.refused[h.from.Node] = refusal
}
