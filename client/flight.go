package client

import (
	"fmt"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

func (n *node) newMessage() *message {
	if last := len(n.free) - 1; last >= 0 {
		m := n.free[last]
		n.free = n.free[:last]
		return m
	}
	return new(message)
}

func (n *node) freeMessage(m *message) {
	clear(m.calls)
	*m = message{calls: m.calls[:0], attempt: m.attempt[:0], ended: m.ended[:0]}
	if len(n.free) < 8 {
		n.free = append(n.free, m)
	}
}

// launch puts a message in flight. mu is held.
func (n *node) launch(m *message) {
	n.lastID++
	m.id = n.lastID
	n.flight[m.id] = m
	n.unanswered += m.bytes
	n.client.flying.Add(1)
	n.client.counts.messages.Add(1)
}

// send writes a message that is in flight. sending is held. An error needs no
// handling: run meets it too, and takes the message back.
func (n *node) send(m *message) {
	c := n.client
	now := c.now()
	until := int64(0)
	b := wire.AppendUint(n.out.B[:0], 1, m.id)
	b = wire.AppendFixed64(b, 2, c.session)
	b = wire.AppendUint(b, 3, c.acks.mark.Load())
	for _, k := range m.calls {
		b = k.append(b, now)
		until = max(until, k.expires)
	}
	n.out.B = wire.AppendUint(b, 6, uint64(max(1, until-now)))
	n.mu.Lock()
	stream := n.stream
	m.written = n.flight[m.id] == m // else run took it back already
	written := m.written
	n.mu.Unlock()
	if written {
		_ = stream.SendMsg(&n.out)
		c.watch()
	}
}

// answered hands out the results of one message and lets the next go.
func (n *node) answered(a *wire.Answers) error {
	n.mu.Lock()
	m := n.flight[a.ID]
	if m == nil || !m.written {
		n.mu.Unlock()
		return fmt.Errorf("answer to message %d, which is not in flight", a.ID)
	}
	delete(n.flight, a.ID)
	n.unanswered -= m.bytes
	m.lane.flying--
	ready := m.lane.ready()
	n.mu.Unlock()
	n.client.flying.Add(-1)
	if ready {
		n.wake()
	}
	err := n.client.deliver(m, a)
	n.mu.Lock()
	n.freeMessage(m)
	n.mu.Unlock()
	return err
}

// deliver ends the calls of m that got their answer and treats the others. On
// an error the stream is of no use any more; the calls left are treated too.
func (c *Client) deliver(m *message, a *wire.Answers) error {
	var err error
	if a.Len != len(m.calls) {
		err = fmt.Errorf("%d results for %d requests", a.Len, len(m.calls))
	}
	ends := ends{seqs: m.ended[:0]}
	decided, heard := false, false
	for i, k := range m.calls {
		var r *pb.Result
		if err == nil {
			r, err = a.Next()
		}
		switch {
		case err != nil || r == nil:
			c.failed(k, m.attempt[i], m, fault.New(fault.OutcomeUnknown, "unreadable answer"))
		case r.Decision == nil:
			c.failed(k, m.attempt[i], m, errorOf(r))
		case k.settle(finished):
			k.decide(r.Decision)
			decided = true
			ends.add(k)
		default:
			c.tooLate(k, r.Decision.Allowed)
		}
		heard = heard || r.GetDecision() != nil
	}
	ends.tell()
	c.acks.end(ends.seqs...)
	m.ended = ends.seqs
	if heard {
		m.lane.group.answered.Store(c.now())
	}
	if decided && m.lane.group.failing.Load() {
		c.answeredAgain(m.lane.group)
	}
	if decided && m.lane.group.down.Load() {
		c.recovered(m.lane.group)
	}
	return err
}

// ends is calls that have ended. Those of a batch mostly stand together, and it is
// told of them once.
type ends struct {
	seqs  []uint64
	batch *batch
	n     int // calls of batch
}

func (e *ends) add(k *call) {
	e.seqs = append(e.seqs, k.ends())
	if k.batch == nil {
		k.wake()
		return
	}
	if k.batch != e.batch {
		e.tell()
		e.batch = k.batch
	}
	e.n++
}

// tell wakes who waits for the calls of the batch, if all have ended.
func (e *ends) tell() {
	if e.n > 0 {
		e.batch.ended(e.n)
		e.n = 0
	}
}

func errorOf(r *pb.Result) error {
	if r.GetError() == nil {
		return fault.New(fault.OutcomeUnknown, "neither decision nor error")
	}
	return fault.FromProto(r.GetError())
}
