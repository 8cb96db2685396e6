package client

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// fakeCluster is nodes with scripted answers, in memory, for bubbles.
type fakeCluster struct {
	t *testing.T

	mu       sync.Mutex
	nodes    map[string]*fakeNode
	routing  *pb.Routing // what nodes tell
	changed  chan struct{}
	mute     bool                       // routing is not pushed
	policies []byte                     // encoded; nil: nodes are of a build that tells none
	asking   map[string]map[uint64]bool // sessions that asked each node for the policies
}

// fakeNode is one of them.
type fakeNode struct {
	pb.UnimplementedLimiterServer
	cluster *fakeCluster
	addr    string
	foreign []byte // not nil: it is a node of another cluster, with these policies; guarded by fakeCluster.mu

	mu       sync.Mutex
	script   func(ctx context.Context, m *pb.StreamRequest) []*pb.Result // nil results: no answer
	server   *grpc.Server
	pipes    *pipeListener
	thaw     chan struct{} // not nil: the node hangs until it is closed
	messages []*pb.StreamRequest
	later    later
}

// newFake starts nodes named by their addresses. Two groups share eight slots;
// the first node leads both.
func newFake(t *testing.T, addrs ...string) *fakeCluster {
	f := &fakeCluster{t: t, nodes: map[string]*fakeNode{}, changed: make(chan struct{})}
	f.routing = &pb.Routing{
		ClusterId: "fake", Revision: 1, RoutingKey: make([]byte, 16), Slots: 8, Home: []string{"tenant"},
		SlotGroups: []uint32{0, 0, 0, 0, 1, 1, 1, 1}, Nodes: addrs,
		Groups: []*pb.GroupRoute{{Group: 0, Epoch: 1, Term: 1, Grpc: addrs[0]}, {Group: 1, Epoch: 1, Term: 1, Grpc: addrs[0]}},
	}
	for _, addr := range addrs {
		f.nodes[addr] = &fakeNode{cluster: f, addr: addr, script: allowAll}
		f.nodes[addr].start()
	}
	return f
}

func (f *fakeCluster) stop() {
	for _, n := range f.nodes {
		n.resume()
		n.kill()
	}
}

// client returns a client that knows the given nodes, or all.
func (f *fakeCluster) client(opts ...Option) *Client {
	addrs := slices.Sorted(func(yield func(string) bool) {
		for a := range f.nodes {
			if !yield(a) {
				return
			}
		}
	})
	opts = append([]Option{WithDialer(f.dial), WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	c, err := New(addrs, opts...)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *fakeCluster) dial(ctx context.Context, addr string) (net.Conn, error) {
	f.mu.Lock()
	n := f.nodes[addr]
	f.mu.Unlock()
	if n == nil {
		return nil, errors.New("no such node")
	}
	n.mu.Lock()
	pipes := n.pipes
	n.mu.Unlock()
	return pipes.dial(ctx)
}

// change edits the routing and pushes it.
func (f *fakeCluster) change(edit func(r *pb.Routing)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.routing = proto.Clone(f.routing).(*pb.Routing)
	edit(f.routing)
	close(f.changed)
	f.changed = make(chan struct{})
}

// lead makes a node the leader of both groups in a term.
func (f *fakeCluster) lead(addr string, term uint64) {
	f.change(func(r *pb.Routing) {
		for _, g := range r.Groups {
			g.Grpc, g.Term = addr, term
		}
	})
}

func (f *fakeCluster) now() (*pb.Routing, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mute {
		return f.routing, nil
	}
	return f.routing, f.changed
}

func (n *fakeNode) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server, n.pipes = grpc.NewServer(), newPipeListener()
	pb.RegisterLimiterServer(n.server, n)
	go n.server.Serve(n.pipes)
}

// kill breaks all connections and refuses new ones.
func (n *fakeNode) kill() {
	n.mu.Lock()
	server := n.server
	n.mu.Unlock()
	server.Stop()
}

// hang makes the node hold whatever reaches it, as SIGSTOP does.
func (n *fakeNode) hang() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.thaw = make(chan struct{})
}

func (n *fakeNode) resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.thaw != nil {
		close(n.thaw)
		n.thaw = nil
	}
}

func (n *fakeNode) answer(script func(context.Context, *pb.StreamRequest) []*pb.Result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.script = script
}

