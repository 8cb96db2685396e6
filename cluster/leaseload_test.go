package cluster

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/policy"
)

// admitted is what callers were allowed, and when.
type admitted struct {
	mu sync.Mutex // guards at
	at []time.Time
}

func (a *admitted) note(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, now)
}

// check holds every interval between two admissions to burst + rate × (time + a lease's time).
func (a *admitted) check(t *testing.T, burst, perSecond int64) {
	t.Helper()
	for i := range a.at {
		if i > 0 && a.at[i].Equal(a.at[i-1]) {
			continue // the interval before is as long, and has one more
		}
		for k := i + 1; k <= len(a.at); k++ {
			if k < len(a.at) && a.at[k].Equal(a.at[k-1]) {
				continue
			}
			over := (int64(k-i) - burst) * int64(time.Second)
			if over > perSecond*int64(a.at[k-1].Sub(a.at[i])+maxLeaseTime) {
				t.Fatalf("%d admitted in %v: more than %d and %d a second", k-i, a.at[k-1].Sub(a.at[i]), burst, perSecond)
			}
		}
	}
}

// TestLeasedStaysWithinTheBoundOverFaults: eight clients on one key while its leader is
// killed, clients end with tokens in hand, and a leader is stopped at a grant.
func TestLeasedStaysWithinTheBoundOverFaults(t *testing.T) {
	const burst, perSecond, clients = 300, 1000, 8
	file := fmt.Sprintf("policies:\n  - {id: hot, scope: [tenant], amount: %d, window: 1s, burst: %d, consistency: leased, on_unavailable: {mode: closed, after: deadline}}\n", perSecond, burst)
	bubble(t, 3, func(t *testing.T, s *sim) {
		set, err := policy.Parse("test.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		s.set = set
		s.boot()
		var a admitted
		var callers sync.WaitGroup
		var leased [clients]uint64
		stop := make(chan struct{})
		for i := range clients {
			callers.Go(func() {
				c := s.dialAs(fmt.Sprint("client", i))
				defer func() { c.Close() }()
				ends := time.Now().Add(time.Duration(700+300*i) * time.Millisecond)
				for {
					select {
					case <-stop:
						leased[i] += c.Stats().Leased
						return
					case <-time.After(time.Duration(2+i) * time.Millisecond):
					}
					if time.Now().After(ends) { // another process takes its place; this one's tokens are lost
						ends = ends.Add(time.Hour)
						leased[i] += c.Stats().Leased
						host := fmt.Sprint("client", i)
						s.net.Kill(host)
						c.Close()
						s.net.Revive(host)
						c = s.dialAs(host)
					}
					if d, err := c.Decide(t.Context(), client.Request{Tenant: "t"}); err == nil && d.Allowed && !d.Degraded {
						a.note(time.Now())
					}
				}
			})
		}
		time.Sleep(time.Second)
		victim := s.leader("t")
		s.kill(victim)
		time.Sleep(500 * time.Millisecond)
		s.start(victim)
		s.healthy(30 * time.Second)
		frozen := s.leader("t")
		s.net.Freeze(frozen)
		time.Sleep(3 * time.Second)
		close(stop)
		callers.Wait()
		a.check(t, burst, perSecond)
		var spent uint64
		for i := range clients {
			spent += leased[i]
		}
		took := a.at[len(a.at)-1].Sub(a.at[0])
		t.Logf("%d admitted in %v, %d of them from leases", len(a.at), took, spent)
		if len(a.at) < int(perSecond*took.Seconds()*7/10) || spent < uint64(len(a.at))/4 {
			t.Errorf("%d admitted, %d of them from leases", len(a.at), spent)
		}
		s.net.Thaw(frozen) // so that it ends like the others
	})
}
