package transport

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// bound handles the binding of a channel number to two replicas.
func (c *conn) bound(f frame) error {
	d := decoder{b: f.body}
	from, to := d.name(), d.name()
	if !d.end() || f.channel != uint64(len(c.channels))+1 || len(c.channels) >= maxChannels {
		return fmt.Errorf("%w: channel %d", errFrame, f.channel)
	}
	if nodeOf(from) != c.l.node {
		return fmt.Errorf("%w: node %s speaks for replica %s", errFrame, c.l.node, from)
	}
	c.channels = append(c.channels, &channel{from: []byte(from), to: to})
	return nil
}

// requested hands a request to the replica it is for, or refuses it. Called by
// the reader of the link.
func (c *conn) requested(f frame) error {
	if f.channel == 0 || f.channel > uint64(len(c.channels)) {
		return fmt.Errorf("%w: channel %d", errFrame, f.channel)
	}
	ch := c.channels[f.channel-1]
	if ch.t == nil || ch.t.ctx.Err() != nil {
		if ch.t = c.l.p.replica(ch.to); ch.t == nil {
			c.refuse(f.number, "unknown replica "+ch.to)
			return nil
		}
	}
	command, ok := decodeRequest(f, ch.from)
	if !ok {
		return fmt.Errorf("%w: request of kind %d", errFrame, f.kind)
	}
	if h := ch.t.heartbeat.Load(); f.kind == kindHeartbeat && h != nil {
		ch.t.beat(c, f.number, command.(*raft.AppendEntriesRequest), *h)
		return nil
	}
	ch.t.impartial(command)
	ch.t.deliver(pending{c, f.number, f.kind}, command)
	return nil
}

// decodeRequest reads the request of a frame; it keeps nothing of the frame.
func decodeRequest(f frame, from []byte) (command any, ok bool) {
	switch f.kind {
	case kindHeartbeat:
		return decodeHeartbeat(f.body, from)
	case kindAppend:
		return decodeAppend(f.body, from)
	case kindVote:
		return decodeVote(f.body, from)
	case kindPreVote:
		return decodePreVote(f.body, from)
	default:
		return &raft.TimeoutNowRequest{RPCHeader: header(from)}, len(f.body) == 0
	}
}

// replica returns the transport of a replica that lives here, or nil.
func (p *Peers) replica(id string) *RaftTransport {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.replicas[id]
}

// deliver puts a request into raft's hands, or refuses it; it does not wait.
func (t *RaftTransport) deliver(w pending, command any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		w.c.refuse(w.number, "unknown replica "+t.id)
		return
	}
	if len(t.waiting) < maxAnswers { // so raft never waits for room in answers
		select {
		case t.consumer <- raft.RPC{Command: command, RespChan: t.answers}:
			t.waiting = append(t.waiting, w)
			return
		default:
		}
	}
	w.c.refuse(w.number, "replica "+t.id+" does not keep up")
}

// respond sends raft's answers, until the replica is closed. Raft's main loop
// takes one request after the other and answers each exactly once, so the
// oldest request waiting is the one answered.
func (t *RaftTransport) respond() {
	for {
		select {
		case <-t.ctx.Done():
			return
		case r := <-t.answers:
			t.mu.Lock()
			if len(t.waiting) == 0 { // closed meanwhile
				t.mu.Unlock()
				continue
			}
			w := t.waiting[0]
			t.waiting = t.waiting[1:]
			t.mu.Unlock()
			t.answer(w, now, r)
		}
	}
}

// beat runs raft's handler for a heartbeat here, in the reader, as raft allows.
// One of a term that is new here may store it on disk first: it gets a goroutine.
func (t *RaftTransport) beat(c *conn, number uint64, a *raft.AppendEntriesRequest, handler func(raft.RPC)) {
	run := func() {
		answer := make(chan raft.RPCResponse, 1)
		handler(raft.RPC{Command: a, RespChan: answer})
		select {
		case r := <-answer:
			t.answer(pending{c, number, kindHeartbeat}, lazy, r)
		default: // raft is shut down, and says nothing
			c.refuse(number, "replica "+t.id+" is stopping")
		}
	}
	switch {
	case a.Term <= t.term.Load():
		run()
	case !t.slow.CompareAndSwap(false, true):
		c.refuse(number, "replica "+t.id+" does not keep up")
	default:
		t.p.wg.Go(func() { // the caller is such a goroutine, so Run has not ended
			defer t.slow.Store(false)
			run()
		})
	}
}

// answer sends one answer of raft.
func (t *RaftTransport) answer(w pending, u urgency, r raft.RPCResponse) {
	if r.Error != nil {
		w.c.refuse(w.number, r.Error.Error())
		return
	}
	var encode func([]byte) []byte
	var term uint64
	switch m := r.Response.(type) {
	case *raft.AppendEntriesResponse:
		encode, term = func(b []byte) []byte { return appendAppended(b, m) }, m.Term
	case *raft.RequestVoteResponse:
		encode, term = func(b []byte) []byte { return appendVoted(b, m) }, m.Term
	case *raft.RequestPreVoteResponse:
		encode = func(b []byte) []byte { return appendPreVoted(b, m) }
	case *raft.TimeoutNowResponse:
	default:
		w.c.refuse(w.number, fmt.Sprintf("raft answered with a %T", r.Response))
		return
	}
	if term > t.term.Load() {
		t.term.Store(term)
	}
	if _, err := w.c.out.add(u, w.kind.answer(), 0, w.number, encode); err != nil {
		t.p.log.Debug("peer: answer not sent", "node", w.c.l.node, "replica", t.id, "error", err)
	}
}

// refuse answers a request of raft with an error; it does not wait. The text
// never says "unexpected command", which raft would take for a granted pre-vote.
func (c *conn) refuse(number uint64, text string) {
	_, _ = c.out.add(soon, kindRefused, 0, number, func(b []byte) []byte { return append(b, text...) })
}
