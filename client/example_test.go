package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
)

func Example() {
	addr, stop := startNode()
	defer stop()

	c, err := client.New([]string{addr})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	for range 3 {
		d, err := c.Decide(context.Background(), client.Request{Tenant: "acme", Route: "GET:/v1/items"})
		switch {
		case errors.Is(err, fault.Deadline):
			fmt.Println("no answer in time")
		case err != nil:
			fmt.Println(err)
		case d.Allowed:
			fmt.Println("allowed,", d.Remaining, "left")
		default:
			fmt.Println("denied, retry after", d.RetryAfter)
		}
	}
	// Output:
	// allowed, 1 left
	// allowed, 0 left
	// denied, retry after 500ms
}

func ExampleClient_DecideBatch() {
	addr, stop := startNode()
	defer stop()
	c, err := client.New([]string{addr}, client.WithDefaultTimeout(5*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	results, err := c.DecideBatch(context.Background(), []client.Request{
		{Tenant: "acme"}, {Tenant: "acme", Cost: 5}, {Tenant: "acme", Look: true},
	})
	for _, r := range results {
		fmt.Println(r.Allowed, r.Remaining, r.Err)
	}
	fmt.Println(err)
	// Output:
	// true 1 <nil>
	// false 1 <nil>
	// true 1 <nil>
	// <nil>
}

// A permit of a concurrency limit is given back when the work is done, and the
// store that the work writes to is told the fencing token.
func ExampleClient_Release() {
	addr, stop := startNode()
	defer stop()
	c, err := client.New([]string{addr})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ctx := context.Background()
	export := client.Request{Tenant: "acme", Route: "POST:/v1/export"}
	d, err := c.Decide(ctx, export)
	if err != nil || !d.Allowed {
		fmt.Println("not now:", d.RetryAfter, err)
		return
	}
	fmt.Println("write with fencing token", d.FencingToken)
	if left, held, err := c.Renew(ctx, export, d.PermitID); err == nil && held {
		fmt.Println("it goes on, for at most", left)
	}
	held, err := c.Release(ctx, export, d.PermitID)
	fmt.Println("released:", held, err)
	// Output:
	// write with fencing token 7
	// it goes on, for at most 10m0s
	// released: true <nil>
}

// What a decision took under an id of the caller's own can be given back: here a
// login counts only if it failed.
func ExampleClient_Refund() {
	addr, stop := startNode()
	defer stop()
	c, err := client.New([]string{addr})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ctx := context.Background()
	login := client.Request{Principals: []client.Principal{{Type: "user", ID: "ann"}}, Route: "POST:/login", RequestID: "login-7f3a"}
	if d, err := c.Decide(ctx, login); err != nil || !d.Allowed {
		fmt.Println("not now:", d.RetryAfter, err)
		return
	}
	refunded, _, err := c.Refund(ctx, login, 0)
	fmt.Println("the password was right, refunded:", refunded, err)
	// Output:
	// the password was right, refunded: true <nil>
}

// A job in the background waits for its turn, if that comes before its deadline.
func ExampleClient_Wait() {
	addr, stop := startNode()
	defer stop()
	c, err := client.New([]string{addr}, client.WithDefaultTimeout(5*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
	defer cancel()
	for range 3 {
		d, err := c.Wait(ctx, client.Request{Tenant: "acme", Route: "JOB:/reindex"})
		switch {
		case errors.Is(err, client.ErrWaitTooLong):
			fmt.Println("not before", d.RetryAfter)
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println("its turn,", d.Remaining, "left")
		}
	}
	// Output:
	// its turn, 1 left
	// its turn, 0 left
	// not before 500ms
}

// A permit is renewed for as long as the work goes on. If it is lost all the same, the
// context of the work ends.
func ExampleHold() {
	addr, stop := startNode()
	defer stop()
	c, err := client.New([]string{addr}, client.WithDefaultTimeout(5*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	export := client.Request{Tenant: "acme", Route: "POST:/v1/export"}
	d, err := c.Wait(context.Background(), export)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, held := client.Hold(context.Background(), c, export, &d)
	fmt.Println("work with fencing token", d.FencingToken)
	if errors.Is(context.Cause(ctx), client.ErrPermitLost) {
		fmt.Println("somebody else may be at it")
	}
	fmt.Println("released:", held.Release(context.Background()))
	// Output:
	// work with fencing token 7
	// released: <nil>
}

// A client that starts while no node can be reached decides by what it, or another
// one, was told before: here by a policy whose failure mode is closed.
func ExampleWithPolicyCache() {
	dir, err := os.MkdirTemp("", "ringlimit")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "policies.json")
	if err := os.WriteFile(path, []byte(earlier), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	addr, stop := startNode()
	stop() // it refuses connections

	c, err := client.New([]string{addr}, client.WithPolicyCache(path), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	for _, route := range []string{"POST:/login", "GET:/v1/items"} {
		d, err := c.Decide(context.Background(), client.Request{Tenant: "acme", Route: route})
		fmt.Println(d.Allowed, d.Degraded, d.FailureMode, d.Reason, err)
	}
	fmt.Println(c.Stats().Degraded, "answers without the cluster")
	// Output:
	// false true closed limiter_unavailable <nil>
	// true true local  <nil>
	// 2 answers without the cluster
}

// earlier is a policy cache.
const earlier = `{"format":1,"cluster":"example","version":3,"digest":0,"clients":4,"policies":{"home":["tenant"],"no_match":"allow","policies":[
	{"id":"items","version":2,"match":{"route":"GET:/v1/*"},"scope":["tenant"],"algorithm":"token_bucket","amount":100,"window_ns":1000000000,"burst":100},
	{"id":"login","version":3,"match":{"route":"POST:/login"},"scope":["tenant"],"algorithm":"token_bucket","amount":5,"window_ns":60000000000,"burst":5,
		"on_unavailable":{"mode":"closed","after_ns":50000000}}]}}`

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
	left := int64(2)
	for err == nil {
		var m *pb.StreamRequest
		if m, err = g.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			break
		}
		out := &pb.StreamResponse{Id: m.GetId()}
		for _, r := range m.GetRequests() {
			cost := int64(1)
			if r.Cost != nil {
				cost = r.GetCost()
			}
			d := &pb.Decision{Allowed: max(cost, 1) <= left, PermitId: "p7", FencingToken: 7}
			if d.Allowed {
				left -= cost
			} else {
				d.RetryAfterNs = int64(500 * time.Millisecond)
			}
			d.Remaining = uint64(left)
			out.Results = append(out.Results, &pb.Result{Decision: d})
		}
		err = g.Send(out)
	}
	return err
}

func (n *node) Refund(context.Context, *pb.RefundRequest) (*pb.RefundResponse, error) {
	return &pb.RefundResponse{Refunded: true}, nil
}

func (n *node) Renew(context.Context, *pb.PermitRequest) (*pb.PermitResponse, error) {
	return &pb.PermitResponse{Held: true, ExpiresAfterNs: int64(10 * time.Minute)}, nil
}

func (n *node) Release(context.Context, *pb.PermitRequest) (*pb.PermitResponse, error) {
	return &pb.PermitResponse{Held: true}, nil
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
