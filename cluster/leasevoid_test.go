package cluster

import (
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/policy"
)

// TestTokensOfALeaseAreVoidByTime: four clients lease much, and spend so little of it that
// the bucket is full again while they hold the rest. Then all take what they can. It is
// another test than that over faults, because whoever wants more than there is never has
// tokens for long.
func TestTokensOfALeaseAreVoidByTime(t *testing.T) {
	const burst, perSecond, clients = 4000, 200, 4
	const file = "policies:\n  - {id: hot, scope: [tenant], amount: 200, window: 1s, burst: 4000, consistency: leased}\n"
	bubble(t, 3, func(t *testing.T, s *sim) {
		set, err := policy.Parse("test.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		s.set = set
		s.boot()
		var a admitted
		var held [clients]uint64
		var callers sync.WaitGroup
		start := time.Now()
		for i := range clients {
			callers.Go(func() {
				c := s.dialAs("client"+string(rune('0'+i)), client.NeverDegrade())
				defer c.Close()
				take := func(cost int64) bool {
					d, err := c.Decide(t.Context(), client.Request{Tenant: "t", Cost: cost})
					if err != nil || !d.Allowed {
						return false
					}
					for range cost {
						a.note(time.Now())
					}
					return true
				}
				for time.Since(start) < 250*time.Millisecond {
					take(10)
					time.Sleep(5 * time.Millisecond)
				}
				held[i] = c.Stats().UnitsGranted - 10*c.Stats().Leased
				for time.Since(start) < 25*time.Second { // often enough that it returns nothing
					take(1)
					time.Sleep(150 * time.Millisecond)
				}
				for take(10) {
				}
			})
		}
		callers.Wait()
		a.check(t, burst, perSecond)
		total := uint64(0)
		for _, n := range held {
			total += n
		}
		if total < 2*perSecond {
			t.Errorf("%d tokens were held, so none could be missed", total)
		}
	})
}
