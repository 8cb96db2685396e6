package fallback

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/ringlimit/ringlimit/bucket"
)

// local is the share of one bucket. Token and leaky buckets refill all the time, as
// those of the cluster do. A limit per window is as many tokens at the beginning of
// each, and none in between; the first window begins with the first take. A
// concurrency limit is one of these: as many permits as the share per time limit of
// a permit, as if each were held for all of it.
type local struct {
	limiter *rate.Limiter
	limit   bucket.Limit // the share
	began   time.Time    // the window, of a limit per window
}

func newLocal(l bucket.Limit, now time.Time) *local {
	return &local{rate.NewLimiter(perSecond(l), int(l.Capacity())), l, now}
}

func perSecond(l bucket.Limit) rate.Limit {
	if !l.Algorithm.HasBurst() {
		return 0
	}
	return rate.Limit(float64(l.Amount) / time.Duration(l.Window).Seconds())
}

// turn brings the share up to a time and to the limit as it is now, which may have
// changed with the policy or with the number of clients.
func (x *local) turn(l bucket.Limit, now time.Time) {
	if l != x.limit {
		if l.Algorithm != x.limit.Algorithm || l.Window != x.limit.Window {
			x.began = now // what was left goes over, up to what there is now
		}
		x.limit = l
		x.limiter.SetLimitAt(now, perSecond(l))
		x.limiter.SetBurstAt(now, int(l.Capacity()))
	}
	window := time.Duration(l.Window)
	if gone := now.Sub(x.began); !l.Algorithm.HasBurst() && gone >= window {
		x.began = x.began.Add(gone.Truncate(window))
		x.limiter = rate.NewLimiter(0, int(l.Capacity()))
	}
}

// slack is what rounding may take from a whole token.
const slack = 1e-6

// left is how many tokens there are.
func (x *local) left(now time.Time) float64 { return max(0, x.limiter.TokensAt(now)+slack) }

// wait is until there are more tokens, of which there are fewer than need ≤ capacity.
func (x *local) wait(need uint64, now time.Time) time.Duration {
	if !x.limit.Algorithm.HasBurst() {
		return x.began.Add(time.Duration(x.limit.Window)).Sub(now)
	}
	missing := float64(need) - x.limiter.TokensAt(now)
	return time.Duration(max(0, missing)/float64(x.limiter.Limit())*float64(time.Second)) + 1
}

// fresh says whether x is as a new one would be.
func (x *local) fresh(now time.Time) bool {
	if !x.limit.Algorithm.HasBurst() && now.Sub(x.began) >= time.Duration(x.limit.Window) {
		return true
	}
	return x.limiter.TokensAt(now) >= float64(x.limit.Capacity())
}
