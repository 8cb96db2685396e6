package httplimit_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"google.golang.org/grpc"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/httplimit"
)

// A server whose requests are counted by the tenant that asks and by route.
func Example() {
	addr, stop := startNode()
	defer stop()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/export", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "exported") })

	c, err := client.New([]string{addr})
	if err != nil {
		log.Fatal(err)
	}
	limited := httplimit.New(c, httplimit.Tenant(httplimit.Header("X-Tenant")))(mux)

	s := httptest.NewServer(limited)
	defer s.Close()
	defer c.Close()
	for range 3 {
		r, err := http.NewRequest(http.MethodPost, s.URL+"/v1/export", nil)
		if err != nil {
			log.Fatal(err)
		}
		r.Header.Set("X-Tenant", "acme")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode, resp.Header.Get("RateLimit"))
	}
	// Output:
	// 200 "exports";r=1;t=60
	// 200 "exports";r=0;t=60
	// 429 "exports";r=0;t=60
}

// Behind a load balancer in 10.0.0.0/8, an API counts by key and by address, leaves
// health checks alone, and says in its own words that a request has to wait.
func ExampleNew() {
	decide := fakeDecider()
	limit := httplimit.New(decide,
		httplimit.APIKey("X-API-Key"),
		httplimit.ClientIP(netip.MustParsePrefix("10.0.0.0/8")),
		httplimit.Skip(func(r *http.Request) bool { return r.URL.Path == "/healthz" }),
		httplimit.Jitter(nil),
		httplimit.OnDeny(func(w http.ResponseWriter, _ *http.Request, d *httplimit.Denial) {
			http.Error(w, fmt.Sprintf("%s, wait for %v", d.Code, d.RetryAfter), d.Status)
		}),
	)
	h := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "fine") }))
	for _, path := range []string{"/healthz", "/v1/items"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 fine
	// 429 rate_limit_exceeded, wait for 2s
}

func fakeDecider() httplimit.Decider { return &fake{decision: deniedFor(1840 * 1e6)} }

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
	for left := uint64(2); err == nil; {
		var m *pb.StreamRequest
		if m, err = g.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			break
		}
		out := &pb.StreamResponse{Id: m.GetId()}
		for range m.GetRequests() {
			d := &pb.Decision{Allowed: left > 0, Limit: 2, PolicyId: "exports", PolicyVersion: 1, ResetAfterNs: 60e9}
			if d.Allowed {
				left--
			} else {
				d.RetryAfterNs, d.Reason = 30e9, "rate_limited"
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
