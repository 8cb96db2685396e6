package transport_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/transport"
)

// quick is a node that admits everything at once, with memory for one message.
type quick struct {
	permits
	routing *pb.Routing
	never   chan struct{}
}

func newQuick(addr string) *quick {
	return &quick{never: make(chan struct{}), routing: &pb.Routing{
		ClusterId: "quick", Revision: 1, RoutingKey: make([]byte, 16), Slots: 1, Home: []string{"tenant"},
		SlotGroups: []uint32{0}, Groups: []*pb.GroupRoute{{Epoch: 1, Term: 1, Grpc: addr}}, Nodes: []string{addr},
	}}
}

func (q *quick) Decide(_ context.Context, m *pb.StreamRequest, _ transport.Seats) []*pb.Result {
	type both struct {
		result   pb.Result
		decision pb.Decision
	}
	memory := make([]both, len(m.Requests))
	results := make([]*pb.Result, len(m.Requests))
	for i := range results {
		b := &memory[i]
		b.result.Decision = &b.decision
		d := &b.decision
		d.Allowed, d.Limit, d.Remaining, d.ResetAfterNs = true, 100, 99, 600_000_000
		d.PolicyId, d.PolicyVersion = "payments-standard", 812
		d.Epoch, d.Index, d.Term, d.SlotTimeNs = 1, 123456, 2, 77_000_000_000
		results[i] = &b.result
	}
	return results
}

func (q *quick) Enter(_ any, _ *pb.DecideRequest, requests int, _ time.Duration) (int, transport.Seats) {
	return requests, nil
}

func (q *quick) Routing() *pb.Routing            { return q.routing }
func (q *quick) Policies() transport.Policies    { return new(policies) }
func (q *quick) RoutingChanged() <-chan struct{} { return q.never }

func (q *quick) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{}, nil
}

func (q *quick) Members(context.Context, *pb.MembersRequest) (*pb.MembersResponse, error) {
	return &pb.MembersResponse{}, nil
}

func (q *quick) Remove(context.Context, *pb.RemoveRequest) (*pb.RemoveResponse, error) {
	return &pb.RemoveResponse{}, nil
}

func (q *quick) Drain(context.Context, *pb.DrainRequest) (*pb.DrainResponse, error) {
	return &pb.DrainResponse{}, nil
}

func (q *quick) Undrain(context.Context, *pb.UndrainRequest) (*pb.UndrainResponse, error) {
	return &pb.UndrainResponse{}, nil
}

func (q *quick) Join(context.Context, *pb.JoinRequest) (*pb.JoinResponse, error) {
	return &pb.JoinResponse{}, nil
}

// serveQuick starts a quick node on loopback and a client of it.
func serveQuick(b *testing.B) *client.Client {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := transport.NewServer(newQuick(l.Addr().String()), transport.ServerOptions{})
	go s.Serve(l)
	c, err := client.New([]string{l.Addr().String()}, client.NeverDegrade())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.Close()
		s.Stop()
	})
	if _, err := c.Decide(context.Background(), client.Request{Tenant: "acme"}); err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkClientServer is one decision over loopback, client and server in this
// process. cpu-ns/op is the CPU time of both.
func BenchmarkClientServer(b *testing.B) {
	for _, callers := range []int{1, 64, 256, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			c := serveQuick(b)
			tenants := make([]string, 1024)
			for i := range tenants {
				tenants[i] = fmt.Sprintf("tenant-%d", i)
			}
			before, cpu := c.Stats(), cpuTime()
			b.ReportAllocs()
			b.ResetTimer()
			var work sync.WaitGroup
			for i := range callers {
				work.Go(func() {
					for n := i; n < b.N; n += callers {
						if _, err := c.Decide(context.Background(), client.Request{Tenant: tenants[n%1024]}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			work.Wait()
			b.StopTimer()
			after := c.Stats()
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(b.N)/float64(after.Messages-before.Messages), "requests/message")
		})
	}
}

func BenchmarkClientServerBatch(b *testing.B) {
	for _, size := range []int{100, 500} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			c := serveQuick(b)
			cpu := cpuTime()
			b.ReportAllocs()
			b.ResetTimer()
			var work sync.WaitGroup
			callers := 8 * runtime.GOMAXPROCS(0)
			for i := range callers {
				requests := make([]client.Request, size)
				for j := range requests {
					requests[j].Tenant = fmt.Sprintf("tenant-%d", j)
				}
				work.Go(func() {
					for n := i * size; n < b.N; n += callers * size {
						if _, err := c.DecideBatch(context.Background(), requests); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			work.Wait()
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
