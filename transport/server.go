package transport

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
	"github.com/ringlimit/ringlimit/transport/envoy"
)

// Backend is the node behind the server. All methods are called by many
// goroutines at once. Errors should be of a fault kind; others are INTERNAL.
type Backend interface {
	// Decide answers the requests of m: exactly one result each, in order, for
	// a unary call, a batch and a message of a stream alike. Each request is
	// well formed (cost in range, ids named properly, counts bounded), each
	// Sent carries its session; Acked and Revision are of streams only. It
	// returns when all are answered, and soon after ctx is done. m is the
	// callee's until it returns, no longer; strings in it may be kept, but hold
	// on to the whole message. The results are the server's from then on. A
	// decision of one policy may leave Limits out.
	// Its caller is Source(ctx). seats are what Enter gave m's requests, nil for nothing;
	// they stay its caller's.
	Decide(ctx context.Context, m *pb.StreamRequest, seats Seats) []*pb.Result
	// Enter says how many of the requests of a message are worth reading, from the
	// first on: the others are answered BUSY. source is who asks, first what it asks
	// first, which is not checked yet, left how long it will wait. What the requests hold
	// meanwhile are their seats, nil if that is nothing. It must cost little.
	Enter(source any, first *pb.DecideRequest, requests int, left time.Duration) (n int, seats Seats)
	// Routing returns the newest routing, never nil. It is shared: nobody changes it.
	Routing() *pb.Routing
	// RoutingChanged returns a channel that is closed at the next change. Who
	// asks for it before Routing misses none.
	RoutingChanged() <-chan struct{}

	// Refund gives back what a decision took. The request has an id and a subject
	// within bounds; so do those of Release and Renew.
	Refund(ctx context.Context, r *pb.RefundRequest) (*pb.RefundResponse, error)
	Release(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error)
	Renew(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error)
	// Explain takes nothing. r is well formed as those of Decide, and the callee's
	// until it returns.
	Explain(ctx context.Context, r *pb.DecideRequest) (*pb.ExplainResponse, error)

	// GetFallback tells a client what it would decide by if no node answered, and
	// counts it.
	GetFallback(ctx context.Context, r *pb.GetFallbackRequest) (*pb.GetFallbackResponse, error)

	// Policies returns the part that changes policies, always the same.
	Policies() Policies

	Join(ctx context.Context, r *pb.JoinRequest) (*pb.JoinResponse, error)
	Status(ctx context.Context, r *pb.StatusRequest) (*pb.StatusResponse, error)
	Members(ctx context.Context, r *pb.MembersRequest) (*pb.MembersResponse, error)
	Remove(ctx context.Context, r *pb.RemoveRequest) (*pb.RemoveResponse, error)
	// Drain begins to empty a node and returns before that is done.
	Drain(ctx context.Context, r *pb.DrainRequest) (*pb.DrainResponse, error)
	Undrain(ctx context.Context, r *pb.UndrainRequest) (*pb.UndrainResponse, error)
}

// Seats are what requests hold of a backend from the moment they are let in.
type Seats interface {
	// Leave gives them back. It is called once, when the requests are answered.
	Leave()
}

// ServerOptions are the limits of a server. The zero value is ready to use.
type ServerOptions struct {
	Logger   *slog.Logger  // nil: slog.Default
	Timeout  time.Duration // of a decision whose caller names no deadline, and its upper bound; 0: 10 s
	Inflight int           // messages of one stream being decided; more are answered BUSY; 0: 32
	// SlowReader is how long a caller may leave an answer before its connection is
	// closed: until then it holds the memory of all that it has asked; 0: 5 s.
	SlowReader time.Duration
	GRPC       []grpc.ServerOption // more options, such as credentials
	// Busy is told of each message and call that was answered BUSY, wholly or in part:
	// how long after it was read. It is called by many goroutines; nil: nobody is told.
	Busy func(after time.Duration)
}

