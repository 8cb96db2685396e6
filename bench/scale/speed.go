package main

import (
	"math/rand/v2"
	"time"
)

// Speed is how fast the machine is just now: a virtual one's changes with what its host
// does for others, and figures of two runs compare no better than these.
type Speed struct {
	Arithmetic float64 `json:"arithmetic_ns"` // of a step of six dependent operations
	Memory     float64 `json:"memory_ns"`     // of a load from a random place in 64 MB
}

// speedNow takes some 0.1 s for each, after setting up.
func speedNow() Speed {
	const size = 64 << 20 / 4
	ring := shuffled(size)
	at, x := uint32(0), uint64(1)
	loads := timed(100_000, func() { at = ring[at] })
	steps := timed(10_000_000, func() {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	})
	if x == 0 && at == size { // neither can be: so that the loops are not left out
		panic(x)
	}
	return Speed{Arithmetic: steps, Memory: loads}
}

// timed is the mean time of a step, in ns, over at least so many and 0.1 s.
func timed(steps int, step func()) float64 {
	began, done := time.Now(), 0
	for time.Since(began) < 100*time.Millisecond {
		for range steps {
			step()
		}
		done += steps
	}
	return float64(time.Since(began).Nanoseconds()) / float64(done)
}

// shuffled is one cycle through all n places, in random order (Sattolo's shuffle).
func shuffled(n int) []uint32 {
	ring := make([]uint32, n)
	for i := range ring {
		ring[i] = uint32(i)
	}
	for i := n - 1; i > 0; i-- {
		j := rand.IntN(i)
		ring[i], ring[j] = ring[j], ring[i]
	}
	return ring
}
