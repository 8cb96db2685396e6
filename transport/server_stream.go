package transport

import (
	"context"
	"errors"
	"io"
	"sync"

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
	server *Server
	grpc   grpc.ServerStream
	jobs   chan *wire.Requests // unbuffered: a send succeeds only if a worker is free
	ended  chan error          // the reader's last word; capacity 1
	failed chan struct{}       // a goroutine of the stream panicked; capacity 1
	work   sync.WaitGroup      // the workers

	mu      sync.Mutex // guards what follows; held while sending
	out     wire.Raw
	pending int           // messages read and not yet answered
	quiet   chan struct{} // closed when pending is 0 after drain
	drained bool          // drain was called
	closed  bool          // the handler is about to return: nothing more may be sent
}

var (
	errStopping = fault.New(fault.Unavailable, "node is stopping")
	errFailed   = fault.New(fault.OutcomeUnknown, "the node failed on this stream")
)

func (s *Server) serveStream(g grpc.ServerStream) error {
	t := &stream{
		server: s, grpc: g, jobs: make(chan *wire.Requests), ended: make(chan error, 1), failed: make(chan struct{}, 1),
		quiet: make(chan struct{}),
	}
	defer t.close()
	changed := s.backend.RoutingChanged()
	if err := t.sendRouting(); err != nil {
		return err
	}
	s.streams.Go(func() { t.read(g.Context()) })
	for {
		select {
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
	workers := 0
	for {
		q, err := t.next(&in)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			t.ended <- err
			return
		}
		t.begin()
		select {
		case t.jobs <- q:
		default:
			if workers == t.server.options.Inflight {
				t.answer(q, failAll(q.Len(), fault.New(fault.Busy, "%d messages in flight on this stream", workers)))
				continue
			}
			workers++
			t.work.Add(1)
			t.server.streams.Go(func() { t.decide(ctx, q) })
		}
	}
}

// next reads one message.
func (t *stream) next(in *wire.Raw) (*wire.Requests, error) {
	if err := t.grpc.RecvMsg(in); err != nil {
		return nil, err
	}
	if err := in.Check(); err != nil {
		return nil, err
	}
	q := requestsPool.Get().(*wire.Requests)
	if err := q.Stream(in.B); err != nil {
		return nil, err
	}
	if q.Message.Id == 0 {
		return nil, fault.Field("id", "must not be 0")
	}
	return q, nil
}

// decide is a worker. It ends with the reader.
func (t *stream) decide(ctx context.Context, q *wire.Requests) {
	defer t.work.Done()
	defer t.contain()
	for ok := true; ok; q, ok = <-t.jobs {
		t.answer(q, t.server.decide(ctx, q))
	}
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
func (t *stream) answer(q *wire.Requests, results []*pb.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.out.B = wire.AppendResponse(t.out.B[:0], q.Message.Id, results)
		_ = t.grpc.SendMsg(&t.out)
	}
	t.pending--
	if t.drained && t.pending == 0 {
		close(t.quiet)
		t.drained = false
	}
	requestsPool.Put(q)
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

// close forbids sending, which grpc wants once the handler has returned. The
// reader and the workers end by themselves then: their context is done.
func (t *stream) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
}
