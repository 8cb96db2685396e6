package client

import (
	"context"
	"maps"
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
	lease    *leaseAsk     // nil: it asks for none, as all calls of callers
	leased   bool          // it was decided by policies that are leased; written with decision
	done     chan struct{} // gets one value when ended; capacity 1; nil in a batch
	batch    *batch        // told instead of done, if there is one
	decision *Decision     // filled in when finished; its owner waits
	err      error         // of a call that was abandoned
	refused  error         // what ended it, where err may not say so because an earlier copy may have been charged

	// Guarded by Client.mu.
	cause     error // the last answer that made the call wait
	via       *node // where a redirect sends the next copy
	redirects int
	busy      int  // retries because of BUSY
	unknown   bool // a copy was sent of which it is not known whether it was charged
	moved     int  // retries because of NOT_HELD
}

const (
	waiting   uint32 = iota
	finished         // by a decision of the cluster
	abandoned        // without one: the caller stopped waiting, or is told an error or what is decided here
)

// settle ends the call once; false if it had ended before.
func (k *call) settle(state uint32) bool {
	return k.state.Load() == waiting && k.state.CompareAndSwap(waiting, state)
}

func (k *call) live() bool { return k.state.Load() == waiting }

// wake tells who waits. Afterwards the call belongs to them.
func (k *call) wake() {
	if k.batch != nil {
		k.batch.ended(1)
		return
	}
	k.done <- struct{}{}
}

// single is a call by itself, with room for its decision.
type single struct {
	call
	answer Decision
}

func newSingle() *single {
	s := &single{call: call{done: make(chan struct{}, 1)}}
	s.decision = &s.answer
	return s
}

// recycle gives a call back to the pool, if nobody else can hold it. The pool is
// the client's own, because a channel must not leave a synctest bubble.
func (c *Client) recycle(s *single) {
	if s.reset() {
		s.decision, s.answer = &s.answer, Decision{}
		c.calls.Put(s)
	}
}

// reset makes a call as new, if nobody else can hold it: it was answered, and its only
// copy, if there was one, was that of the answer.
func (k *call) reset() bool {
	if k.state.Load() != finished || k.attempt.Load() > 1 {
		return false
	}
	body := k.body[:0]
	if cap(body) > 4<<10 {
		body = nil
	}
	principals := k.request.Principals
	clear(principals)
	*k = call{body: body, done: k.done, request: Request{Principals: principals[:0]}}
	return true
}

// terms is what calls that are made at once have in common.
type terms struct {
	table      *table // nil: no routing yet
	nowhere    *group
	expires    int64
	timed      bool
	began, due int64 // began is 0: only the cluster decides
}

func (c *Client) terms(ctx context.Context) terms {
	t := terms{table: c.table.Load(), nowhere: c.nowhere}
	if d, ok := ctx.Deadline(); ok {
		t.expires = int64(d.Sub(c.start))
	} else {
		t.expires, t.timed = c.now()+int64(c.options.timeout), true
	}
	if rules := c.rules.Load(); rules != nil {
		t.began = max(c.now(), 1)
		t.due = t.began + int64(rules.Soonest())
	}
	return t
}

// begin makes k, which is new, the call of r. It has no sequence yet.
func (k *call) begin(r *Request, t *terms) error {
	if err := r.check(); err != nil {
		return err
	}
	k.body = r.append(k.body[:0])
	if err := checkEncoded(k.body); err != nil {
		return err
	}
	k.slot, k.group, k.expires, k.timed = -1, t.nowhere, t.expires, t.timed
	if t.began != 0 {
		k.keep(r)
		k.began, k.due = t.began, t.due
	}
	if t.table != nil {
		if slot, ok := r.slot(t.table.hash, t.table.home); ok {
			k.slot, k.group = int32(slot), t.table.slots[slot]
		}
	}
	return nil
}

// keep copies a request: the clock may read it when its caller has gone on to another.
func (k *call) keep(r *Request) {
	principals := append(k.request.Principals[:0], r.Principals...)
	k.request = *r
	k.request.Principals = principals
	k.request.Attributes, k.request.Costs = maps.Clone(r.Attributes), maps.Clone(r.Costs)
}

// numbered says whether a request gets a sequence: it has no id of its own, and needs one.
func (r *Request) numbered() bool { return r.RequestID == "" && !r.Look }

// began counts n calls.
func (c *Client) began(n int) {
	c.counts.requests.Add(uint64(n))
	c.budget.earn(int64(n))
}

// append encodes the call as an element of StreamRequest.requests. The message
// carries the session.
func (k *call) append(dst []byte, now int64) []byte {
	dst, outer := wire.Open(dst, 5)
	dst = append(dst, k.body...)
	if k.seq != 0 {
		var inner int
		dst, inner = wire.Open(dst, 4)
		if k.lease != nil {
			dst = wire.AppendFixed64(dst, 1, k.lease.leases.session)
		}
		dst = wire.AppendUint(dst, 2, k.seq)
		dst = wire.AppendUint(dst, 3, uint64(k.attempt.Load()))
		dst = wire.AppendUint(dst, 4, uint64(max(0, now-k.first)))
		dst = wire.AppendUint(dst, 5, uint64(k.epoch))
		dst = wire.Close(dst, inner)
	}
	if k.lease != nil {
		dst = k.lease.append(dst)
	}
	return wire.Close(dst, outer)
}

// size is at least what append adds.
func (k *call) size() int {
	if k.lease != nil {
		return len(k.body) + 64 + leaseSize
	}
	return len(k.body) + 64
}

// ends is the sequence of the client's session that ends with k, 0: none. A lease has
// another session, and does not end with its answer.
func (k *call) ends() uint64 {
	if k.lease != nil {
		return 0
	}
	return k.seq
}
