package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"time"
)

// A ping's number is the sender's clock (ns since its start), so that a number
// that comes back says by itself how old it is. The body is the newest number of
// the other side, the cluster id, and the digest.

// pulse pings all links every 50 ms, expires calls, and gives up connections
// on which nothing is heard.
func (p *Peers) pulse(ctx context.Context) {
	tick := time.NewTimer(UntilBeat(time.Now(), pingEvery))
	defer tick.Stop()
	last, over := p.now(), false // over: a digest was too long, and the log said so
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tick.Reset(UntilBeat(time.Now(), pingEvery))
		var digest []byte
		if digest = p.digest(); len(digest) > maxDigest {
			if !over {
				p.log.Error("peer: the digest is too long and not sent: the other nodes do not see the state of this one",
					"bytes", len(digest), "most", maxDigest)
			}
			digest, over = nil, true
		}
		cluster := p.cluster()
		late := p.now()-last > int64(2*pingEvery)
		last = p.now()
		for _, l := range p.all() {
			l.tick(digest, cluster, late)
		}
	}
}

// digest asks for what to tell all peers.
func (p *Peers) digest() []byte {
	if p.cfg.Digest == nil {
		return nil
	}
	defer p.contain("Digest", nil)
	return p.cfg.Digest()
}

// digested hands a digest of the other side on.
func (c *conn) digested(digest []byte) {
	p := c.l.p
	if len(digest) == 0 || p.cfg.OnDigest == nil {
		return
	}
	defer p.contain("OnDigest", nil)
	p.cfg.OnDigest(c.from, digest)
}

// tick is the pulse of one link. It does not wait for the network. If the pulse is
// late, because this process was stopped or short of CPU, what the others sent may
// lie unread: then silence is no reason yet to give anything up.
func (l *link) tick(digest []byte, cluster string, late bool) {
	now := l.p.now()
	c := l.cur.Load()
	if c == nil {
		l.forget(now)
		return
	}
	switch {
	case c.silent(now) && !late:
		c.end(errors.New("nothing heard"))
		return
	case c.idle(now):
		c.end(errors.New("not needed"))
		return
	}
	c.expire(now)
	if !late && !l.fresh(c) {
		l.mu.Lock()
		l.setUp(false)
		l.mu.Unlock()
	}
	c.ping(digest, cluster)
}

// ping sends a ping; also what waits for one goes out with it.
func (c *conn) ping(digest []byte, cluster string) {
	_, _ = c.out.add(soon, kindPing, 0, uint64(c.l.p.now()), func(b []byte) []byte {
		b = binary.AppendUvarint(b, uint64(c.theirs.Load()))
		b = appendBytes(b, cluster)
		return append(b, digest...)
	})
}

// pinged handles a ping of the other side.
func (c *conn) pinged(f frame) error {
	d := decoder{b: f.body}
	echo, cluster := int64(d.uint()), d.name()
	if d.bad {
		return errFrame
	}
	p := c.l.p
	if mine := p.cluster(); differ(mine, cluster) {
		return errors.New("node " + c.from.Node + " belongs to cluster " + cluster + ", this node to " + mine)
	}
	first := c.theirs.Swap(int64(f.number)) == 0
	if echo > c.echo.Load() && echo <= p.now() {
		c.echo.Store(echo)
		c.l.mu.Lock()
		if c.l.cur.Load() == c && c.l.fresh(c) {
			c.l.setUp(true)
		}
		c.l.mu.Unlock()
	}
	if first {
		c.ping(nil, p.cluster()) // so that both sides are up after one round trip
	}
	c.digested(d.b)
	return nil
}

// notify tells OnLink what changed, until ctx ends.
func (p *Peers) notify(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.news:
		}
		for _, l := range p.all() {
			l.announce()
		}
	}
}

// announce tells OnLink of a change of this link since the last time. Called by
// the notifier only.
func (l *link) announce() {
	l.mu.Lock()
	was, is := l.told, told{up: l.up, downs: l.downs}
	l.told = is
	l.mu.Unlock()
	on := l.p.cfg.OnLink
	if on == nil {
		return
	}
	defer l.p.contain("OnLink", nil)
	if was.up && was.downs != is.downs {
		l.p.log.Info("peer: link down", "node", l.node)
		on(l.node, false)
		was.up = false
	}
	if !was.up && is.up {
		l.p.log.Info("peer: link up", "node", l.node)
		on(l.node, true)
	}
}

// tell wakes the notifier.
func (p *Peers) tell() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}
