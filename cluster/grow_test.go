package cluster

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

// shares checks that n groups share the slots, none with more than 1.25 times the
// mean, each with replicas on three nodes or as many as there are, and that each
// node has as many replicas.
func (s *sim) shares(n int) {
	s.t.Helper()
	st := s.any().control.State()
	if len(st.Groups) != n {
		s.t.Fatalf("%d groups, want %d: %+v", len(st.Groups), n, st.Groups)
	}
	owners := make(map[string]bool)
	for _, g := range st.Groups {
		owners[g.Owner] = true
		if c := st.CountSlots(g.ID); 4*c*n > 5*st.Slots {
			s.t.Errorf("group %d of %s has %d of %d slots", g.ID, g.Owner, c, st.Slots)
		}
		if want := min(3, n); n != 2 && len(g.Replicas) != want {
			s.t.Errorf("group %d has %d replicas, want %d", g.ID, len(g.Replicas), want)
		}
	}
	if len(owners) != n {
		s.t.Errorf("owners are %v, want %d", owners, n)
	}
	for _, name := range st.Members() {
		if got, want := st.CountReplicas(name), min(3, n); n != 2 && got != want {
			s.t.Errorf("%s has %d replicas, want %d", name, got, want)
		}
	}
}

func TestOneNodeGrowsToThreeAndLosesNoBucket(t *testing.T) {
	bubble(t, 1, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.few()
		s.boot()
		c := s.dial()
		defer c.Close()
		tenant := func(i int) client.Request { return client.Request{Tenant: fmt.Sprint("t", i), Plan: "year"} }
		for i := range 30 {
			burst(c, 4, tenant(i)).want(t, 4, 0)
		}
		s.join("b", "c")
		s.registered()
		for name, x := range s.nodes {
			if ok, _ := x.Ready(); ok && name != "a" {
				t.Errorf("%s is ready before it has replicas", name)
			}
		}
		s.settled(2 * time.Minute)
		s.shares(3)
		s.eventually(30*time.Second, func() error { return s.controlVoters(3) })
		for i := range 30 {
			burst(c, 10, tenant(i)).want(t, 6, 4)
		}
		s.equalReplicas()
		for name, x := range s.nodes {
			if ok, why := x.Ready(); !ok {
				t.Errorf("%s is not ready: %s", name, why)
			}
		}
	})
}

// few makes a cluster of few slots: there is less to move.
func (s *sim) few() { s.tune = func(c *Config) { c.Slots = 128 } }

// settled waits until the placement is as wished and every group whole, as every
// node sees it.
func (s *sim) settled(within time.Duration) {
	s.t.Helper()
	s.registered()
	s.healthy(within)
}

// steady spends the budgets of many tenants under load while something else goes
// on: each tenant has 100 and no refill.
type steady struct {
	c     *client.Client
	stop  chan struct{}
	wg    sync.WaitGroup
	spent []*tally
}

// spend begins to take for n tenants, each once every gap.
func spend(t *testing.T, c *client.Client, n int, gap time.Duration) *steady {
	l := &steady{c: c, stop: make(chan struct{})}
	for i := range n {
		y := new(tally)
		l.spent = append(l.spent, y)
		l.wg.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				case <-t.Context().Done():
					return
				case <-time.After(gap):
					l.wg.Go(func() { y.take(c, 2*time.Second, l.tenant(i)) })
				}
			}
		})
	}
	return l
}

func (l *steady) tenant(i int) client.Request {
	return client.Request{Tenant: fmt.Sprint("load", i), Plan: "hundred"}
}

// exact ends the load and checks that each tenant was admitted exactly its budget
// and no call failed.
func (l *steady) exact(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.wg.Wait()
	for i, y := range l.spent {
		rest := burst(l.c, 110, l.tenant(i))
		if n := y.admitted.Load() + rest.admitted.Load(); n != 100 {
			t.Errorf("tenant %d: %d admitted, want 100", i, n)
		}
		if err := errors.Join(y.first, rest.first); err != nil {
			t.Errorf("tenant %d: %d takes failed, the first with %v", i, y.failed.Load(), err)
		}
	}
}

func TestThreeToFiveToThreeUnderLoadIsExact(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.few()
		s.boot()
		c := s.dial()
		defer c.Close()
		load := spend(t, c, 40, 500*time.Millisecond)
		s.join("d", "e")
		s.settled(3 * time.Minute)
		s.shares(5)
		for _, name := range []string{"d", "a"} {
			s.drain(name, 3*time.Minute)
			s.settled(time.Minute)
		}
		s.shares(3)
		load.exact(t)
		s.equalReplicas()
	})
}
