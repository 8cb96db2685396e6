package transport

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// A stream has one goroutine that sends routing and waits for the end
// (serveStream, grpc's own), one that reads, and as many that decide as there
// are messages being decided, up to Inflight: a message that waits for a stuck
// group holds up no other. Whoever has an answer sends it, under mu.
//
// The reader waits in grpc until the handler has returned, so the handler cannot
// wait for it. The server does, see Server.Stop.
type stream struct {
	server  *Server
	grpc    grpc.ServerStream
	jobs    chan asked     // unbuffered: a send succeeds only if a worker is free
	ended   chan error     // the reader's last word; capacity 1
	failed  chan struct{}  // a goroutine of the stream panicked; capacity 1
	work    sync.WaitGroup // the workers
	sending atomic.Int64   // since when an answer waits to be taken, by the server's clock; 0: none does
	closed  atomic.Bool    // the handler is about to return: nothing more may be sent

	mu      sync.Mutex // guards what follows; held while sending
	out     wire.Raw
	pending int           // messages read and not yet answered
	quiet   chan struct{} // closed when pending is 0 after drain
	drained bool          // drain was called
}

// asked is a message that was read at a time of the server's clock.
type asked struct {
	*wire.Requests
	read    int64
	refused bool // some of it is: what is Unread
	seats   Seats
}

// leave gives back what the message holds of the backend.
func (q *asked) leave() {
	if q.seats != nil {
		q.seats.Leave()
	}
}

var (
	errStopping = fault.New(fault.Unavailable, "node is stopping")
	errFailed   = fault.New(fault.OutcomeUnknown, "the node failed on this stream")
	errSlow     = fault.New(fault.OutcomeUnknown, "the stream's answers were not taken")
	errLoaded   = fault.New(fault.Busy, "%d requests are being decided on this node", maxDeciding)
	noRoom      = fault.ToProto(fault.New(fault.Busy, "as many requests wait already as can be decided in time"))
)

const (
	// maxDeciding bounds the requests that a server holds decoded at once, of all
	// streams: with about a KB each some 64 MB. How many may wait the backend says,
	// which is less; this is for those on their way there, and for slots on the move.
	maxDeciding = 64 << 10
	// refusedPause is how long a stream is not read on of which something was refused.
	// Its caller's next messages wait in its connection, at its own cost, and a caller
	// that asks again at once, whatever it is told, costs no more than so many refusals
	// a second. It is half of what a refusal may take.
	refusedPause = 5 * time.Millisecond
	// fedLately is how long a stream is read on after something of it was let in whole: it
	// carries calls for groups that have room, and these must not wait behind refusals.
	fedLately = 20 * time.Millisecond
)

// reserve makes room for n requests to be decided; false: there is none.
func (s *Server) reserve(n int) bool {
	if s.deciding.Add(int64(n)) > maxDeciding {
		s.deciding.Add(int64(-n))
		return false
	}
	return true
}

// clock is ns since the server was made, at least 1.
func (s *Server) clock() int64 { return int64(time.Since(s.born)) + 1 }

func (s *Server) free(n int) { s.deciding.Add(int64(-n)) }

func (s *Server) serveStream(g grpc.ServerStream) error {
	t := &stream{
		server: s, grpc: g, jobs: make(chan asked), ended: make(chan error, 1), failed: make(chan struct{}, 1),
		quiet: make(chan struct{}),
	}
	defer t.close()
	changed := s.backend.RoutingChanged()
	if err := t.sendRouting(); err != nil {
		return err
	}
	s.streams.Go(func() { t.read(g.Context()) })
	look := time.NewTicker(s.options.SlowReader / 2)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if t.slow() {
				s.options.Logger.Warn("a caller takes no answers: its connection is closed")
				s.cut(g.Context())
				return errSlow
			}
		case <-changed:
			changed = s.backend.RoutingChanged()
			if err := t.sendRouting(); err != nil {
				return err
			}
		case err := <-t.ended:
			t.work.Wait()
			return err
		case <-t.failed:
			return errFailed
		case <-s.stopping:
			t.drain()
			return errStopping
		}
	}
}

// read hands each message to a worker until the stream ends.
func (t *stream) read(ctx context.Context) {
	defer close(t.jobs)
	defer t.contain()
	var in wire.Raw
	source := Source(ctx)
	workers, fed := 0, int64(math.MinInt64/2)
	for {
		q, err := t.next(&in, source)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			t.ended <- err
			return
		}
		t.begin()
		t.hand(ctx, q, &workers)
		switch {
		case !q.refused:
			fed = q.read
		case q.read-fed > int64(fedLately):
			rest(ctx, refusedPause)
		}
	}
}

