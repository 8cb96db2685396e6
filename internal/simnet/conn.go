package simnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// pipe is one direction of a stream. n.mu guards it.
type pipe struct {
	path  *path
	queue []segment // what is on its way is behind head
	head  int
	spare []byte    // of a segment that was read, to be used again
	size  int       // bytes on their way
	last  time.Time // arrival of the newest segment: later ones do not overtake it
	end   error     // after the queue: io.EOF or a reset; nil while open
	endAt time.Time
	gone  bool // the reading end is closed: further bytes are lost
}

// segment is what one Write put on its way.
type segment struct {
	data []byte
	read int       // bytes of it
	at   time.Time // when it arrives
}

// put sends a copy of b, and says whether nothing else is on its way.
func (p *pipe) put(b []byte) (alone bool) {
	if p.head > len(p.queue)/2 && len(p.queue) == cap(p.queue) {
		n := copy(p.queue, p.queue[p.head:])
		clear(p.queue[n:])
		p.queue, p.head = p.queue[:n], 0
	}
	p.queue = append(p.queue, segment{data: append(p.spare[:0], b...), at: p.arrival()})
	p.spare = nil
	p.size += len(b)
	return len(p.queue)-p.head == 1
}

// arrival returns when what is sent now arrives, keeping the order.
func (p *pipe) arrival() time.Time {
	if at := time.Now().Add(p.path.delay + p.path.late()); at.After(p.last) {
		p.last = at
	}
	return p.last
}

// take copies what has arrived into b. If nothing has, it returns when the next
// thing will (zero: not known), or the end of the stream.
func (p *pipe) take(b []byte) (n int, next time.Time, err error) {
	if p.path.blocked() {
		return 0, time.Time{}, nil
	}
	now := time.Now()
	for n < len(b) && p.head < len(p.queue) {
		s := &p.queue[p.head]
		if s.at.After(now) {
			break
		}
		k := copy(b[n:], s.data[s.read:])
		n += k
		if s.read += k; s.read == len(s.data) {
			p.spare, *s = s.data, segment{}
			p.head++
		}
	}
	if p.head == len(p.queue) {
		p.queue, p.head = p.queue[:0], 0
	}
	p.size -= n
	switch {
	case n > 0:
		return n, time.Time{}, nil
	case p.head < len(p.queue):
		return 0, p.queue[p.head].at, nil
	case p.end != nil && p.endAt.After(now):
		return 0, p.endAt, nil
	default:
		return 0, time.Time{}, p.end
	}
}

// ended reports that the end has arrived, whatever is still unread.
func (p *pipe) ended() bool {
	return p.end != nil && !p.path.blocked() && !p.endAt.After(time.Now())
}

// reset reports that the end has arrived and is none that the other side wanted.
func (p *pipe) reset() bool { return p.ended() && p.end != io.EOF }

// conn is one end of a stream. n.mu guards its fields.
type conn struct {
	n             *Network
	h             *host
	peer          *conn
	local, remote Addr
	in, out       *pipe
	err           error // this end is closed or broken
	rd, wd        time.Time
	reads, writes signal // to a waiting Read, a waiting Write: look again
}

// Read returns bytes that have arrived, io.EOF after the other end closed, or
// ECONNRESET after its host died.
func (c *conn) Read(b []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for {
		if err := c.usable(c.rd); err != nil {
			return 0, c.wrap("read", err)
		}
		if len(b) == 0 {
			return 0, nil
		}
		n, next, err := c.in.take(b)
		if n > 0 {
			c.peer.writes.give() // there is room again
			return n, nil
		}
		if err == io.EOF {
			return 0, io.EOF
		}
		if err != nil {
			return 0, c.wrap("read", err)
		}
		c.reads.wait(&c.n.mu, earlier(next, c.rd))
	}
}

// Write hands all of b to the network, waiting while bufferSize bytes are
// unread. It fails with EPIPE when the other end is closed and word of that has come
// here, as a Read would show too: what fails one way alone is more than a host can see.
func (c *conn) Write(b []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.out.path.writes++
	done := 0
	for {
		if err := c.usable(c.wd); err != nil {
			return done, c.wrap("write", err)
		}
		if c.in.reset() {
			return done, c.wrap("write", syscall.ECONNRESET)
		}
		if c.out.gone {
			if c.in.ended() {
				return done, c.wrap("write", syscall.EPIPE)
			}
			return len(b), nil // into the void: this end does not know yet
		}
		if room := bufferSize - c.out.size; room > 0 && done < len(b) {
			k := min(room, len(b)-done)
			if c.out.put(b[done : done+k]) { // else the reader knows when to look
				c.peer.reads.giveAt(c.out.last)
			}
			done += k
		}
		if done == len(b) {
			return done, nil
		}
		c.writes.wait(&c.n.mu, c.wd)
	}
}

// usable reports why a Read or Write with this deadline must fail now.
func (c *conn) usable(deadline time.Time) error {
	if c.err != nil {
		return c.err
	}
	if !deadline.IsZero() && !time.Now().Before(deadline) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// notify wakes a waiting Read and Write of this end. n.mu is held.
func (c *conn) notify() {
	c.reads.give()
	c.writes.give()
}

// Close ends the stream: the other end reads what was written, then io.EOF.
// Reads and writes that wait at this end return net.ErrClosed.
func (c *conn) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.err == net.ErrClosed {
		return c.wrap("close", net.ErrClosed)
	}
	c.die(net.ErrClosed, false)
	return nil
}

// die breaks this end with err, and tells the other end by a reset or, if not
// reset, by the end of the stream. n.mu is held.
func (c *conn) die(err error, reset bool) {
	if c.err == nil {
		c.out.end, c.out.endAt = io.EOF, c.out.arrival()
		if reset {
			c.out.end = syscall.ECONNRESET
		}
	}
	c.err = err
	c.in.gone = true
	c.in.queue, c.in.head, c.in.spare, c.in.size = nil, 0, nil, 0
	delete(c.h.conns, c)
	c.notify()
	c.peer.notify()
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines; a time passed wakes who waits.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets the deadline of present and later reads.
func (c *conn) SetReadDeadline(t time.Time) error { return c.deadline(&c.rd, &c.reads, t) }

// SetWriteDeadline sets the deadline of present and later writes.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.deadline(&c.wd, &c.writes, t) }

// deadline sets one, and has who waits look at it.
func (c *conn) deadline(of *time.Time, waits *signal, t time.Time) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.err != nil {
		return c.wrap("set deadline", c.err)
	}
	*of = t
	waits.give()
	return nil
}

func (c *conn) wrap(op string, err error) error {
	return &net.OpError{Op: op, Net: "sim", Source: c.local, Addr: c.remote, Err: err}
}

// earlier returns the earlier of two moments, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
