package cluster

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

func TestWrongJoinIsToldCalmly(t *testing.T) {
	const nobody = "nobody answers at "
	for _, c := range []struct {
		name   string
		join   func(own, other Addresses) string
		expect int
		want   func(join string) string
	}{
		{"a dead port", func(_, other Addresses) string { return strings.Replace(other.Gossip, ":7602", ":7699", 1) }, 0, func(j string) string { return nobody + j }},
		{"a peer port", func(_, other Addresses) string { return other.Peer }, 0, func(j string) string { return nobody + j }},
		{"its own", func(own, _ Addresses) string { return own.Gossip }, 0, func(j string) string { return "this node's own address, " + j }},
		{"nobody there to make a cluster with", func(_, other Addresses) string { return strings.Replace(other.Gossip, ":7602", ":7699", 1) }, 2, func(j string) string { return nobody + j }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, s *sim) {
				s.boot()
				var log lines
				cfg := s.config("x")
				join := c.join(cfg.Listen, s.nodes["a"].cfg.Listen)
				cfg.Join, cfg.BootstrapExpect, cfg.Logger = []string{join}, c.expect, slog.New(&log)
				n, err := Open(cfg)
				if err != nil {
					t.Fatal(err)
				}
				x := s.run(n)
				time.Sleep(4 * time.Minute)
				want := c.want(join)
				if n := strings.Count(log.String(), want); n < 7 || n > 9 {
					t.Errorf("said %d times in 4 min, want one in 30 s: %s", n, log.String())
				}
				if ok, why := x.Ready(); ok || !strings.Contains(why, want) {
					t.Errorf("ready %t: %s", ok, why)
				}
				st, err := x.Status(t.Context(), &pb.StatusRequest{})
				if text := strings.Join(st.GetProblems(), "\n"); err != nil || st.GetHealthy() || st.GetNode() != "x" || !strings.Contains(text, want) || strings.Contains(text, "registered") {
					t.Errorf("status: %v, %s", err, text)
				}
			})
		})
	}
}
