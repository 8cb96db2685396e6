package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/ringlimit/ringlimit/internal/simnet"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// TestKeysAreReplacedInAnyOrder compares the ring with what was asked for.
func TestKeysAreReplacedInAnyOrder(t *testing.T) {
	ring, err := memberlist.NewKeyring([][]byte{key(1), key(2)}, key(1))
	if err != nil {
		t.Fatal(err)
	}
	g := &Gossip{ring: ring}
	for _, step := range []string{"\x02\x01", "\x01\x02\x03\x04", "\x04\x01\x03", "\x01", "\x05", "\x06\x05\x04\x03\x02\x01", "\x03\x01", "\x02"} {
		var keys [][]byte
		for _, b := range []byte(step) {
			keys = append(keys, key(b))
		}
		if err := g.SetKeys(keys); err != nil {
			t.Fatal(err)
		}
		got := ring.GetKeys()
		if len(got) != len(keys) || !bytes.Equal(got[0], keys[0]) {
			t.Errorf("%q: %d keys, the first %d", step, len(got), got[0][0])
		}
		for _, k := range keys {
			if !strings.Contains(string(bytes.Join(got, nil)), string(k)) {
				t.Errorf("%q: %d is missing", step, k[0])
			}
		}
	}
	if err := (&Gossip{}).SetKeys([][]byte{key(1)}); err == nil {
		t.Error("plain gossip took a key")
	}
}

// TestOnlyWhoHasTheKeyIsHeard: a node without the key, or with another, neither
// is seen nor sees anybody; and keys are replaced, step by step, while all stay members.
func TestOnlyWhoHasTheKeyIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		start := func(name string, keys [][]byte, targets ...string) *Gossip {
			cfg := config(net, t, name, Meta{Cluster: "c1"}, targets...)
			cfg.Keys = keys
			g, err := Start(cfg)
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() { _ = g.Run(ctx) })
			return g
		}
		ring := [][]byte{key(1)}
		all := []*Gossip{start("a", ring, "b", "c"), start("b", ring, "a"), start("c", ring, "a")}
		strangers := []*Gossip{start("x", nil, "a", "b"), start("y", [][]byte{key(9)}, "a", "c")}
		check := func(when string) {
			t.Helper()
			for _, g := range all {
				if got := names(g); got != "a b c" {
					t.Errorf("%s: %s sees %q", when, g.self, got)
				}
			}
			for _, g := range strangers {
				if got := names(g); got != g.cfg.Name {
					t.Errorf("%s: %s sees %q", when, g.self, got)
				}
			}
		}
		time.Sleep(20 * time.Second)
		check("at first")
		for _, ring := range [][][]byte{{key(1), key(2)}, {key(2), key(1)}, {key(2)}} {
			for _, g := range all {
				if err := g.SetKeys(ring); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
			}
			time.Sleep(30 * time.Second)
			check("replaced")
		}
		cancel()
		wg.Wait()
		time.Sleep(30 * time.Second) // memberlist's probes under way end by their own timers
	})
}

// TestStrangersFillNoLog: packets without the key are told of, and not each of them.
func TestStrangersFillNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New()
		ctx, cancel := context.WithCancel(t.Context())
		var log bytes.Buffer // slog writes one line at a time; read when nobody writes
		cfg := config(net, t, "a", Meta{Cluster: "c1"})
		cfg.Keys, cfg.Logger = [][]byte{key(1)}, slog.New(slog.NewTextHandler(&log, nil))
		g, err := Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = g.Run(ctx) })
		x, err := net.Host("x").Gossip(7602)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			for range 100 {
				if _, err := x.WriteTo(bytes.Repeat([]byte{7}, 200), net.IP("a").String()+":7602"); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "Decrypt packet failed"); n < 8 || n > 8+5 || !strings.Contains(log.String(), "left_out=") {
			t.Errorf("%d lines: %s", n, log.String())
		}
		cancel()
		wg.Wait()
		_ = x.Shutdown()
		time.Sleep(30 * time.Second)
	})
}
