package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is what this node knows of one other node. It has at most one connection
// at a time, dialled by either side.
//
// When both sides dial at once, the dial of the smaller name wins: the smaller
// refuses the other's hello while its own is out. A connection that one side
// still takes for living is replaced when the other side has lost it, which its
// hello says by naming the newest connection it knows.
type link struct {
	p    *Peers
	node string
	cur  atomic.Pointer[conn] // set under mu
	kick chan struct{}        // capacity 1: run should look again
	used atomic.Int64         // when somebody last needed the link (Peers.now)

	mu       sync.Mutex    // guards what follows; held for a few instructions
	wanted   bool          // SetPeers names it: keep it connected
	asked    bool          // a call asked for it: connect once
	running  bool          // the goroutine run is there
	greeting bool          // this side's hello is out
	newest   uint64        // id of the newest connection made
	made     int64         // when it was, or the last dial began (Peers.now); 0: never
	tried    chan struct{} // closed when the present dial ends
	arrived  chan struct{} // closed by the next connection; nil: nobody waits for it
	ever     bool          // a dial has ended, or a connection been made
	failure  error         // why the last dial failed
	up       bool          // my pings come back
	upAt     int64         // since when (Peers.now)
	downs    uint64        // how often it went down
	told     told          // what OnLink knows; changed by the notifier only
	gone     bool          // Peers.links has it no more: of no use
}

// told is the state of a link as OnLink was told last.
type told struct {
	up    bool
	downs uint64
}

// errCrossed means that the other side's dial is under way too, and goes first.
var errCrossed = errors.New("both sides dialled")

// run keeps the link connected while it is wanted, and dials once when asked.
// After a connection that lasted it dials again at once, else it backs off.
func (l *link) run(ctx context.Context) {
	backoff := backoffMin
	for l.await(ctx) {
		if l.lasted() {
			backoff = backoffMin
		} else {
			l.p.pause(ctx, backoff*3/4+rand.N(backoff/2)) // ± 25 %
			backoff = min(2*backoff, backoffMax)
		}
		l.attempted(l.dial(ctx))
	}
}

// lasted reports whether the next dial may be made at once: it is the first, or
// the newest connection lasted for a second. It says so once per connection.
func (l *link) lasted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := l.made
	l.made = l.p.now()
	return made == 0 || l.p.now()-made > int64(silence)
}

// await returns true when the link should be dialled, false when run is to end.
func (l *link) await(ctx context.Context) bool {
	for {
		l.mu.Lock()
		c := l.cur.Load()
		dial := c == nil && (l.wanted || l.asked)
		if ctx.Err() != nil || (c == nil && !dial) {
			l.running = false
			l.mu.Unlock()
			return false
		}
		l.mu.Unlock()
		if dial {
			return true
		}
		select {
		case <-ctx.Done():
		case <-l.kick:
		case <-c.out.done:
		}
	}
}