// hand gives a message to a worker, or answers it if there is nothing to decide or
// nobody to do it. workers is the reader's count of them.
func (t *stream) hand(ctx context.Context, q asked, workers *int) {
	n := q.Len()
	switch {
	case n == 0 && q.refused:
		q.leave()
		t.answer(q, nil)
		return
	case !t.server.reserve(n):
		q.leave()
		t.answer(q, failAll(n, errLoaded))
		return
	}
	select {
	case t.jobs <- q:
		return
	default:
	}
	if *workers == t.server.options.Inflight {
		q.leave()
		t.answer(q, failAll(n, fault.New(fault.Busy, "%d messages in flight on this stream", *workers)))
		t.server.free(n)
		return
	}
	*workers++
	t.work.Add(1)
	t.server.streams.Go(func() { t.decide(ctx, q) })
}

// rest waits, no longer than ctx.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// next reads one message, and decodes no more of it than will be decided.
func (t *stream) next(in *wire.Raw, source any) (q asked, err error) {
	if err := t.grpc.RecvMsg(in); err != nil {
		return q, err
	}
	q.read = t.server.clock()
	if err := in.Check(); err != nil {
		return q, err
	}
	q.Requests = requestsPool.Get().(*wire.Requests)
	if err := q.Stream(in.B, 1); err != nil {
		return q, err
	}
	if q.Message.Id == 0 {
		return q, fault.Field("id", "must not be 0")
	}
	all := q.Len() + q.Unread
	room := all
	if len(q.Message.Requests) > 0 {
		room, q.seats = t.server.backend.Enter(source, q.Message.Requests[0], all, t.server.timeout(q.Message.TimeoutNs))
	}
	if q.refused = room < all; room != q.Len() {
		if err := q.Stream(in.B, room); err != nil {
			q.leave()
			return q, err
		}
	}
	return q, nil
}

// decide is a worker. It ends with the reader.
func (t *stream) decide(ctx context.Context, q asked) {
	defer t.work.Done()
	defer t.contain()
	for ok := true; ok; q, ok = <-t.jobs {
		t.one(ctx, q)
	}
}

// one decides and answers one message.
func (t *stream) one(ctx context.Context, q asked) {
	defer t.server.free(q.Len())
	t.answer(q, t.decided(ctx, &q))
}

func (t *stream) decided(ctx context.Context, q *asked) []*pb.Result {
	defer q.leave() // nothing is held while the answer is written
	return t.server.decide(ctx, q.Requests, q.read, q.seats)
}

// contain, deferred, makes a panic the end of the stream instead of the process.
func (t *stream) contain() {
	if p := recover(); p != nil {
		t.server.logPanic(pb.Limiter_Stream_FullMethodName, p)
		select {
		case t.failed <- struct{}{}:
		default:
		}
	}
}

func (t *stream) begin() {
	t.mu.Lock()
	t.pending++
	t.mu.Unlock()
}

// answer sends the results of q and gives q back. An error needs no handling:
// the reader meets it too.
func (t *stream) answer(q asked, results []*pb.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed.Load() {
		t.out.B = wire.AppendRefused(wire.AppendResponse(t.out.B[:0], q.Message.Id, results), q.Unread, noRoom)
		now := t.server.clock()
		if q.refused || anyBusy(results) {
			t.server.options.Busy(time.Duration(now - q.read))
		}
		t.sending.Store(now)
		_ = t.grpc.SendMsg(&t.out)
		t.sending.Store(0)
	}
	t.pending--
	if t.drained && t.pending == 0 {
		close(t.quiet)
		t.drained = false
	}
	requestsPool.Put(q.Requests)
}

func anyBusy(results []*pb.Result) bool {
	for _, r := range results {
		if r.GetError().GetCode() == pb.Code_CODE_BUSY {
			return true
		}
	}
	return false
}

func (t *stream) sendRouting() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.grpc.SendMsg(&pb.StreamResponse{Routing: t.server.backend.Routing()})
}

// drain waits until what was read has been answered, or the stream broke.
func (t *stream) drain() {
	t.mu.Lock()
	idle := t.pending == 0
	t.drained = !idle
	t.mu.Unlock()
	if idle {
		return
	}
	select {
	case <-t.quiet:
	case <-t.failed:
	case <-t.grpc.Context().Done():
	}
}

// close forbids sending, which grpc wants once the handler has returned. It
// waits for an answer under way, unless that is what nobody takes: then the
// handler's return ends it. The reader and the workers end by themselves: their
// context is done.
func (t *stream) close() {
	t.closed.Store(true)
	if t.slow() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
}

// slow says whether an answer has waited for too long to be taken.
func (t *stream) slow() bool {
	since := t.sending.Load()
	return since != 0 && t.server.clock()-since > int64(t.server.options.SlowReader)
}
