package gossip

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/internal/simnet"
)

func config(net *simnet.Network, t *testing.T, name string, meta Meta, targets ...string) Config {
	t.Helper()
	tr, err := net.Host(name).Gossip(7602)
	if err != nil {
		t.Fatal(err)
	}
	for i := range targets {
		targets[i] = net.IP(targets[i]).String() + ":7602"
	}
	return Config{
		Name: name, Incarnation: "1", Bind: net.IP(name).String() + ":7602", Transport: tr,
		Targets: func() []string { return targets }, Meta: func() Meta { return meta },
		OnChange: func() {}, Logger: slog.New(slog.DiscardHandler),
	}
}

func TestLongAddressesAreRefusedAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New()
		cfg := config(net, t, "a", Meta{GRPC: strings.Repeat("x", 400)})
		defer cfg.Transport.Shutdown()
		_, err := Start(cfg)
		if err == nil || !strings.Contains(err.Error(), "shorter host names") {
			t.Errorf("got %v", err)
		}
	})
}

func names(g *Gossip) string {
	var out []string
	for _, m := range g.Members() {
		out = append(out, m.Name)
	}
	return strings.Join(out, " ")
}

func TestHalvesFindTogetherAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		start := func(name string, cluster string, targets ...string) *Gossip {
			g, err := Start(config(net, t, name, Meta{Cluster: cluster}, targets...))
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() { _ = g.Run(ctx) })
			return g
		}
		a := start("a", "")
		b := start("b", "c1", "a")
		c := start("c", "c1", "a")
		other := start("x", "c2", "b") // another cluster: never lets in
		time.Sleep(20 * time.Second)
		for _, g := range []*Gossip{a, b, c} {
			if got := names(g); got != "a b c" && !(g == a && got == "a b c x") {
				t.Errorf("%s sees %q", g.self, got)
			}
		}
		if got := names(other); strings.Contains(got, "b") {
			t.Errorf("the other cluster sees %q", got)
		}
		net.Isolate("c")
		time.Sleep(90 * time.Second)
		if got := names(b); strings.Contains(got, "c") {
			t.Errorf("b still sees %q", got)
		}
		net.HealAll()
		time.Sleep(45 * time.Second)
		if got := names(b); !strings.Contains(got, "c") {
			t.Errorf("45 s after the heal b sees %q", got)
		}
		cancel()
		wg.Wait()
		time.Sleep(30 * time.Second) // memberlist's probes under way end by their own timers
	})
}
