package transport

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// Calls that carry much have connections of their own, so that no ping and no entry
// of a log waits behind them: hello and welcome, then calls and their answers, one
// at a time on a connection. Before each call both sides check again who the other is:
// what the authorities are may have changed since the connection was made.

const (
	keepBulk = 4                // idle connections kept per node
	lastBulk = 20 * time.Second // an idle connection is kept for
	idleBulk = time.Minute      // the other side closes one that was not used for so long
	maxBulk  = 64               // such connections that a node serves
)

// bulks are the idle connections for calls that carry much. None outlives lastBulk:
// nobody reads them, so nobody would see that the other side, or its node, has gone.
type bulks struct {
	mu     sync.Mutex // guards what follows
	idle   map[string][]bulk
	closed bool
}

type bulk struct {
	lane *lane
	ends *time.Timer // closes it; whoever stops it in time has the lane
}

// get takes an idle connection to a node, nil if there is none.
func (b *bulks) get(node string) *lane {
	b.mu.Lock()
	defer b.mu.Unlock()
	for list := b.idle[node]; len(list) > 0; list = b.idle[node] {
		last := list[len(list)-1]
		b.idle[node] = list[:len(list)-1]
		if last.ends.Stop() {
			return last.lane
		}
	}
	return nil
}

// put keeps a connection for the next call, or closes it.
func (b *bulks) put(node string, l *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.idle == nil {
		b.idle = make(map[string][]bulk)
	}
	if b.closed || len(b.idle[node]) >= keepBulk {
		l.nc.Close()
		return
	}
	b.idle[node] = append(b.idle[node], bulk{l, time.AfterFunc(lastBulk, func() { b.expire(node, l) })})
}

// expire closes a connection that was idle for long, and forgets it.
func (b *bulks) expire(node string, l *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.nc.Close()
	left := slices.DeleteFunc(b.idle[node], func(x bulk) bool { return x.lane == l })
	if len(left) == 0 {
		delete(b.idle, node)
	} else {
		b.idle[node] = left
	}
}

// close closes all idle connections, now and later.
func (b *bulks) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range b.idle {
		for _, x := range list {
			x.ends.Stop()
			x.lane.nc.Close()
		}
	}
	b.idle, b.closed = nil, true
}

// CallBulk is Call for what is large and may wait: it goes over a connection of its
// own. ctx should have a deadline, else it is 5 s. Where Call says Unavailable, the
// connection could not be made, or the other side believes this one's certificate no
// more: nothing was done.
func (p *Peers) CallBulk(ctx context.Context, node string, method uint8, body []byte) ([]byte, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	if node == p.cfg.Name {
		return p.handle(ctx, p.self(), method, append([]byte(nil), body...))
	}
	l := p.bulk.get(node)
	if l != nil && p.vouched(l.nc, node) != "" { // the authorities have changed
		l.nc.Close()
		l = nil
	}
	if l == nil {
		var err error
		if l, err = p.dialLane(ctx, node, forBulk); err != nil {
			return nil, fault.New(fault.Unavailable, "node %s: %v", node, err)
		}
	}
	stop := context.AfterFunc(ctx, func() { l.nc.Close() })
	answer, whole, err := l.call(ctx, node, method, body)
	if stop() && whole {
		p.bulk.put(node, l)
	} else {
		l.nc.Close()
	}
	return answer, err
}

// call asks on a connection that nobody else uses; whole says whether it may be
// used again.
func (l *lane) call(ctx context.Context, node string, method uint8, body []byte) (answer []byte, whole bool, err error) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	if left <= 0 || ctx.Err() != nil {
		return nil, true, fault.New(fault.Deadline, "passed before the request was sent")
	}
	err = l.send(kindCall, true, func(b []byte) []byte {
		b = append(b, method)
		b = binary.AppendUvarint(b, uint64(left/time.Microsecond)+1)
		return append(b, body...)
	})
	if err == nil {
		err = l.nc.SetReadDeadline(deadline)
	}
	var f frame
	if err == nil {
		f, err = l.read.next()
	}
	switch {
	case err != nil:
		return nil, false, fault.New(fault.OutcomeUnknown, "node %s: %v", node, err)
	case f.kind == kindAnswer:
		return append([]byte(nil), f.body...), true, nil
	case f.kind == kindRefused:
		return nil, false, fault.New(fault.Unavailable, "node %s: %v: %s", node, errRefused, f.body)
	case f.kind == kindFault:
		var e pb.Error
		if err := proto.Unmarshal(f.body, &e); err != nil {
			return nil, false, fault.New(fault.OutcomeUnknown, "node %s: %v", node, err)
		}
		return nil, true, fault.FromProto(&e)
	}
	return nil, false, fault.New(fault.OutcomeUnknown, "node %s: %v", node, errFrame)
}

// serveBulk answers the calls of such a connection until it ends.
func (p *Peers) serveBulk(ctx context.Context, h hello, nc *socket) {
	if p.bulksServed.Add(1) > maxBulk {
		p.bulksServed.Add(-1)
		_, _ = nc.Write(p.welcome("too many connections").append(nil))
		return
	}
	defer p.bulksServed.Add(-1)
	if _, err := nc.Write(p.welcome("").append(nil)); err != nil {
		return
	}
	l := newLane(nc)
	for {
		if nc.SetReadDeadline(time.Now().Add(idleBulk)) != nil {
			return
		}
		f, err := l.read.next()
		d := decoder{b: f.body}
		method, left := d.byte(), d.uint()
		if err != nil || f.kind != kindCall || d.bad {
			return
		}
		if refusal := p.vouched(nc, h.from.Node); refusal != "" {
			p.complain(h, nc, refusal)
			_ = l.send(kindRefused, true, func(b []byte) []byte { return append(b, refusal...) })
			return
		}
		if l.answer(ctx, p, h.from, method, time.Duration(min(left, uint64(time.Hour/time.Microsecond)))*time.Microsecond, d.b) != nil {
			return
		}
	}
}

// answer handles one call.
func (l *lane) answer(ctx context.Context, p *Peers, from From, method uint8, left time.Duration, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	answer, err := p.handle(ctx, from, method, append([]byte(nil), body...))
	if err == nil {
		err = l.send(kindAnswer, true, func(b []byte) []byte { return append(b, answer...) })
		return err // of an answer that is too long too: the caller learns that the connection broke
	}
	return l.send(kindFault, true, func(b []byte) []byte {
		b, _ = proto.MarshalOptions{}.MarshalAppend(b, fault.ToProto(err)) // cannot fail: strings of ours are UTF-8
		return b
	})
}
