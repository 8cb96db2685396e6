package cluster

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/intake"
	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/transport"
)

// A node that is asked for more than it can decide refuses before it does any work:
// each group has a queue that says how many requests may wait for it, here or at the
// node that leads it (package intake). A message takes a seat for each request in the
// queue of its group before the request is matched, and gives all of them back when it
// is answered.

// maxWaiting is how many requests may wait for a group at most: those of the entry in
// flight and those of the next.
const maxWaiting = 2 * bucket.MaxEntryRequests

// origin is how a message came to be decided on this node.
type origin struct {
	source    any  // the connection or the node that sent it
	forwarded bool // by another node: what this one does not lead is refused
	seated    bool // its requests have seats: they are decided anew
	entered   *entered
}

// again is the origin of requests that are decided anew.
func (o origin) again() origin {
	o.seated, o.entered = true, nil
	return o
}

// entered is the seats of a message that was let in before all of it was read. They
// are whoever's that let it in, who gives them back; it may use them.
type entered struct {
	queue  *intake.Queue
	source any
	n      int
	at     int64 // Node.since
}

// Leave gives back what is left of the seats.
func (e *entered) Leave() { e.queue.Leave(e.source, e.n) }

// seats are what one message has of the queues of its groups.
type seats struct {
	from  origin
	begun int64 // Node.since
	left  int64 // ns until the caller gives up
	rows  []row
}

// row is the seats in the queue of one group.
type row struct {
	queue       *intake.Queue
	taken, used int
	whole       bool     // it asked for all requests of the message, else for one after the other
	of          *entered // whose seats they are; nil: the message's own
}

// since is the time since the node was opened, in ns.
func (n *Node) since() int64 { return int64(time.Since(n.ready.born)) }

func (s *seats) begin(ctx context.Context, now int64, from origin) {
	*s = seats{from: from, begun: now, left: math.MaxInt64, rows: s.rows[:0]}
	if d, ok := ctx.Deadline(); ok {
		s.left = int64(time.Until(d))
	}
	if e := from.entered; e != nil {
		s.rows = append(s.rows, row{queue: e.queue, taken: e.n, whole: true, of: e})
	}
}

// row finds the seats in a group's queue. Those of the first group are for all requests
// that the message has: most messages are for one.
func (s *seats) row(v *view, group uint32, requests int) *row {
	q := v.queues[group]
	for i := range s.rows {
		if s.rows[i].queue == q {
			return &s.rows[i]
		}
	}
	r := row{queue: q, whole: len(s.rows) == 0}
	if r.whole {
		r.taken = q.Enter(s.begun, s.from.source, requests, s.left)
	}
	s.rows = append(s.rows, r)
	return &s.rows[len(s.rows)-1]
}

// first takes seats for a message in the queue of the group that its first request is
// most likely for, and so mostly all are. It says whether any was free, or is not needed.
func (s *seats) first(v *view, req *policy.Request, requests int) bool {
	group, ok := v.expected(req)
	return s.from.seated || !ok || s.row(v, group, requests).taken > 0
}

// has says whether a seat is free for the next request, one of so many that are left.
func (s *seats) has(v *view, group uint32, requests int) bool {
	if s.from.seated {
		return true
	}
	return s.free(s.row(v, group, requests))
}

// free says whether r has a seat for one request more.
func (s *seats) free(r *row) bool {
	if r.used == r.taken && !r.whole {
		r.taken += r.queue.Enter(s.begun, s.from.source, 1, s.left)
	}
	return r.used < r.taken
}

// take uses a seat, if one is free.
func (s *seats) take(v *view, group uint32, requests int) bool {
	if s.from.seated {
		return true
	}
	r := s.row(v, group, requests)
	if !s.free(r) {
		return false
	}
	r.used++
	return true
}

// leaveFree gives back what is not used.
func (s *seats) leaveFree() {
	for i := range s.rows {
		r := &s.rows[i]
		r.queue.Leave(s.from.source, r.taken-r.used)
		r.taken = r.used
		if r.of != nil {
			r.of.n = r.used
		}
	}
}

// leave gives everything back.
func (s *seats) leave() {
	for i := range s.rows {
		if r := &s.rows[i]; r.of == nil {
			r.queue.Leave(s.from.source, r.taken)
		}
	}
	clear(s.rows)
}

// expected is the group of a request's home, which decides it unless none of its
// buckets lives there; ok: it has a home.
func (v *view) expected(req *policy.Request) (group uint32, ok bool) {
	home := v.index.Home(req)
	if !home.OK {
		return 0, false
	}
	return v.state.SlotGroup[home.Slot], true
}

// Enter takes seats for the requests of a message of which only the first is read yet,
// in the queue of the group that this is for, as most likely all are. Those that get
// none are not worth reading.
func (n *Node) Enter(source any, first *pb.DecideRequest, requests int, left time.Duration) (int, transport.Seats) {
	v := n.view.Load()
	if !v.placed() {
		return requests, nil
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	req := s.subject(first)
	if req.Validate() != nil {
		return requests, nil // and is told why
	}
	group, ok := v.expected(req)
	if !ok {
		return requests, nil
	}
	e := &entered{queue: v.queues[group], source: source, at: n.since()}
	if e.n = e.queue.Enter(e.at, source, requests, int64(left)); e.n == 0 {
		return 0, nil
	}
	return e.n, e
}

// refusal is what all requests share that find no seat. Nobody changes it.
var refusal = &pb.Result{Error: fault.ToProto(fault.New(fault.Busy, "as many requests wait already as can be decided in time"))}

func (b *batch) refuse(i int) { b.pointers[i] = refusal }

// learned tells the queue of a part's group how long its requests took, if a commit
// was needed for any.
func (n *Node) learned(v *view, p *part, b *batch) {
	if slices.Contains(p.outcome.Uncommitted, false) {
		now := n.since()
		v.queues[p.group].Answered(now, len(p.at), now-b.begun)
	}
}

// learnedFrom does the same for what the group's leader, another node, answered.
func (n *Node) learnedFrom(v *view, p *part, b *batch, results []*pb.Result) {
	committed, busy := 0, 0
	for _, r := range results {
		if d := r.GetDecision(); d != nil && !d.Uncommitted {
			committed++
		}
		if r.GetError().GetCode() == pb.Code_CODE_BUSY {
			busy++
		}
	}
	q := v.queues[p.group]
	if busy > 0 && !b.from.seated {
		q.Full(busy)
	}
	if committed > 0 {
		now := n.since()
		q.Answered(now, committed, now-b.begun)
	}
}
