package transport_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/internal/simnet"
	"github.com/ringlimit/ringlimit/transport"
)

// pair is two nodes, of which one leads the only group, and a client.
type pair struct {
	net     *simnet.Network
	nodes   map[string]*backend
	servers map[string]*transport.Server
	client  *client.Client

	mu     sync.Mutex
	leader string
	copies map[uint64]int // per sequence: how often it was admitted first; must be 1
}

func (p *pair) decide(name string) func(context.Context, *pb.StreamRequest) []*pb.Result {
	return func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.leader == "" {
			return refuse(fault.NoLeader)(ctx, m)
		}
		if p.leader != name {
			return refuse(fault.Leader(&pb.LeaderHint{Epoch: 1, Node: p.leader, Grpc: p.leader + ":1"}))(ctx, m)
		}
		for _, r := range m.Requests {
			p.copies[r.GetSent().GetSequence()]++
		}
		return admit(ctx, m)
	}
}

// lead makes a node leader; the nodes tell.
func (p *pair) lead(name string, term uint64) {
	p.mu.Lock()
	p.leader = name
	p.mu.Unlock()
	for _, b := range p.nodes {
		r := proto.Clone(b.Routing()).(*pb.Routing)
		r.Groups[0].Grpc, r.Groups[0].Term = name+":1", term
		b.route(r)
	}
}

func withPair(t *testing.T, test func(t *testing.T, p *pair)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pair{net: simnet.New(), nodes: map[string]*backend{}, servers: map[string]*transport.Server{}, leader: "a", copies: map[uint64]int{}}
		for _, name := range []string{"a", "b"} {
			b := newBackend("a:1")
			b.routing.Nodes = []string{"a:1", "b:1"}
			b.decide = p.decide(name)
			p.nodes[name] = b
			p.start(t, name)
		}
		var err error
		p.client, err = client.New([]string{"a:1", "b:1"}, client.NeverDegrade(), client.WithLogger(slog.New(slog.DiscardHandler)),
			client.WithDialer(func(ctx context.Context, addr string) (net.Conn, error) { return p.net.Host("caller").Dial(ctx, addr) }))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		test(t, p)
		p.client.Close()
		for _, s := range p.servers {
			s.Stop()
		}
	})
}

func (p *pair) start(t *testing.T, name string) {
	s := transport.NewServer(p.nodes[name], transport.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	l, err := p.net.Host(name).Listen(":1")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	p.servers[name] = s
}

// load keeps callers deciding for a while and returns the longest wait.
func (p *pair) load(t *testing.T, callers int, d time.Duration) (longest time.Duration, decided int) {
	var mu sync.Mutex
	var work sync.WaitGroup
	end := time.Now().Add(d)
	for range callers {
		work.Go(func() {
			for time.Now().Before(end) {
				began := time.Now()
				_, err := p.client.Decide(t.Context(), client.Request{Tenant: "acme"})
				mu.Lock()
				decided++
				longest = max(longest, time.Since(began))
				mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	work.Wait()
	return longest, decided
}

func TestNoCallFailsWhenTheLeaderDies(t *testing.T) {
	for name, f := range map[string]struct {
		hurt    func(t *testing.T, p *pair)
		longest time.Duration
	}{
		"killed":  {func(_ *testing.T, p *pair) { p.net.Kill("a") }, 200 * time.Millisecond},
		"frozen":  {func(_ *testing.T, p *pair) { p.net.Freeze("a") }, 700 * time.Millisecond},
		"stopped": {func(t *testing.T, p *pair) { p.servers["a"].Shutdown(t.Context()) }, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			withPair(t, func(t *testing.T, p *pair) {
				time.AfterFunc(time.Second, func() {
					p.mu.Lock()
					p.leader = ""
					p.mu.Unlock()
					f.hurt(t, p)
				})
				time.AfterFunc(1100*time.Millisecond, func() { p.lead("b", 2) })
				longest, decided := p.load(t, 50, 4*time.Second)
				if longest > f.longest || decided < 10_000 {
					t.Errorf("%d decisions, the longest took %v", decided, longest)
				}
				if name == "frozen" {
					p.net.Thaw("a")
				}
			})
		})
	}
}

func TestRollingRestartIsNotNoticed(t *testing.T) {
	withPair(t, func(t *testing.T, p *pair) {
		var restarts sync.WaitGroup
		restarts.Go(func() {
			for i, name := range []string{"a", "b"} {
				time.Sleep(time.Second)
				other := map[string]string{"a": "b", "b": "a"}[name]
				p.lead(other, uint64(i+2))
				p.servers[name].Shutdown(t.Context())
				time.Sleep(300 * time.Millisecond)
				p.start(t, name)
			}
		})
		longest, decided := p.load(t, 50, 5*time.Second)
		restarts.Wait()
		if longest > 100*time.Millisecond || decided < 20_000 {
			t.Errorf("%d decisions, the longest took %v", decided, longest)
		}
	})
}

func TestCallIsChargedOnceHoweverOftenItIsSent(t *testing.T) {
	withPair(t, func(t *testing.T, p *pair) {
		p.net.Delay("caller", "a", 10*time.Millisecond)
		p.net.Delay("a", "caller", 10*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
		defer cancel()
		if _, err := p.client.Decide(ctx, client.Request{Tenant: "acme"}); !errors.Is(err, fault.Deadline) {
			t.Errorf("got %v", err)
		}
		p.net.Cut("a", "caller") // admitted, but the answer is lost
		time.AfterFunc(15*time.Millisecond, func() { p.net.Kill("a"); p.lead("b", 2) })
		if _, err := p.client.Decide(t.Context(), client.Request{Tenant: "acme"}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if p.copies[1] != 1 || p.copies[2] != 2 || len(p.copies) != 2 {
			t.Errorf("copies per sequence: %v", p.copies) // the second went to both, under one id
		}
	})
}
