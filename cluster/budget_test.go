package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
)

// dial makes a client of the whole cluster, on a host of its own, that leaves all
// decisions to the cluster.
func (s *sim) dial() *client.Client { return s.dialAs("client", client.NeverDegrade()) }

// dialAs is dial with a host and options.
func (s *sim) dialAs(host string, more ...client.Option) *client.Client {
	s.t.Helper()
	from := s.net.Host(host)
	var addrs []string
	for _, name := range s.names {
		addrs = append(addrs, s.net.IP(name).String()+":7600")
	}
	c, err := client.New(addrs, append(more, client.WithLogger(simLogger(host)), client.WithDialer(
		func(ctx context.Context, addr string) (net.Conn, error) { return from.Dial(ctx, addr) }))...)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// tally counts what concurrent callers get.
type tally struct {
	admitted, denied, failed atomic.Int64
	mu                       sync.Mutex // guards first
	first                    error
}

func (y *tally) take(c *client.Client, timeout time.Duration, r client.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	d, err := c.Decide(ctx, r)
	switch {
	case err != nil:
		y.failed.Add(1)
		y.mu.Lock()
		defer y.mu.Unlock()
		if y.first == nil {
			y.first = err
		}
	case d.Allowed:
		y.admitted.Add(1)
	default:
		y.denied.Add(1)
	}
}

// burst makes n takes at once and waits for all answers.
func burst(c *client.Client, n int, r client.Request) *tally {
	y := new(tally)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { y.take(c, 5*time.Second, r) })
	}
	wg.Wait()
	return y
}

func (y *tally) want(t *testing.T, admitted, denied int64) {
	t.Helper()
	if y.admitted.Load() != admitted || y.denied.Load() != denied || y.failed.Load() != 0 {
		t.Errorf("%d admitted, %d denied, %d failed (%v); want %d, %d, 0",
			y.admitted.Load(), y.denied.Load(), y.failed.Load(), y.first, admitted, denied)
	}
}

func TestExactlyTheBurstIsAdmitted(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		c := s.dial()
		defer c.Close()
		for i := range 50 {
			burst(c, 500, client.Request{Tenant: fmt.Sprint("t", i), Plan: "hundred"}).want(t, 100, 400)
		}
	})
}

func TestRefillIsExact(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		c := s.dial()
		defer c.Close()
		r := client.Request{Tenant: "t", Plan: "burst"}
		burst(c, 500, r).want(t, 100, 400)
		time.Sleep(time.Second)
		burst(c, 50, r).want(t, 10, 40)
	})
}

// stream takes steadily, one call every gap, until the returned function is
// called; that waits for the answers.
func stream(c *client.Client, gap time.Duration, r client.Request) (stop func() *tally) {
	y := new(tally)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(gap):
				wg.Go(func() { y.take(c, 5*time.Second, r) })
			}
		}
	})
	return func() *tally { close(done); wg.Wait(); return y }
}

func TestLeaderKilledMidwayAdmitsExactlyTheBudget(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		c := s.dial()
		defer c.Close()
		for round := range 5 {
			tenant := fmt.Sprint("t", round)
			y := new(tally)
			var wg sync.WaitGroup
			for i := range 300 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					y.take(c, 5*time.Second, client.Request{Tenant: tenant, Plan: "hundred"})
				})
			}
			time.Sleep(50*time.Millisecond + rand.N(20*time.Millisecond))
			victim := s.leader(tenant)
			s.kill(victim)
			wg.Wait()
			y.want(t, 100, 200)
			s.start(victim)
			s.healthy(30 * time.Second)
		}
	})
}

func TestReplacingEveryNodeInTurnBringsNoBudgetBack(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		for _, name := range s.names {
			s.dirs[name] = t.TempDir()
		}
		s.boot()
		c := s.dial()
		defer c.Close()
		spend := func(tenant string, n int) *tally {
			return burst(c, n, client.Request{Tenant: tenant, Plan: "year"})
		}
		spend("busy", 4).want(t, 4, 0)
		spend("idle", 4).want(t, 4, 0)
		stop := stream(c, 5*time.Millisecond, client.Request{Tenant: "load", Plan: "burst"})
		for range 3 {
			for _, name := range s.names {
				s.kill(name)
				s.start(name)
				s.healthy(30 * time.Second)
			}
		}
		if y := stop(); y.failed.Load() > 0 {
			t.Errorf("%d takes failed under load, the first with %v", y.failed.Load(), y.first)
		}
		spend("busy", 10).want(t, 6, 4)
		spend("idle", 10).want(t, 6, 4)
		s.equalReplicas()
	})
}

// equalReplicas watches until the replicas of each group have been seen at one
// index, all with the same hash of what they applied up to it. A follower of an
// idle group trails by an entry: they need not be there at the same moment.
func (s *sim) equalReplicas() {
	s.t.Helper()
	type position struct {
		group uint32
		index uint64
	}
	chains := make(map[position]map[string]uint64)
	s.eventually(30*time.Second, func() error {
		r, err := s.any().Status(s.t.Context(), &pb.StatusRequest{})
		if err != nil {
			return err
		}
		met := make(map[uint32]bool)
		for _, g := range r.Groups {
			for _, m := range g.Members {
				at := position{g.Id, m.Applied}
				if chains[at] == nil {
					chains[at] = make(map[string]uint64)
				}
				chains[at][m.Node] = m.Chain
				for node, chain := range chains[at] {
					if chain != m.Chain {
						s.t.Fatalf("group %d: replicas on %s and %s differ at index %d", g.Id, node, m.Node, m.Applied)
					}
				}
				met[g.Id] = met[g.Id] || len(chains[at]) == 3
			}
			if !met[g.Id] {
				return fmt.Errorf("group %d: no index yet that all replicas were seen at", g.Id)
			}
		}
		return nil
	})
}

func TestTwoOfThreeGoneAnswersNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		for _, name := range s.names {
			s.dirs[name] = t.TempDir()
		}
		s.boot()
		c := s.dial()
		defer c.Close()
		r := client.Request{Tenant: "t", Plan: "year"}
		burst(c, 4, r).want(t, 4, 0)
		s.kill("b")
		s.kill("c")
		refused := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if d, err := c.Decide(ctx, r); err == nil {
				t.Errorf("answered %+v without a majority", d)
			} else if !errors.Is(err, fault.Deadline) {
				t.Errorf("got %v, want a deadline", err)
			}
		}
		refused()
		time.Sleep(time.Minute)
		refused()
		res := s.nodes["a"].take(t.Context(), request("t", "year"))
		if res.GetError().GetCode() != pb.Code_CODE_NO_LEADER {
			t.Errorf("got %v, want NO_LEADER", res)
		}
		st, err := s.any().Status(t.Context(), &pb.StatusRequest{})
		if err != nil || st.Healthy {
			t.Fatalf("status: healthy %v, %v", st.GetHealthy(), err)
		}
		if text := strings.Join(st.Problems, "\n"); !strings.Contains(text, "2 of 3 replicas do not answer (b, c)") {
			t.Errorf("status does not say who is silent: %s", text)
		}
	})
}

func TestStopUnderLoadFailsNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		for _, name := range s.names {
			s.dirs[name] = t.TempDir()
		}
		s.boot()
		before := s.any().control.State().SlotGroup
		c := s.dial()
		defer c.Close()
		stop := stream(c, time.Millisecond, client.Request{Tenant: "t", Plan: "burst"})
		for _, name := range s.names {
			time.Sleep(time.Second)
			s.stop(name)
			time.Sleep(time.Second)
			s.start(name)
			s.healthy(30 * time.Second)
		}
		if y := stop(); y.failed.Load() > 0 || y.admitted.Load() < 100 {
			t.Errorf("%d admitted, %d takes failed, the first with %v", y.admitted.Load(), y.failed.Load(), y.first)
		}
		for i, g := range s.any().control.State().SlotGroup {
			if g != before[i] {
				t.Fatalf("slot %d moved from group %d to %d", i, before[i], g)
			}
		}
	})
}

func TestLeaderCutOffAdmitsNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		leader := s.leader("t")
		old := s.nodes[leader]
		s.net.Isolate(leader)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				if old.take(ctx, request("t", "hundred")).GetDecision().GetAllowed() {
					admitted.Add(1)
				}
			})
		}
		wg.Wait()
		if n := admitted.Load(); n > 0 {
			t.Errorf("%d takes admitted by a leader that reaches nobody", n)
		}
		s.net.HealAll()
		s.healthy(time.Minute)
		c := s.dial()
		defer c.Close()
		y := burst(c, 200, client.Request{Tenant: "t", Plan: "hundred"})
		if n := y.admitted.Load(); n > 100 || n < 80 || y.failed.Load() > 0 {
			t.Errorf("%d admitted after the heal, want 100 less at most the 20 that were left behind; %v", n, y.first)
		}
	})
}

func TestRefillGoesOnWhileThereIsNoLeader(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		c := s.dial()
		defer c.Close()
		r := client.Request{Tenant: "t", Plan: "burst"}
		burst(c, 120, r).want(t, 100, 20)
		for range 3 {
			start := time.Now()
			victim := s.leader("t")
			s.kill(victim)
			time.Sleep(3*time.Second - time.Since(start))
			s.leader("t")
			y := burst(c, 60, r)
			if n := y.admitted.Load(); n < 29 || n > 30 {
				t.Errorf("%d admitted 3 s after the bucket was empty, want 30 less at most one for a replication delay", n)
			}
			burst(c, 5, r).want(t, 0, 5)
			s.start(victim)
			time.Sleep(time.Second)
			s.healthy(30 * time.Second)
			time.Sleep(10 * time.Second)
			burst(c, 200, r) // empty again
		}
	})
}

func TestIdleTimeAndAChangeOfLeaderLoseNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		c := s.dial()
		r := client.Request{Tenant: "t", Plan: "year"}
		burst(c, 10, r).want(t, 10, 0)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		const idle = 10 * time.Minute
		time.Sleep(idle)
		s.kill(s.leader("t"))
		c = s.dial()
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		d, err := c.Decide(ctx, r)
		if err != nil || d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		want := 876*time.Hour - idle // 10 a year: one in 876 hours
		if off := want - d.RetryAfter; off < -5*time.Second || off > 5*time.Second {
			t.Errorf("retry after %s, want about %s", d.RetryAfter, want)
		}
	})
}
