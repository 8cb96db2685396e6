package fleet

import (
	"math/rand/v2"
	"time"
)

// Shape is what a relay does to one direction of a link. Streams stay in order,
// as TCP keeps them, but for copies; packets do not.
type Shape struct {
	Delay  time.Duration // of everything
	Jitter time.Duration // added to it, at random up to this
	Twice  float64       // share of messages between nodes, and of packets, that come a second time at once
	Again  float64       // share of them that come a second time after Later
	Later  time.Duration // at most; at random
	Lost   float64       // share of packets that are dropped; streams lose nothing
}

// due is when something that came now is to be passed on.
func (s *Shape) due(now time.Time) time.Time {
	if s == nil {
		return now
	}
	return now.Add(s.Delay + upTo(s.Jitter))
}

// copies are the times at which copies of a message or packet follow.
func (s *Shape) copies(due time.Time) (times []time.Time) {
	if s == nil {
		return nil
	}
	if s.Twice > 0 && rand.Float64() < s.Twice {
		times = append(times, due)
	}
	if s.Again > 0 && rand.Float64() < s.Again {
		times = append(times, due.Add(upTo(s.Later)))
	}
	return times
}

// drops says whether a packet is lost.
func (s *Shape) drops() bool { return s != nil && s.Lost > 0 && rand.Float64() < s.Lost }

func upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}
