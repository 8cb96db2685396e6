package cluster

import (
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

// apart gives every node a clock of its own: they differ by a thousand hours.
func (s *sim) apart() {
	start := time.Now()
	s.tune = func(c *Config) {
		offset := time.Duration(c.Name[0]-'a') * 1000 * time.Hour
		c.Seams.Now = func() time.Time { return start.Add(offset + time.Since(start)) }
	}
}

func TestNoClockOfAnotherNodeRefillsABucket(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.apart()
		s.boot()
		c := s.dial()
		defer c.Close()
		empty := client.Request{Tenant: "t", Plan: "burst"} // 10 a second
		burst(c, 100, empty).want(t, 100, 0)
		begun := time.Now()
		spent := func(what string) {
			t.Helper()
			y := burst(c, 200, empty)
			if n, most := y.admitted.Load(), int64(10*time.Since(begun).Seconds())+1; n > most || n < most-5 {
				t.Errorf("after %s: %d admitted within %v, want %d", what, n, time.Since(begun), most)
			}
			begun = time.Now()
		}
		time.Sleep(time.Second)
		s.begin(s.elsewhere(s.slot("t")), s.slot("t"))
		s.ended(s.slot("t"), 10*time.Second)
		spent("a move")
		time.Sleep(time.Second)
		victim := s.leader("t")
		s.kill(victim)
		time.Sleep(time.Second)
		spent("a new leader")
	})
}
