package grpclimit

import (
	"math"
	"testing"
	"time"
)

func TestPushbackRoundsUpAndFits(t *testing.T) {
	const most = math.MaxInt32 * time.Millisecond
	for _, c := range []struct {
		wait       time.Duration
		jitter, by float64
		want       int64
	}{
		{0, 0.2, 1, 0},
		{1, 0, 1, 1},
		{time.Millisecond, 0, 1, 1},
		{time.Millisecond + 1, 0, 1, 2},
		{1840 * time.Millisecond, 0.5, 0, 1840},
		{1840 * time.Millisecond, 0.5, 1, 2760},
		{most, 0, 1, math.MaxInt32},
		{most + 1, 0, 1, -1},
		{most, 0.1, 1, -1},
		{math.MaxInt64, 0, 0, -1},
		{math.MaxInt64, 1, 1, -1},
	} {
		if got := pushbackMs(c.wait, c.jitter, c.by); got != c.want {
			t.Errorf("%v with %v × %v: %d, want %d", c.wait, c.jitter, c.by, got, c.want)
		}
	}
}
