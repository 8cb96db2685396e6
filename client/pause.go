package client

import (
	"math/rand/v2"
	"time"
)

// pause spaces tries out: from least, doubling to most, each somewhere between
// half and the whole of it.
type pause struct {
	length int64 // ns; 0: not begun
	until  int64 // client time
}

const (
	leastPause = 10 * time.Millisecond
	mostPause  = 100 * time.Millisecond
)

func (p *pause) begin(now int64) {
	p.length = int64(leastPause)
	p.until = now + jitter(p.length)
}

func (p *pause) next(now int64) {
	p.length = min(2*p.length, int64(mostPause))
	p.until = now + jitter(p.length)
}

// jitter returns a time between half of d and d.
func jitter(d int64) int64 { return d/2 + rand.Int64N(d/2+1) }

// fullJitter returns a time up to least doubled n times, at most mostPause.
func fullJitter(least time.Duration, n int) int64 {
	return rand.Int64N(min(int64(least)<<min(n, 10), int64(mostPause)) + 1)
}
