package simnet_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ringlimit/ringlimit/internal/simnet"
)

// gossiper starts memberlist unmodified on a host.
func gossiper(t *testing.T, n *simnet.Network, name string, join ...string) *memberlist.Memberlist {
	t.Helper()
	tr, err := n.Host(name).Gossip(7946)
	if err != nil {
		t.Fatal(err)
	}
	cfg := memberlist.DefaultLANConfig()
	cfg.Name, cfg.Transport, cfg.LogOutput = name, tr, io.Discard
	cfg.BindPort = 7946
	m, err := memberlist.Create(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(join) > 0 {
		if _, err := m.Join(join); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestMemberlistRunsInABubble(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		var all []*memberlist.Memberlist
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, gossiper(t, n, name, fmt.Sprintf("%v:7946", n.IP("a"))))
			n.Drop("a", name, 0.1)
		}
		time.Sleep(time.Minute)
		for _, m := range all {
			if k := m.NumMembers(); k != 3 {
				t.Errorf("%s sees %d members", m.LocalNode().Name, k)
			}
		}
		n.Kill("c")
		time.Sleep(time.Minute)
		if k := all[0].NumMembers(); k != 2 {
			t.Errorf("a sees %d members after a death", k)
		}
		n.Isolate("b")
		time.Sleep(time.Minute)
		if k := all[0].NumMembers(); k != 1 {
			t.Errorf("a sees %d members after a cut", k)
		}
		for _, m := range all {
			if err := m.Shutdown(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
	})
}

func TestGRPCRunsInABubble(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		lis, err := n.Host("b").Listen("b:7600")
		if err != nil {
			t.Fatal(err)
		}
		srv := grpc.NewServer()
		healthpb.RegisterHealthServer(srv, health.NewServer())
		go srv.Serve(lis)
		defer srv.Stop()
		cc, err := grpc.NewClient("passthrough:///b:7600",
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return n.Host("a").Dial(ctx, addr) }))
		if err != nil {
			t.Fatal(err)
		}
		defer cc.Close()
		check := func(wait time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
			return err
		}
		if err := check(time.Second); err != nil {
			t.Fatal(err)
		}
		n.Cut("b", "a")
		if err := check(time.Second); err == nil {
			t.Fatal("answered over a cut")
		}
		n.HealAll()
		if err := check(time.Second); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPacketsAreLostByTheirNumber(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		n.Drop("a", "b", 0.3)
		a, err := n.Host("a").Gossip(1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := n.Host("b").Gossip(2)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Shutdown()
		defer b.Shutdown()
		round := func() (got string) {
			for i := range 1000 {
				if _, err := a.WriteTo([]byte{byte(i)}, "b:2"); err != nil {
					t.Fatal(err)
				}
				select {
				case <-b.PacketCh():
					got += "+"
				default:
					got += "-"
				}
			}
			return got
		}
		first, second := round(), round()
		if first == second {
			t.Error("the same packets of each thousand are lost")
		}
		lost := 0
		for _, r := range first {
			if r == '-' {
				lost++
			}
		}
		if lost < 250 || lost > 350 {
			t.Errorf("%d of 1000 lost, want about 300", lost)
		}
	})
}
