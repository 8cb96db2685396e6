package transport_test

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
	"github.com/ringlimit/ringlimit/internal/simnet"
	"github.com/ringlimit/ringlimit/transport"
)

// backend is a node made of functions.
type backend struct {
	permits
	policies policies

	decide func(ctx context.Context, m *pb.StreamRequest) []*pb.Result
	status func() (*pb.StatusResponse, error)
	room   func(requests int) int // nil: for all
	seats  atomic.Int64           // that were given and not given back

	mu      sync.Mutex
	routing *pb.Routing
	changed chan struct{}
}

// permits answers what is about a decision made before.
type permits struct{}

func (permits) Refund(context.Context, *pb.RefundRequest) (*pb.RefundResponse, error) {
	return &pb.RefundResponse{Refunded: true}, nil
}

func (permits) Release(context.Context, *pb.PermitRequest) (*pb.PermitResponse, error) {
	return &pb.PermitResponse{Held: true}, nil
}

func (permits) Renew(context.Context, *pb.PermitRequest) (*pb.PermitResponse, error) {
	return &pb.PermitResponse{Held: true, ExpiresAfterNs: 1}, nil
}

func (permits) GetFallback(_ context.Context, r *pb.GetFallbackRequest) (*pb.GetFallbackResponse, error) {
	return &pb.GetFallbackResponse{Clients: 3, Digest: r.GetDigest()}, nil
}

func (permits) Explain(_ context.Context, r *pb.DecideRequest) (*pb.ExplainResponse, error) {
	return &pb.ExplainResponse{Home: r.GetSubject().GetTenant()}, nil
}

func (b *backend) Policies() transport.Policies { return &b.policies }

func newBackend(leader string) *backend {
	return &backend{decide: admit, routing: newQuick(leader).routing, changed: make(chan struct{})}
}

func admit(_ context.Context, m *pb.StreamRequest) []*pb.Result {
	results := make([]*pb.Result, len(m.Requests))
	for i, r := range m.Requests {
		results[i] = &pb.Result{Decision: &pb.Decision{Allowed: true, PolicyId: r.GetSubject().GetTenant()}}
	}
	return results
}

func refuse(err error) func(context.Context, *pb.StreamRequest) []*pb.Result {
	return func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
		results := make([]*pb.Result, len(m.Requests))
		for i := range results {
			results[i] = &pb.Result{Error: fault.ToProto(err)}
		}
		return results
	}
}

func (b *backend) Decide(ctx context.Context, m *pb.StreamRequest, _ transport.Seats) []*pb.Result {
	return b.decide(ctx, m)
}

func (b *backend) Enter(_ any, _ *pb.DecideRequest, requests int, _ time.Duration) (int, transport.Seats) {
	n := requests
	if b.room != nil {
		n = b.room(requests)
	}
	b.seats.Add(int64(n))
	return n, taken{&b.seats, n}
}

// taken is seats of a backend.
type taken struct {
	of *atomic.Int64
	n  int
}

func (s taken) Leave() { s.of.Add(-int64(s.n)) }

func (b *backend) Routing() *pb.Routing {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.routing
}

func (b *backend) RoutingChanged() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *backend) route(r *pb.Routing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.routing = r
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *backend) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return b.status()
}

func (b *backend) Members(context.Context, *pb.MembersRequest) (*pb.MembersResponse, error) {
	return &pb.MembersResponse{Nodes: []*pb.NodeStatus{{Name: "a"}}}, nil
}

func (b *backend) Remove(_ context.Context, r *pb.RemoveRequest) (*pb.RemoveResponse, error) {
	return nil, fault.New(fault.NotFound, "no node %q", r.GetNode())
}

func (b *backend) Drain(_ context.Context, r *pb.DrainRequest) (*pb.DrainResponse, error) {
	return &pb.DrainResponse{Already: r.GetNode() == "a"}, nil
}

func (b *backend) Undrain(_ context.Context, r *pb.UndrainRequest) (*pb.UndrainResponse, error) {
	return nil, fault.New(fault.NotFound, "no node %q", r.GetNode())
}

func (b *backend) Join(context.Context, *pb.JoinRequest) (*pb.JoinResponse, error) {
	return &pb.JoinResponse{}, nil
}

// served is a server in a bubble, and a connection to it.
type served struct {
	t      *testing.T
	net    *simnet.Network
	b      *backend
	server *transport.Server
	conn   *grpc.ClientConn
	pb.LimiterClient
}

// serve runs a test in a bubble, which fails if a goroutine outlives it.
func serve(t *testing.T, o transport.ServerOptions, test func(t *testing.T, s *served)) {
	synctest.Test(t, func(t *testing.T) {
		s := &served{t: t, net: simnet.New(), b: newBackend("a:1")}
		if o.Logger == nil {
			o.Logger = slog.New(slog.DiscardHandler)
		}
		s.server = transport.NewServer(s.b, o)
		l, err := s.net.Host("a").Listen(":1")
		if err != nil {
			t.Fatal(err)
		}
		go s.server.Serve(l)
		s.conn, err = grpc.NewClient("passthrough:///a:1", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return s.net.Host("caller").Dial(ctx, addr) }))
		if err != nil {
			t.Fatal(err)
		}
		s.LimiterClient = pb.NewLimiterClient(s.conn)
		test(t, s)
		s.conn.Close()
		s.server.Stop()
		synctest.Wait()
		if n := s.b.seats.Load(); n != 0 {
			t.Errorf("%d seats were not given back", n)
		}
	})
}

// raw calls a method with bytes and returns the kind of its error.
func (s *served) raw(method string, b []byte) error {
	var out wire.Raw
	err := s.conn.Invoke(s.t.Context(), method, &wire.Raw{B: b}, &out, grpc.ForceCodecV2(wire.Codec{}))
	return fault.FromStatus(err)
}

// stream opens a stream and reads the routing it begins with.
func (s *served) stream() pb.Limiter_StreamClient {
	g, err := s.Stream(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if first := s.recv(g); first.GetRouting().GetClusterId() != "quick" || first.GetId() != 0 {
		s.t.Fatalf("a stream begins with %v", first)
	}
	return g
}

func (s *served) recv(g pb.Limiter_StreamClient) *pb.StreamResponse {
	s.t.Helper()
	r, err := g.Recv()
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *served) send(g pb.Limiter_StreamClient, m *pb.StreamRequest) {
	s.t.Helper()
	if err := g.Send(m); err != nil {
		s.t.Fatal(err)
	}
}

// requests returns n well-formed ones.
func requests(n int) []*pb.DecideRequest {
	all := make([]*pb.DecideRequest, n)
	for i := range all {
		all[i] = &pb.DecideRequest{Subject: &pb.Subject{Tenant: "acme"}}
	}
	return all
}