// What one connection and one stream may hold. The windows are static because
// measuring them costs pings, and large enough for a few full messages.
const (
	maxStreams       = 256     // per connection
	maxHeaderBytes   = 8 << 10 // grpc's own default is 16 MiB
	streamWindow     = 1 << 20
	connectionWindow = 4 << 20
	// grpc refuses longer messages unread, with a RESOURCE_EXHAUSTED that does not
	// say whether the request was too long or the answer; those between
	// wire.MaxMessage and this get an INVALID_ARGUMENT that says why.
	hardMessageLimit = 4 * wire.MaxMessage
	minPingInterval  = time.Second // clients that ping more often are cut off
)

// Server answers callers of one node: Limiter, Policies, Cluster, Envoy's rate limit
// service, gRPC health and reflection. Serve is that of grpc.
type Server struct {
	*grpc.Server
	// Envoy is Envoy's rate limit service; it is a prometheus.Collector.
	Envoy     *envoy.Server
	streams   sync.WaitGroup // what outlives its handler for a moment: readers and workers of streams, and what Envoy starts
	born      time.Time
	deciding  atomic.Int64 // requests that streams have read and not answered
	conns     conns
	backend   Backend
	options   ServerOptions
	health    *health.Server
	uploads   chan struct{} // one for each policy file being read; full: no more
	backingUp atomic.Bool
	stopping  chan struct{} // closed by Shutdown: nothing more is decided
	stopOnce  sync.Once
}

// NewServer returns a server for b that is not serving yet as far as gRPC
// health goes; see SetServing.
func NewServer(b Backend, o ServerOptions) *Server {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.SlowReader <= 0 {
		o.SlowReader = 5 * time.Second
	}
	if o.Inflight <= 0 {
		o.Inflight = 32
	}
	if o.Busy == nil {
		o.Busy = func(time.Duration) {}
	}
	s := &Server{
		born: time.Now(), backend: b, options: o, health: health.NewServer(),
		uploads: make(chan struct{}, maxUploads), stopping: make(chan struct{}),
	}
	s.Server = grpc.NewServer(append(s.grpcOptions(), o.GRPC...)...)
	s.RegisterService(limiterDesc(), s)
	s.RegisterService(policiesDesc(), s)
	s.RegisterService(clusterDesc(), s)
	s.Envoy = envoy.New(envoy.Options{
		Service: s, Fallback: b.GetFallback, Go: s.streams.Go, Nodes: func() int { return len(b.Routing().GetNodes()) },
	})
	s.Envoy.Register(s)
	healthpb.RegisterHealthServer(s.Server, s.health)
	reflection.Register(s.Server)
	s.SetServing(false)
	return s
}

func (s *Server) grpcOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(wire.Codec{}),
		grpc.ChainUnaryInterceptor(s.guardUnary),
		grpc.ChainStreamInterceptor(s.guardStream),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WaitForHandlers(true),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxRecvMsgSize(hardMessageLimit),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.NumStreamWorkers(uint32(2 * runtime.GOMAXPROCS(0))),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
	}
}

// SetServing sets what gRPC health says, for the whole server and for Limiter.
func (s *Server) SetServing(serving bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if serving {
		status = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus(pb.Limiter_ServiceDesc.ServiceName, status)
}

// Shutdown answers UNAVAILABLE, uncharged, to whatever arrives from now on,
// lets what is being decided finish, ends the streams and returns when all
// handlers have. If ctx ends first, connections are cut.
func (s *Server) Shutdown(ctx context.Context) {
	s.stopOnce.Do(func() { close(s.stopping) })
	s.health.Shutdown()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.GracefulStop()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	s.Stop()
	<-done
}

// Stop cuts all connections and returns when everything that was started for
// them has ended. Calls being decided see their context end.
func (s *Server) Stop() {
	s.Server.Stop()
	s.streams.Wait() // no handler is left, so nobody adds to it, but a reader for its own workers
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}
