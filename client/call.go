package client

import (
	"sync/atomic"

	"github.com/ringlimit/ringlimit/api/wire"
)

// A call is one request on its way. It is in one place at a time: the queue of
// a lane, a message in flight, or, on Client.mu's side, parked or delayed. Only
// copies in flight at a node that fell silent may be left behind; their attempt
// tells them from the newest.
type call struct {
	body    []byte  // the request without its id, encoded; never changed once placed
	slot    int32   // of the request's home; -1: not known
	group   *group  // that decides it, as of its last placing
	seq     uint64  // 0: the request has a caller's own id, or needs none
	expires int64   // client time in ns when the caller stops waiting
	timed   bool    // the clock ends it then; else its context does
	began   int64   // client time; 0: only the cluster decides it
	request Request // as it was asked, if began is not 0

	// Guarded as the place that the call is in; see expiring.
	due    int64 // client time when the client decides it without the cluster
	judged bool  // due is by the policies that apply

	state    atomic.Uint32 // waiting, then one of the others, once
	late     atomic.Bool   // the cluster decided it when it had been given up
	attempt  atomic.Uint32 // how often it was placed; grows by whoever places it
	first    int64         // client time of the first copy, 0: none; guarded by the mu of the node that sends
	epoch    uint32        // of the group when the first copy was sent; likewise
	done     chan struct{} // gets one value when finished; capacity 1
	batch    *batch        // told instead of done, if there is one
	decision Decision      // of a finished call
	err      error         // of a finished call

	// Guarded by Client.mu.
	cause     error // the last answer that made the call wait
	via       *node // where a redirect sends the next copy
	redirects int
	busy      int // retries because of BUSY
	moved     int // retries because of NOT_HELD
}

const (
	waiting uint32 = iota
	finished
	abandoned // the caller stopped waiting
)

// settle ends the call once; false if it had ended before.
func (k *call) settle(state uint32) bool {
	return k.state.Load() == waiting && k.state.CompareAndSwap(waiting, state)
}

func (k *call) live() bool { return k.state.Load() == waiting }

// wake tells who waits. Afterwards the call belongs to them.
func (k *call) wake() {
	if k.batch != nil {
		k.batch.ended()
		return
	}
	k.done <- struct{}{}
}

// recycle gives a call back to the pool if nobody else can hold it: it was
// answered, and its only copy was that of the answer. The pool is the client's
// own, because a channel must not leave a synctest bubble.
func (c *Client) recycle(k *call) {
	if k.state.Load() != finished || k.err != nil || k.attempt.Load() != 1 {
		return
	}
	body := k.body[:0]
	if cap(body) > 4<<10 {
		body = nil
	}
	*k = call{body: body, done: k.done}
	c.calls.Put(k)
}

// append encodes the call as an element of StreamRequest.requests. The message
// carries the session.
func (k *call) append(dst []byte, now int64) []byte {
	dst, outer := wire.Open(dst, 5)
	dst = append(dst, k.body...)
	if k.seq != 0 {
		var inner int
		dst, inner = wire.Open(dst, 4)
		dst = wire.AppendUint(dst, 2, k.seq)
		dst = wire.AppendUint(dst, 3, uint64(k.attempt.Load()))
		dst = wire.AppendUint(dst, 4, uint64(max(0, now-k.first)))
		dst = wire.AppendUint(dst, 5, uint64(k.epoch))
		dst = wire.Close(dst, inner)
	}
	return wire.Close(dst, outer)
}

// size is at least what append adds.
func (k *call) size() int { return len(k.body) + 64 }

// batch counts the calls of one DecideBatch that have not ended.
type batch struct {
	left atomic.Int64
	done chan struct{} // closed when all have
}

func (b *batch) ended() {
	if b.left.Add(-1) == 0 {
		close(b.done)
	}
}
