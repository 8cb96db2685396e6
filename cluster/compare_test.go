package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/transport"
)

func TestReplicaThatDiffersFromItsLeaderIsReplaced(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		leader := s.leader("t")
		s.nodes[leader].take(t.Context(), request("t", "year"))
		time.Sleep(3 * time.Second) // an idle leader sweeps: followers learn of the take
		d := s.nodes[leader].observe()
		for _, name := range s.names {
			if name == leader {
				continue
			}
			x := s.nodes[name]
			x.compareReplicas(transport.From{Node: leader}, d)
			for _, h := range x.hosts.all() {
				if why := h.broken.Load(); why != nil {
					t.Fatalf("equal replicas are told apart: %v", *why)
				}
			}
			before := x.control.State().NextSerial
			lie := *d
			lie.replicas = append([]replicaDigest(nil), d.replicas...)
			for i := range lie.replicas {
				lie.replicas[i].chain++
			}
			// A follower is an entry behind: compare where it has been.
			s.eventually(5*time.Second, func() error {
				x.compareReplicas(transport.From{Node: leader}, &lie)
				for _, h := range x.hosts.all() {
					if h.broken.Load() != nil {
						return nil
					}
				}
				return errors.New("a difference goes unseen")
			})
			s.eventually(30*time.Second, func() error {
				if x.control.State().NextSerial == before {
					return errors.New("no fresh replica")
				}
				return nil
			})
			s.healthy(30 * time.Second)
			break
		}
	})
}