// got returns all messages so far.
func (n *fakeNode) got() []*pb.StreamRequest {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.messages)
}

// requests returns all requests so far.
func (n *fakeNode) requests() (all []*pb.DecideRequest) {
	for _, m := range n.got() {
		all = append(all, m.Requests...)
	}
	return all
}

// gate waits while the node hangs. An error is that of ctx: the node has not gone on.
func (n *fakeNode) gate(ctx context.Context) error {
	n.mu.Lock()
	thaw := n.thaw
	n.mu.Unlock()
	if thaw != nil {
		select {
		case <-thaw:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (n *fakeNode) GetRouting(ctx context.Context, _ *pb.GetRoutingRequest) (*pb.Routing, error) {
	if err := n.gate(ctx); err != nil {
		return nil, err
	}
	r, _ := n.cluster.now()
	return r, nil
}

func (n *fakeNode) GetFallback(ctx context.Context, r *pb.GetFallbackRequest) (*pb.GetFallbackResponse, error) {
	if err := n.gate(ctx); err != nil {
		return nil, err
	}
	f := n.cluster
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.policies == nil {
		return nil, status.Error(codes.Unimplemented, "unknown method")
	}
	if n.foreign != nil {
		return &pb.GetFallbackResponse{
			ClusterId: "another", Version: 9, Digest: 99, Total: uint64(len(n.foreign)), Settled: true, Clients: 50, Data: n.foreign,
		}, nil
	}
	asking := f.asking[n.addr]
	if asking == nil {
		asking = map[uint64]bool{}
		f.asking[n.addr] = asking
	}
	asking[r.Session] = true
	out := &pb.GetFallbackResponse{ClusterId: "fake", Version: 1, Digest: 77, Total: uint64(len(f.policies)), Settled: true, Clients: uint32(len(asking))}
	for s := range asking {
		if s < r.Session {
			out.Rank++
		}
	}
	if r.Digest != out.Digest || r.Offset > 0 {
		out.Offset = r.Offset
		out.Data = f.policies[r.Offset:min(out.Total, r.Offset+100)] // in many pieces
	}
	return out, nil
}

func (n *fakeNode) Stream(g grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamResponse]) error {
	n.gate(g.Context())
	var mu sync.Mutex
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		for {
			r, changed := n.cluster.now()
			mu.Lock()
			_ = g.Send(&pb.StreamResponse{Routing: r})
			mu.Unlock()
			select {
			case <-changed:
				n.gate(g.Context())
			case <-g.Context().Done():
				return
			}
		}
	})
	for {
		m, err := g.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		n.mu.Lock()
		n.messages = append(n.messages, m)
		script := n.script
		n.mu.Unlock()
		work.Go(func() {
			n.gate(g.Context())
			if results := script(g.Context(), m); results != nil {
				mu.Lock()
				defer mu.Unlock()
				_ = g.Send(&pb.StreamResponse{Id: m.Id, Results: results})
			}
		})
	}
}

func allowAll(_ context.Context, m *pb.StreamRequest) []*pb.Result {
	return each(m, func(*pb.DecideRequest) *pb.Result { return allowed() })
}

func allowed() *pb.Result {
	return &pb.Result{Decision: &pb.Decision{Allowed: true, Limit: 10, Remaining: 9, PolicyId: "p", PolicyVersion: 3}}
}

func refuse(err error) func(context.Context, *pb.StreamRequest) []*pb.Result {
	return func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
		return each(m, func(*pb.DecideRequest) *pb.Result { return failure(err) })
	}
}

func silent(context.Context, *pb.StreamRequest) []*pb.Result { return nil }

func failure(err error) *pb.Result { return &pb.Result{Error: fault.ToProto(err)} }

func each(m *pb.StreamRequest, f func(*pb.DecideRequest) *pb.Result) []*pb.Result {
	results := make([]*pb.Result, len(m.Requests))
	for i, r := range m.Requests {
		results[i] = f(r)
	}
	return results
}

// pipeListener accepts in-memory connections.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
	case <-ctx.Done():
	}
	client.Close()
	return nil, errors.New("connection refused")
}

// nobody is a dialer whose every node refuses.
func nobody(context.Context, string) (net.Conn, error) { return nil, errors.New("connection refused") }
