package quiet

import (
	"testing"
	"time"
)

func TestABurstThenALineASecond(t *testing.T) {
	var q Lines
	let := func(at time.Duration, n int) (lines, left int) {
		for range n {
			if dropped, ok := q.Allow(int64(at)); ok {
				lines++
				left += dropped
			}
		}
		return lines, left
	}
	for _, c := range []struct {
		at              time.Duration
		n, lines, leftd int
	}{
		{500 * time.Millisecond, 100, burst, 0},
		{900 * time.Millisecond, 100, 0, 0},
		{1100 * time.Millisecond, 100, 1, 192},
		{3 * time.Second, 1, 1, 99},
		{time.Hour, 100, burst, 0},
	} {
		if lines, left := let(c.at, c.n); lines != c.lines || left != c.leftd {
			t.Errorf("%d at %s: %d lines that tell of %d others, want %d and %d", c.n, c.at, lines, left, c.lines, c.leftd)
		}
	}
}
