package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/internal/simnet"
	"github.com/ringlimit/ringlimit/policy"
)

// sim is a cluster in a bubble over an in-memory network. All its methods are
// called from the test's goroutine.
type sim struct {
	t     *testing.T
	net   *simnet.Network
	nodes map[string]*simNode
	names []string
	dirs  map[string]string // data directory by node; none: in memory
	set   *policy.Set
	tune  func(*Config) // changes what nodes are started with; nil: nothing
}

type simNode struct {
	*Node
	cancel context.CancelFunc
	done   chan error
}

var errKilled = errors.New("killed by the test")

// testPolicies: tenants whose plan is "year" get 10 a year, "burst" 100 at
// 10/s, all others 1000 at 100/s.
func testPolicies() *policy.Set {
	p := func(id, plan string, amount, burst uint64, window time.Duration) *policy.Policy {
		return &policy.Policy{
			ID: id, Match: policy.On("plan", plan), Scope: []string{"tenant"},
			Limit: bucket.Limit{Algorithm: bucket.TokenBucket, Amount: amount, Burst: burst, Window: int64(window)},
		}
	}
	return &policy.Set{Home: []string{"tenant"}, Policies: []*policy.Policy{
		p("burst", "burst", 10, 100, time.Second),
		p("hundred", "hundred", 1, 100, 8760*time.Hour),
		p("year", "year", 10, 10, 8760*time.Hour),
	}}
}

func newSim(t *testing.T, n int) *sim {
	s := &sim{t: t, net: simnet.New(), nodes: make(map[string]*simNode), dirs: make(map[string]string), set: testPolicies()}
	for i := range n {
		s.names = append(s.names, string(rune('a'+i)))
	}
	return s
}

func simLogger(name string) *slog.Logger {
	var out io.Writer = io.Discard
	if os.Getenv("RINGLIMIT_TEST_LOG") != "" {
		out = os.Stdout
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})).With("at", name)
}

func (s *sim) config(name string) Config {
	host := s.net.Host(name)
	gossip, err := host.Gossip(7602)
	if err != nil {
		s.t.Fatal(err)
	}
	ip := s.net.IP(name).String()
	var join []string
	for _, other := range s.names {
		join = append(join, s.net.IP(other).String()+":7602")
	}
	cfg := Config{
		Name:   name,
		Listen: Addresses{GRPC: ip + ":7600", Peer: ip + ":7601", Gossip: ip + ":7602", HTTP: ip + ":7700"},
		Join:   join, BootstrapExpect: len(s.names), Policies: s.set, DataDir: s.dirs[name],
		DrainTimeout: 30 * time.Second, Network: host, GossipTransport: gossip, Logger: simLogger(name),
	}
	if s.tune != nil {
		s.tune(&cfg)
	}
	return cfg
}

// join starts nodes that were not there before, with a directory each if the
// others have one, and makes them known to the rest of the test.
func (s *sim) join(names ...string) {
	s.t.Helper()
	for _, name := range names {
		if s.dirs[s.names[0]] != "" {
			s.dirs[name] = s.t.TempDir()
		}
		cfg := s.config(name)
		cfg.BootstrapExpect = 0
		n, err := Open(cfg)
		if err != nil {
			s.t.Fatal(err)
		}
		s.run(n)
	}
	s.names = append(s.names, names...)
}

// registered waits until all nodes that run are.
func (s *sim) registered() {
	s.t.Helper()
	s.eventually(30*time.Second, func() error {
		for name, x := range s.nodes {
			if !x.registered() {
				return fmt.Errorf("%s is not registered", name)
			}
		}
		return nil
	})
}

// start opens and runs a node.
func (s *sim) start(name string) *simNode {
	s.t.Helper()
	n, err := Open(s.config(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.run(n)
}

func (s *sim) run(n *Node) *simNode {
	ctx, cancel := context.WithCancel(s.t.Context())
	x := &simNode{Node: n, cancel: cancel, done: make(chan error, 1)}
	go func() { x.done <- n.Run(ctx) }()
	s.nodes[n.self.name] = x
	return x
}

// boot starts all nodes and waits until the cluster is healthy.
func (s *sim) boot() {
	s.t.Helper()
	for _, name := range s.names {
		s.start(name)
	}
	s.healthy(30 * time.Second)
}

// kill ends a node as kill -9 would: its connections break, nothing is handed over.
func (s *sim) kill(name string) {
	s.t.Helper()
	x := s.nodes[name]
	s.net.Kill(name)
	x.fail(errKilled)
	<-x.done // with errKilled, or with what it missed first on a dead network
	x.cancel()
	delete(s.nodes, name)
	s.net.Revive(name)
}

// stop ends a node as SIGTERM would.
func (s *sim) stop(name string) {
	s.t.Helper()
	x := s.nodes[name]
	x.cancel()
	if err := <-x.done; err != nil {
		s.t.Errorf("node %s stopped with %v", name, err)
	}
	delete(s.nodes, name)
	s.net.Kill(name)
	s.net.Revive(name)
}

// close ends what still runs; the bubble then tells of goroutines left behind.
func (s *sim) close() {
	for name := range s.nodes {
		s.kill(name)
	}
	time.Sleep(30 * time.Second) // memberlist's probes under way end by their own timers
	synctest.Wait()
}

func (s *sim) any() *simNode {
	for _, name := range s.names {
		if x := s.nodes[name]; x != nil {
			return x
		}
	}
	s.t.Fatal("no node runs")
	return nil
}

// healthy waits until every node that runs finds the cluster healthy.
func (s *sim) healthy(within time.Duration) {
	s.t.Helper()
	s.eventually(within, func() error {
		for name, x := range s.nodes {
			r, err := x.Status(s.t.Context(), &pb.StatusRequest{})
			if err != nil {
				return err
			}
			if !r.Healthy {
				return fmt.Errorf("%s: %s", name, strings.Join(r.Problems, "; "))
			}
		}
		return nil
	})
}

func (s *sim) eventually(within time.Duration, f func() error) {
	s.t.Helper()
	var err error
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	s.t.Fatalf("not within %s: %v", within, err)
}

// leader waits for a node to lead the group that decides a tenant.
func (s *sim) leader(tenant string) string {
	s.t.Helper()
	var name string
	s.eventually(10*time.Second, func() error {
		x := s.any()
		v := x.view.Load()
		if !v.placed() {
			return errors.New("no placement")
		}
		home := v.index.Home(&policy.Request{Tenant: tenant})
		c, ok := x.table.leader(v.state.SlotGroup[home.Slot])
		if !ok || !c.serving || s.nodes[c.node] == nil {
			return errors.New("no leader")
		}
		name = c.node
		return nil
	})
	return name
}

// take is one take as a caller without retries sees it.
func (x *simNode) take(ctx context.Context, r *pb.DecideRequest) *pb.Result {
	return x.Decide(ctx, &pb.StreamRequest{Requests: []*pb.DecideRequest{r}, Session: r.GetSent().GetSession()}, nil)[0]
}

func request(tenant, plan string) *pb.DecideRequest {
	return &pb.DecideRequest{Subject: &pb.Subject{Tenant: tenant, Plan: plan}}
}
