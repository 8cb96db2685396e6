package client

import (
	"runtime"

	"github.com/ringlimit/ringlimit/api/wire"
)

// A lane carries the takes of one group to one node. Takes that arrive while
// its window of messages is in flight form the next message; the first goes at
// once, sent by its own caller.
type lane struct {
	node  *node
	group *group

	// Guarded by node.mu.
	queue  []*call
	flying int // messages in flight
	last   int // takes in the newest message
}

const (
	window     = 2          // messages of a lane in flight …
	fullWindow = 4          // … or as many, if there is a full one to send
	quietBytes = 16 << 10   // unanswered bytes up to which sending cannot block; grpc's write quota is 64 KiB
	maxBytes   = 1000 << 10 // of a message, below wire.MaxMessage
	maxCalls   = wire.MaxRequests
)

// message is takes on their way to a node.
type message struct {
	id      uint64
	lane    *lane
	term    uint64 // of the group when it was sent
	sent    int64  // client time
	bytes   int
	written bool // guarded by node.mu: it may be answered
	calls   []*call
	attempt []uint32 // of each call, in this message
	ended   []uint64 // sequences, while the answer is read
}

// put queues a call and sees to it that it is sent; false if the node is not
// up. With direct the caller itself may send, which never blocks.
func (l *lane) put(k *call, direct bool) bool {
	n := l.node
	n.mu.Lock()
	if !n.up {
		n.mu.Unlock()
		return false
	}
	k.attempt.Add(1)
	l.queue = append(l.queue, k)
	if direct && l.flying == 0 && l.last <= 1 && len(l.queue) == 1 && n.unanswered < quietBytes && k.size() < quietBytes && n.sending.TryLock() {
		m := l.next()
		n.mu.Unlock()
		if m != nil {
			n.send(m)
		}
		n.sending.Unlock()
		return true
	}
	ready := l.ready()
	n.mu.Unlock()
	if ready {
		n.wake()
	}
	return true
}

// putAll is put for many calls, without sending.
func (l *lane) putAll(calls []*call) bool {
	n := l.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.up {
		return false
	}
	for _, k := range calls {
		k.attempt.Add(1)
	}
	l.queue = append(l.queue, calls...)
	if l.ready() {
		n.wake()
	}
	return true
}

// ready says whether a message may be sent now. node.mu is held.
func (l *lane) ready() bool {
	return len(l.queue) > 0 && (l.flying < window || l.flying < fullWindow && len(l.queue) >= maxCalls)
}

// next takes the next message from the queue and puts it in flight; nil if
// nobody waits for what was queued. node.mu is held.
func (l *lane) next() *message {
	n, c := l.node, l.node.client
	m := n.newMessage()
	now := c.now()
	taken, size := 0, 0
	for _, k := range l.queue {
		if len(m.calls) == maxCalls || size+k.size() > maxBytes {
			break
		}
		taken++
		if !k.live() {
			continue
		}
		if k.first == 0 {
			k.first, k.epoch = max(now, 1), l.group.epoch.Load()
		}
		size += k.size()
		m.calls = append(m.calls, k)
		m.attempt = append(m.attempt, k.attempt.Load())
	}
	left := copy(l.queue, l.queue[taken:])
	clear(l.queue[left:])
	l.queue = l.queue[:left]
	if len(m.calls) == 0 {
		n.freeMessage(m)
		return nil
	}
	m.lane, m.term, m.sent, m.bytes = l, l.group.term.Load(), now, size
	l.flying++
	l.last = len(m.calls)
	n.launch(m)
	return m
}

// take empties the queue.
func (l *lane) take() []*call {
	l.node.mu.Lock()
	defer l.node.mu.Unlock()
	calls := l.queue
	l.queue = nil
	return calls
}

// sender sends what waits, until the client is closed. It yields first, so that
// callers who were woken together are gathered into one message.
func (n *node) sender() {
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.kick:
		}
		runtime.Gosched()
		n.sending.Lock()
		for {
			n.mu.Lock()
			m := n.nextMessage()
			n.mu.Unlock()
			if m == nil {
				break
			}
			n.send(m)
		}
		n.sending.Unlock()
	}
}

// nextMessage finds a lane that may send. node.mu is held.
func (n *node) nextMessage() *message {
	for _, l := range n.lanes {
		for n.up && l.ready() {
			if m := l.next(); m != nil {
				return m
			}
		}
	}
	return nil
}

// wake makes the sender look.
func (n *node) wake() {
	select {
	case n.kick <- struct{}{}:
	default:
	}
}
