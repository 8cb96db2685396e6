package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// conn is one connection of a link, from the welcome to the break. Whatever
// waits on it fails when it ends.
type conn struct {
	l       *link
	nc      *socket
	from    From // the other side
	id      uint64
	dialled bool // by this side
	out     outbox
	read    frameReader
	ctx     context.Context // ends with the connection; for the handlers of calls
	cancel  context.CancelFunc

	theirs atomic.Int64 // newest ping number of the other side
	echo   atomic.Int64 // newest number of mine that came back: the time I sent it; 0: none yet

	mu     sync.Mutex // guards what follows
	calls  map[uint64]*call
	number uint64 // of the newest call
	broken error

	channels []*channel // by number - 1; used by the reader only
}

// channel is a pair of replicas as the other side numbered it.
type channel struct {
	from []byte // the replica there
	to   string // the replica here
	t    *RaftTransport
}

// call is a request that waits for its answer.
type call struct {
	done chan error // capacity 1; gets exactly one value, from whoever took the call out of conn.calls

	want     kind
	at       uint64 // where its frame begins in the stream
	deadline int64  // Peers.now; 0: the caller minds it
	target   []byte // raft: the replica asked
	resp     any    // raft: the response to fill in
	body     []byte // Call: the answer
}

// newCall returns a call to be filled in.
func (p *Peers) newCall() *call {
	if k, ok := p.calls.Get().(*call); ok {
		return k
	}
	return &call{done: make(chan error, 1)}
}

// free gives a call back after its one value has been received, or when nobody
// will send it.
func (p *Peers) free(k *call) {
	*k = call{done: k.done}
	p.calls.Put(k)
}

func newConn(l *link, nc *socket, from From, id uint64, dialled bool) *conn {
	c := &conn{l: l, nc: nc, from: from, id: id, dialled: dialled, calls: map[uint64]*call{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.read.r = nc.r
	c.out = outbox{nc: nc, fail: c.end, wake: make(chan struct{}, 1), done: make(chan struct{})}
	return c
}

// serve reads until the connection ends. It runs the writer beside it.
func (c *conn) serve() {
	var writer sync.WaitGroup
	writer.Go(c.out.run)
	c.ping(nil, c.l.p.cluster())
	for {
		f, err := c.read.next()
		if err != nil {
			c.end(err)
			break
		}
		if err := c.handle(f); err != nil {
			c.l.p.warn("peer: connection given up", "node", c.l.node, "error", err)
			c.end(err)
			break
		}
	}
	writer.Wait()
}

// handle acts on one frame. An error means that the other side does not keep to
// the protocol. Nothing here waits.
func (c *conn) handle(f frame) error {
	switch f.kind {
	case kindPing:
		return c.pinged(f)
	case kindBind:
		return c.bound(f)
	case kindHeartbeat, kindAppend, kindVote, kindPreVote, kindTimeoutNow:
		return c.requested(f)
	case kindCall:
		return c.called(f)
	case kindAppended, kindVoted, kindPreVoted, kindTimedOut, kindRefused, kindAnswer, kindFault:
		return c.answered(f)
	}
	return fmt.Errorf("%w: kind %d", errFrame, f.kind)
}

// begin numbers a call and keeps it until it is answered.
func (c *conn) begin(k *call) (number uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return 0, c.broken
	}
	c.number++
	c.calls[c.number] = k
	return c.number, nil
}

// sent notes where the call's frame stands in the stream.
func (c *conn) sent(number, at uint64) {
	c.mu.Lock()
	if k := c.calls[number]; k != nil {
		k.at = at
	}
	c.mu.Unlock()
}

// take removes a call and returns it; nil if somebody else did. Whoever gets it
// sends its one value.
func (c *conn) take(number uint64) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.calls[number]
	delete(c.calls, number)
	return k
}

// answered hands an answer to the call that waits for it, if any still does.
func (c *conn) answered(f frame) error {
	k := c.take(f.number)
	if k == nil {
		return nil
	}
	if k.deadline != 0 && c.l.p.now() > k.deadline {
		k.done <- ErrTimeout // late, perhaps by a pause of this process: not to be taken for fresh
		return nil
	}
	err := k.fill(f)
	k.done <- err
	if errors.Is(err, errFrame) {
		return err
	}
	return nil
}

// expire fails the calls whose deadline has passed.
func (c *conn) expire(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, k := range c.calls {
		if k.deadline != 0 && now > k.deadline {
			delete(c.calls, n)
			k.done <- ErrTimeout
		}
	}
}

// end breaks the connection: once; it returns when all calls have failed.
func (c *conn) end(err error) {
	c.mu.Lock()
	if c.broken != nil {
		c.mu.Unlock()
		return
	}
	c.broken = fmt.Errorf("%w: %w", errBroken, err)
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()

	c.nc.Close() // before the outbox: what is pending now never leaves
	c.l.drop(c)
	handed := c.out.close()
	c.cancel()
	for _, k := range calls {
		if k.at >= handed {
			k.done <- errNotSent
		} else {
			k.done <- c.broken
		}
	}
	c.l.p.log.Debug("peer: connection ended", "node", c.l.node, "error", err)
}

// errNotSent fails a call whose request did not leave before the connection broke.
var errNotSent = fmt.Errorf("%w before the request was sent", errBroken)

// silent reports whether nothing has been heard for too long.
func (c *conn) silent(now int64) bool { return now-c.nc.heard.Load() > int64(silence) }

// idle reports whether the connection was made by this side for a call alone,
// and has not been needed for a while.
func (c *conn) idle(now int64) bool {
	if !c.dialled || now-c.l.used.Load() < int64(idleLink) {
		return false
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return !c.l.wanted
}

// wait receives the call's value, unless done comes first and the call can be
// taken back; then it returns errAbandoned.
func (c *conn) wait(k *call, number uint64, done <-chan struct{}) error {
	select {
	case err := <-k.done:
		return err
	case <-done:
	}
	if c.take(number) != nil {
		return errAbandoned
	}
	return <-k.done // somebody is about to send it
}

// errAbandoned means that the caller did not wait for the answer.
var errAbandoned = errors.New("no longer waited for")
