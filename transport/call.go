package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// Call asks another node, whose Config.Handle answers. It ends with ctx, or
// after 5 s if ctx has no deadline; the time left travels with the request.
//
// An error of the other side keeps its fault kind. fault.Unavailable: nothing
// was sent. fault.OutcomeUnknown: the connection was lost, or ctx ended, after
// sending, or the other side's Handle panicked. fault.Busy: the other side, or the way there, is full; nothing was done.
//
// A node without a connection fails at once, but for a node never tried and one
// that SetPeers does not name: then Call waits for one attempt to connect.
func (p *Peers) Call(ctx context.Context, node string, method uint8, body []byte) ([]byte, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	if node == p.cfg.Name {
		return p.handle(ctx, p.self(), method, append([]byte(nil), body...))
	}
	c, err := p.connection(ctx, node)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "node %s: %v", node, err)
	}
	return c.call(ctx, method, body)
}

// connection returns the connection to a node, waiting for one attempt to make
// it where Call says so.
func (p *Peers) connection(ctx context.Context, node string) (*conn, error) {
	l := p.link(node)
	if c := l.cur.Load(); c != nil {
		return c, nil
	}
	tried, failure, wait := l.ask()
	if wait {
		select {
		case <-tried:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		failure = l.why()
	}
	if c := l.cur.Load(); c != nil {
		return c, nil
	}
	if failure != nil {
		return nil, failure
	}
	return nil, ErrNoLink
}

// call sends the request on c and waits for the answer.
func (c *conn) call(ctx context.Context, method uint8, body []byte) ([]byte, error) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	if left <= 0 || ctx.Err() != nil {
		return nil, fault.New(fault.Deadline, "passed before the request was sent")
	}
	k := c.l.p.newCall()
	defer c.l.p.free(k)
	k.want = kindAnswer
	number, err := c.begin(k)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "node %s: %v", c.l.node, err)
	}
	at, err := c.out.add(now, kindCall, 0, number, func(b []byte) []byte {
		b = append(b, method)
		b = binary.AppendUvarint(b, uint64(left/time.Microsecond)+1)
		return append(b, body...)
	})
	if err != nil && c.take(number) != nil { // not added: nobody will answer
		return nil, notSent(c.l.node, err)
	}
	c.sent(number, at)
	err = c.wait(k, number, ctx.Done())
	switch {
	case err == nil:
		return k.body, nil
	case errors.Is(err, errNotSent):
		return nil, fault.New(fault.Unavailable, "node %s: %v", c.l.node, err)
	case errors.Is(err, errAbandoned):
		return nil, fault.New(fault.OutcomeUnknown, "node %s did not answer in time: %v", c.l.node, ctx.Err())
	case errors.Is(err, errBroken):
		return nil, fault.New(fault.OutcomeUnknown, "node %s: %v", c.l.node, err)
	default:
		return nil, err // the other side's, with its kind
	}
}

// notSent maps the errors of outbox.add.
func notSent(node string, err error) error {
	switch {
	case errors.Is(err, ErrFull):
		return fault.New(fault.Busy, "node %s: %v", node, err)
	case errors.Is(err, errBroken):
		return fault.New(fault.Unavailable, "node %s: %v", node, err)
	default:
		return fault.New(fault.InvalidArgument, "%v", err)
	}
}

// job is a call of another node, to be answered.
type job struct {
	c      *conn
	number uint64
	method uint8
	left   time.Duration
	body   []byte
}

// called starts a handler for a call, or refuses it.
func (c *conn) called(f frame) error {
	d := decoder{b: f.body}
	method, left := d.byte(), d.uint()
	if d.bad {
		return errFrame
	}
	j := job{
		c: c, number: f.number, method: method, body: append([]byte(nil), d.b...),
		left: time.Duration(min(left, uint64(time.Hour/time.Microsecond))) * time.Microsecond,
	}
	p := c.l.p
	select {
	case p.jobs <- j: // a handler without work takes it
		return nil
	default:
	}
	select {
	case p.slots <- struct{}{}:
	default:
		j.refuse(fault.New(fault.Busy, "%d calls are being answered", maxHandlers))
		return nil
	}
	if !p.spawn(func(ctx context.Context) { p.handler(ctx, j) }) {
		<-p.slots
		j.refuse(fault.New(fault.NotReady, "node %s is stopping", p.cfg.Name))
	}
	return nil
}

// handler answers calls: j, then what else comes, as long as few others wait.
func (p *Peers) handler(ctx context.Context, j job) {
	defer func() { <-p.slots }()
	for {
		j.run()
		if p.idle.Add(1) > maxIdle {
			p.idle.Add(-1)
			return
		}
		select {
		case j = <-p.jobs:
			p.idle.Add(-1)
		case <-ctx.Done():
			p.idle.Add(-1)
			return
		}
	}
}

func (j job) run() {
	ctx, cancel := context.WithTimeout(j.c.ctx, j.left)
	defer cancel()
	body, err := j.c.l.p.handle(ctx, j.c.from, j.method, j.body)
	if err != nil {
		j.fail(now, err)
		return
	}
	_, err = j.c.out.add(now, kindAnswer, 0, j.number, func(b []byte) []byte { return append(b, body...) })
	if err != nil { // too long or no room; it has been done
		j.fail(now, fault.New(fault.OutcomeUnknown, "answer not sent: %v", err))
	}
}

// refuse answers without having run, from the reader, which must not write.
func (j job) refuse(err error) { j.fail(soon, err) }

// fail answers with an error. If not even that finds room, the caller's own
// deadline ends the call.
func (j job) fail(u urgency, err error) {
	_, _ = j.c.out.add(u, kindFault, 0, j.number, func(b []byte) []byte {
		b, merr := proto.MarshalOptions{}.MarshalAppend(b, fault.ToProto(err))
		if merr != nil { // cannot be: strings of ours are UTF-8; an empty error is INTERNAL over there
			return b
		}
		return b
	})
}

// handle runs Config.Handle. If that panics, what it did before is not known.
func (p *Peers) handle(ctx context.Context, from From, method uint8, body []byte) (answer []byte, err error) {
	if p.cfg.Handle == nil {
		return nil, fault.New(fault.NotFound, "method %d", method)
	}
	defer p.contain("Handle", func() {
		answer, err = nil, fault.New(fault.OutcomeUnknown, "node %s failed on method %d", p.cfg.Name, method)
	})
	return p.cfg.Handle(ctx, from, method, body)
}

// fill stores an answer in the call. An error that wraps errFrame means that the
// other side does not keep to the protocol.
func (k *call) fill(f frame) error {
	switch {
	case f.kind == kindFault && k.want == kindAnswer:
		var e pb.Error
		if err := proto.Unmarshal(f.body, &e); err != nil {
			return fmt.Errorf("%w: %w", errFrame, err)
		}
		return fault.FromProto(&e)
	case f.kind == kindRefused && k.want != kindAnswer:
		return errors.New(string(f.body))
	case f.kind != k.want:
		return fmt.Errorf("%w: answer of kind %d, not %d", errFrame, f.kind, k.want)
	case f.kind == kindAnswer:
		k.body = append([]byte(nil), f.body...)
		return nil
	case !k.fillRaft(f.body):
		return fmt.Errorf("%w: answer of kind %d", errFrame, f.kind)
	}
	return nil
}
