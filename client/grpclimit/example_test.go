package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/grpclimit"
)

func Example() {
	node, stop := startNode() // an address of your cluster
	defer stop()
	c, err := client.New([]string{node})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	opts := []grpclimit.Option{
		grpclimit.Tenant(grpclimit.Metadata("x-tenant")),
		grpclimit.MethodCosts(map[string]int64{"/shop.Orders/Export": 10}),
		grpclimit.Skip(func(_ context.Context, call grpclimit.Call) bool {
			return strings.HasPrefix(call.Method, "/grpc.reflection.")
		}),
	}
	s := grpc.NewServer(
		grpc.ChainUnaryInterceptor(grpclimit.UnaryServer(c, opts...)),
		grpc.ChainStreamInterceptor(grpclimit.StreamServer(c, opts...)),
	)
	healthpb.RegisterHealthServer(s, health.NewServer()) // and the services of your own
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go s.Serve(l)
	defer s.GracefulStop()

	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-tenant", "acme")
	for range 3 {
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
	// rpc error: code = ResourceExhausted desc = rate limit exceeded: policy calls, retry in 500ms
}

// node is one node of a cluster in memory, with one bucket of two tokens.
type node struct {
	pb.UnimplementedLimiterServer
	addr string
}

func (n *node) Stream(g grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamResponse]) error {
	err := g.Send(&pb.StreamResponse{Routing: &pb.Routing{
		ClusterId: "example", RoutingKey: make([]byte, 16), Slots: 1, Home: []string{"tenant"}, SlotGroups: []uint32{0},
		Groups: []*pb.GroupRoute{{Epoch: 1, Term: 1, Grpc: n.addr}}, Nodes: []string{n.addr},
	}})
	left := uint64(2)
	for err == nil {
		var m *pb.StreamRequest
		if m, err = g.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			break
		}
		out := &pb.StreamResponse{Id: m.GetId()}
		for range m.GetRequests() {
			d := &pb.Decision{Allowed: left > 0, Limit: 2, PolicyId: "calls", PolicyVersion: 1}
			if d.Allowed {
				left--
			} else {
				d.Reason, d.RetryAfterNs = "rate_limited", int64(500*time.Millisecond)
			}
			d.Remaining = left
			out.Results = append(out.Results, &pb.Result{Decision: d})
		}
		err = g.Send(out)
	}
	return err
}

func startNode() (addr string, stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer()
	pb.RegisterLimiterServer(s, &node{addr: l.Addr().String()})
	go s.Serve(l)
	return l.Addr().String(), s.Stop
}
