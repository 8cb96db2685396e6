package bucket

import "fmt"

// Algorithm names how a limit counts.
type Algorithm uint8

// The algorithms. Their numbers stand in log entries and never change.
const (
	TokenBucket   Algorithm = 1
	LeakyBucket   Algorithm = 2
	FixedWindow   Algorithm = 3
	SlidingWindow Algorithm = 4
	SlidingLog    Algorithm = 5
	Concurrency   Algorithm = 6
)

var algorithms = [...]string{
	TokenBucket:   "token_bucket",
	LeakyBucket:   "leaky_bucket",
	FixedWindow:   "fixed_window",
	SlidingWindow: "sliding_window",
	SlidingLog:    "sliding_log",
	Concurrency:   "concurrency",
}

// HasBurst says whether a limit of this algorithm has a burst apart from its amount.
func (a Algorithm) HasBurst() bool { return a == TokenBucket || a == LeakyBucket }

func (a Algorithm) known() bool { return a >= TokenBucket && a <= Concurrency }

// String is the name that policy files use.
func (a Algorithm) String() string {
	if a.known() {
		return algorithms[a]
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

// ParseAlgorithm is the inverse of String; ok is false for any other text.
func ParseAlgorithm(text string) (a Algorithm, ok bool) {
	for a := TokenBucket; int(a) < len(algorithms); a++ {
		if algorithms[a] == text {
			return a, true
		}
	}
	return 0, false
}
