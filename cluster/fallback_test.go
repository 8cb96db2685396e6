package cluster

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/policy"
)

func TestFallbackComesOnceAndInPieces(t *testing.T) {
	var file bytes.Buffer
	file.WriteString("policies:\n")
	for i := range 8000 {
		fmt.Fprintf(&file, "  - {id: policy-%d, match: {plan: plan-%d}, scope: [tenant], amount: 10, window: 1h}\n", i, i)
	}
	set, err := policy.Parse("test.yaml", file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var f fallbacks
	now := time.Now()
	first := f.piece(set, 0, 0, now)
	var data []byte
	pieces := 0
	for r := first; ; r = f.piece(set, r.Digest, uint64(len(data)), now) {
		if r.Offset != uint64(len(data)) || len(r.Data) == 0 || len(r.Data) > fallbackPiece || r.Digest != first.Digest {
			t.Fatalf("piece at %d of %d: offset %d, %d bytes", len(data), r.Total, r.Offset, len(r.Data))
		}
		data = append(data, r.Data...)
		if pieces++; uint64(len(data)) == r.Total {
			break
		}
	}
	if got, err := policy.Decode(data); err != nil || len(got.Policies) != 8000 || pieces < 3 {
		t.Fatalf("%d pieces: %v", pieces, err)
	}
	// Who has them is told so, at no cost, and the bytes are let go of.
	for _, at := range []time.Duration{time.Second, 2 * fallbackKept} {
		if r := f.piece(set, first.Digest, 0, now.Add(at)); r.Digest != first.Digest || r.Data != nil || r.Total != first.Total {
			t.Errorf("after %v: %d bytes again", at, len(r.Data))
		}
	}
	if f.data != nil {
		t.Error("the bytes are kept though nobody reads them")
	}
	// Who was reading when the policies changed begins anew.
	other := set.Without("policy-7")
	if r := f.piece(other, first.Digest, 100, now); r.Digest == first.Digest || r.Offset != 0 || len(r.Data) != fallbackPiece {
		t.Errorf("of other policies: offset %d, %d bytes", r.Offset, len(r.Data))
	}
}

func TestUnchangedFallbackIsCheap(t *testing.T) {
	set, err := policy.Parse("test.yaml", []byte(everyAlgorithm))
	if err != nil {
		t.Fatal(err)
	}
	var f fallbacks
	now := time.Now()
	digest := f.piece(set, 0, 0, now).Digest
	f.census.count(5, now)
	if n := testing.AllocsPerRun(100, func() {
		f.piece(set, digest, 0, now)
		f.census.count(5, now)
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

const outlive = `
policies:
  - {id: local, match: {plan: local}, scope: [tenant], algorithm: fixed_window, amount: 100, window: 1h}
  - {id: closed, match: {plan: closed}, scope: [tenant], amount: 1000000, window: 1s, on_unavailable: {mode: closed}}
  - {id: open, match: {plan: open}, scope: [tenant], amount: 1000000, window: 1s, on_unavailable: {mode: open, for: 20s, then: closed}}
  - {id: exact, match: {plan: exact}, scope: [tenant], amount: 1000000, window: 1s, on_unavailable: {mode: closed, after: deadline}}
`

// TestClientsOutliveTheCluster: four clients under load lose every node, share the
// limit, and are back when the cluster is.
func TestClientsOutliveTheCluster(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		set, err := policy.Parse("test.yaml", []byte(outlive))
		if err != nil {
			t.Fatal(err)
		}
		s.set = set
		s.keepDirectories()
		s.boot()
		clients := make([]*client.Client, 4)
		for i := range clients {
			clients[i] = s.dialAs(fmt.Sprint("client", i))
			defer clients[i].Close()
		}
		time.Sleep(11 * time.Second)
		s.wantCounted(4)

		var down atomic.Bool // since a moment after the kill, until a moment before the start
		var admitted, degraded, failed atomic.Int64
		var callers sync.WaitGroup
		stop := make(chan struct{})
		for i := range clients {
			for _, plan := range []string{"local", "closed", "open", "exact"} {
				callers.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(20 * time.Millisecond):
						}
						surely := down.Load()
						began := time.Now()
						d, err := clients[i].Decide(t.Context(), client.Request{Tenant: "acme", Plan: plan})
						if err != nil {
							failed.Add(1)
							t.Logf("%s: %v, down %v", plan, err, surely)
							continue
						}
						if d.Degraded {
							degraded.Add(1)
						}
						if d.FailureMode == client.ModeLocal && d.Allowed {
							admitted.Add(1)
						}
						if surely && down.Load() {
							if d.FailureMode != client.FailureMode(plan) && plan != "exact" || d.Allowed && plan == "closed" || time.Since(began) > time.Millisecond {
								t.Errorf("%s: %+v after %v", plan, d, time.Since(began))
							}
						}
					}
				})
			}
		}
		time.Sleep(time.Second)
		for _, name := range s.names {
			s.kill(name)
		}
		time.Sleep(100 * time.Millisecond)
		down.Store(true)
		time.Sleep(15 * time.Second)
		down.Store(false)
		for _, name := range s.names {
			s.start(name)
		}
		s.settled(time.Minute)
		began := time.Now()
		for i := range clients {
			s.eventually(time.Second, func() error {
				d, err := clients[i].Decide(t.Context(), client.Request{Tenant: "acme", Plan: "closed"})
				if err == nil && d.Degraded {
					err = fmt.Errorf("client %d: %+v", i, d)
				}
				return err
			})
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("back after %v", took)
		}
		close(stop)
		callers.Wait()
		if n := admitted.Load(); n != 100 {
			t.Errorf("%d admitted of 100 without the cluster", n)
		}
		if failed.Load() > 0 {
			t.Errorf("%d calls failed", failed.Load())
		}
		var counted uint64
		for _, c := range clients {
			counted += c.Stats().Degraded
		}
		if n := degraded.Load(); n < 1000 || counted < uint64(n) {
			t.Errorf("%d degraded answers, %d counted", n, counted)
		}
	})
}