// want starts the goroutine that dials, if it is not there. l.mu is held.
func (l *link) want() {
	if !l.running && l.p.spawn(l.run) {
		l.running = true
	}
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// ask makes sure that somebody dials, and returns a channel that is closed when
// the present attempt has ended, what the last one ended with, and whether a Call
// should wait: not for a node that is being tried over and over.
func (l *link) ask() (tried <-chan struct{}, failure error, wait bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone { // forgotten at this moment; who asks again gets a new one
		return l.tried, ErrNoLink, false
	}
	early := l.p.notYet() // then Run will start it, if want does not
	if l.cur.Load() == nil {
		l.asked = true
		l.want()
	}
	wait = (!l.wanted || !l.ever) && (l.running || early)
	return l.tried, l.failure, wait
}

// why returns what the last attempt to connect ended with.
func (l *link) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// attempted notes how a dial ended and tells who waits for it.
func (l *link) attempted(err error) {
	l.mu.Lock()
	changed := err != nil && (l.failure == nil || l.failure.Error() != err.Error())
	l.failure, l.asked, l.ever = err, false, true
	close(l.tried)
	l.tried = make(chan struct{})
	l.mu.Unlock()
	if changed && !errors.Is(err, context.Canceled) && !errors.Is(err, errCrossed) {
		l.p.log.Warn("peer: cannot connect", "node", l.node, "error", err)
	}
}

// dial connects once. If it succeeds it has started the connection's reader.
func (l *link) dial(ctx context.Context) error {
	nc, err := l.p.dial(ctx, l.node)
	if err != nil {
		return err
	}
	c, err := l.greet(ctx, nc)
	if err != nil {
		nc.Close()
		return err
	}
	if refusal := l.p.doubted(c); refusal != "" {
		return fmt.Errorf("%w: %s", errRefused, refusal)
	}
	if !l.p.spawn(func(context.Context) { c.serve() }) {
		c.end(net.ErrClosed)
	}
	return nil
}

// greet exchanges hellos on nc and makes it the link's connection.
func (l *link) greet(ctx context.Context, nc *socket) (*conn, error) {
	h := hello{
		purpose: forLink, cluster: l.p.cluster(), from: l.p.self(), target: l.node, id: rand.Uint64(),
	}
	l.mu.Lock()
	if l.cur.Load() != nil {
		l.mu.Unlock()
		return nil, errCrossed
	}
	l.greeting, h.seen = true, l.newest
	l.mu.Unlock()

	nc.SetDeadline(time.Now().Add(dialTimeout))
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	w, err := l.p.greet(nc, h)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.greeting = false
	if l.cur.Load() != nil {
		return nil, errCrossed
	}
	if err != nil {
		return nil, err
	}
	nc.SetDeadline(time.Time{})
	c := newConn(l, nc, w.from, h.id, true)
	l.install(c)
	return c, nil
}

// accepted makes nc, dialled by the other side, the connection of its link and
// serves it until it ends; or it returns why not.
func (p *Peers) accepted(h hello, nc *socket) (refusal string) {
	l := p.lock(h.from.Node)
	old := l.cur.Load()
	if refusal = l.judge(h, old); refusal != "" {
		l.mu.Unlock()
		if refusal != errCrossed.Error() {
			p.complain(h, nc, refusal)
		}
		return refusal
	}
	nc.SetDeadline(time.Time{})
	c := newConn(l, nc, h.from, h.id, false)
	c.out.pend = p.welcome("").append(c.out.pend) // goes before all frames
	c.out.added = uint64(len(c.out.pend))
	l.install(c)
	l.mu.Unlock()
	if old != nil {
		old.end(errors.New("replaced by a newer connection"))
	}
	if refusal = p.doubted(c); refusal != "" {
		p.complain(h, nc, refusal)
		return refusal
	}
	c.serve()
	return ""
}

// judge decides whether a hello may become the connection in place of old (nil:
// there is none). l.mu is held.
func (l *link) judge(h hello, old *conn) (refusal string) {
	switch {
	case old == nil && l.greeting && l.p.cfg.Name < l.node:
		return errCrossed.Error()
	case old == nil:
		return ""
	case old.from.Incarnation != h.from.Incarnation:
		if l.fresh(old) {
			return fmt.Sprintf("another process, %s, answers to the name %s", old.from.Incarnation, l.node)
		}
	case old.dialled && h.seen != old.id:
		return errCrossed.Error() // this side's own connection has not been noticed yet
	}
	return ""
}

// install makes c the connection. l.mu is held.
func (l *link) install(c *conn) {
	l.cur.Store(c)
	if l.arrived != nil {
		close(l.arrived)
		l.arrived = nil
	}
	l.setUp(false) // until its own pings come back
	l.newest, l.made = c.id, l.p.now()
	l.failure, l.ever = nil, true
	l.used.Store(l.p.now())
	l.p.log.Debug("peer: connected", "node", l.node, "incarnation", c.from.Incarnation)
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// drop forgets c if it is the connection.
func (l *link) drop(c *conn) {
	l.mu.Lock()
	mine := l.cur.CompareAndSwap(c, nil)
	if mine {
		l.setUp(false)
	}
	l.mu.Unlock()
}

// setUp notes whether pings come back. l.mu is held.
func (l *link) setUp(up bool) {
	if l.up == up {
		return
	}
	l.up = up
	if up {
		l.upAt = l.p.now()
	} else {
		l.downs++
	}
	l.p.tell()
}

// forget drops the link if nobody wants it, nothing is connected or being
// connected, and it has not been needed for a while. Else a node would remember
// every other that ever was.
func (l *link) forget(now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := l.wanted || l.asked || l.running || l.greeting || l.cur.Load() != nil
	if busy || now-l.used.Load() < int64(idleLink) || l.told != (told{up: l.up, downs: l.downs}) {
		return
	}
	l.gone = true
	l.p.mu.Lock()
	delete(l.p.links, l.node)
	l.p.mu.Unlock()
}

// fresh reports whether my pings come back on c. It needs no lock.
func (l *link) fresh(c *conn) bool {
	echo := c.echo.Load()
	return echo != 0 && l.p.now()-echo <= int64(linkLimit)
}

// state returns for how long the link has been up; false: it is down.
func (l *link) state() (since time.Duration, up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.cur.Load()
	if !l.up || c == nil || !l.fresh(c) {
		return 0, false
	}
	return time.Duration(l.p.now() - l.upAt), true
}