// wantCounted checks how many clients each node knows of.
func (s *sim) wantCounted(n int) {
	s.t.Helper()
	for name, x := range s.nodes {
		r, err := x.GetFallback(s.t.Context(), &pb.GetFallbackRequest{})
		if err != nil || r.Clients != 0 || r.Digest == 0 || r.ClusterId == "" || r.Version != 1 {
			s.t.Errorf("%s: %v, %v", name, r, err)
		}
		c := &x.fallbacks.census
		c.mu.Lock()
		got := len(c.callers)
		c.mu.Unlock()
		if got != n {
			s.t.Errorf("%s counts %d clients, want %d", name, got, n)
		}
	}
}

// TestOneLeaderKilledDegradesNobodyWhoWaits: after: deadline is exact through a
// failover, and with 50 ms only calls during the gap are decided by the client.
func TestOneLeaderKilledDegradesNobodyWhoWaits(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		set, err := policy.Parse("test.yaml", []byte(outlive))
		if err != nil {
			t.Fatal(err)
		}
		s.set = set
		s.boot()
		c := s.dialAs("client")
		defer c.Close()
		time.Sleep(time.Second)
		victim := s.leader("acme")
		var killed, over atomic.Int64 // ns since the start
		start := time.Now()
		over.Store(1 << 62)
		var callers sync.WaitGroup
		var degraded atomic.Int64
		for i := range 20 {
			plan := []string{"exact", "closed"}[i%2]
			callers.Go(func() {
				for time.Since(start) < 4*time.Second {
					began := time.Since(start)
					d, err := c.Decide(t.Context(), client.Request{Tenant: "acme", Plan: plan})
					switch {
					case err != nil || plan == "exact" && d.Degraded:
						t.Errorf("%s: %+v, %v after %v", plan, d, err, time.Since(start)-began)
					case d.Degraded:
						degraded.Add(1)
						if killed.Load() == 0 || int64(began) > over.Load() {
							t.Errorf("degraded outside the gap: began at %v, over at %v", began, time.Duration(over.Load()))
						}
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		time.Sleep(time.Second)
		killed.Store(int64(time.Since(start)))
		s.kill(victim)
		s.leader("acme")
		if _, err := c.Decide(t.Context(), client.Request{Tenant: "acme", Plan: "exact"}); err != nil {
			t.Error(err)
		}
		over.Store(int64(time.Since(start)) + int64(50*time.Millisecond))
		callers.Wait()
		t.Logf("%d answers degraded within %v", degraded.Load(), time.Duration(over.Load()-killed.Load()))
	})
}
