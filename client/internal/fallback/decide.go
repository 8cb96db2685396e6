package fallback

import (
	"math"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// Decider holds the shares that a client spends from by itself. It is safe for
// concurrent use.
type Decider struct {
	mu     sync.Mutex // guards the rest; held while one request is decided
	locals map[bucket.Key]*local
	swept  time.Time
	most   int
}

// maxLocals bounds the buckets that are not fresh, at some 250 bytes each.
const maxLocals = 64 << 10

// NewDecider returns one whose shares are all full: it does not know what the cluster
// had left of them.
func NewDecider() *Decider { return &Decider{locals: map[bucket.Key]*local{}, most: maxLocals} }

// asked is one policy that decides by a share.
type asked struct {
	local *local
	at    int    // in the limits
	cost  uint64 // 0 looks
}

// Decide answers a valid request by r. lasted is for how long the cluster has been
// out of reach, wall what the calendar says, for overrides that have ended since the
// cluster told of them, and now the same moment on a clock that never steps.
//
// Over several limits all must pass: a denied request takes nothing from any share.
func (d *Decider) Decide(r *Rules, q *policy.Request, s Share, lasted time.Duration, wall, now time.Time) Decision {
	var stack [8]policy.Hit
	hits := r.index.Match(q, stack[:0])
	limits := make([]Limit, len(hits))
	d.mu.Lock()
	defer d.mu.Unlock()
	var asks []asked
	for i := range hits {
		if a, local := d.judge(&hits[i], &limits[i], s, lasted, wall, now); local {
			a.at = i
			asks = append(asks, a)
		}
	}
	out := Decision{Allowed: !denied(limits), Head: head(limits), Limits: limits}
	if out.Head < 0 {
		out.Allowed = r.noMatch == policy.Allow
	}
	if out.Allowed {
		charge(asks, limits, now)
		out.Head, out.Delay = head(limits), longestDelay(limits) // by what is left now
	}
	return out
}

// judge says what one policy would, charging nothing.
func (d *Decider) judge(h *policy.Hit, l *Limit, s Share, lasted time.Duration, wall, now time.Time) (asked, bool) {
	limit, version := h.Rule.Limit, h.Rule.Version
	if h.Override != nil && h.Override.Until <= wall.UnixNano() {
		limit, version = h.Policy.Limit, h.Policy.Version
	}
	*l = Limit{
		Policy: h.Policy, Version: version, Mode: h.Policy.OnUnavailable.At(lasted), Shadow: h.Policy.Mode == policy.Shadow,
		Capacity: limit.Capacity(),
	}
	switch l.Mode {
	case policy.Open:
		l.Allowed = true
		return asked{}, false
	case policy.Closed:
		l.Reason, l.RetryAfter = LimiterUnavailable, retry
		return asked{}, false
	}
	l.Known = true
	x, whole := d.local(h, limit, s, now), limit.Capacity()
	l.Capacity = x.limit.Capacity()
	left := x.left(now)
	need := max(h.Cost, 1) // a look asks for one
	switch {
	case whole == 0:
		l.Reason, l.RetryAfter = NothingAllowed, -1
	case need > whole:
		l.Reason, l.RetryAfter = CostExceeds, -1
	case need > l.Capacity: // of the share: the whole may admit it again
		l.Reason, l.RetryAfter = RateLimited, retry
	case float64(need) > left:
		l.Reason, l.RetryAfter = RateLimited, x.wait(need, now)
	default:
		l.Allowed = true
		if limit.Algorithm == bucket.LeakyBucket && h.Cost > 0 {
			backlog := float64(l.Capacity) - left
			l.Delay = time.Duration(max(0, backlog) / float64(x.limiter.Limit()) * float64(time.Second))
		}
	}
	describe(l, x, now)
	return asked{local: x, cost: h.Cost}, true
}

// describe tells what a share holds.
func describe(l *Limit, x *local, now time.Time) {
	l.Remaining = min(uint64(math.Floor(x.left(now))), l.Capacity)
	if l.ResetAfter = 0; l.Remaining < l.Capacity {
		l.ResetAfter = x.wait(l.Capacity, now)
	}
}

// charge takes what was admitted. What a shadow policy cannot afford it does not pay.
func charge(asks []asked, limits []Limit, now time.Time) {
	for _, a := range asks {
		l := &limits[a.at]
		if l.Allowed && a.cost > 0 {
			a.local.limiter.ReserveN(now, int(a.cost)) // takes it also where rounding leaves a little less
			describe(l, a.local, now)
		}
	}
}

// local finds or makes the share of a bucket. At the cap, buckets that are new share
// one for each policy: less than each its own, never more.
func (d *Decider) local(h *policy.Hit, limit bucket.Limit, s Share, now time.Time) *local {
	key := h.Key
	limit.Amount, limit.Burst = s.of(limit.Amount, limit.Capacity(), key.Lo)
	if !limit.Algorithm.HasBurst() {
		limit.Burst = limit.Amount
	}
	x := d.locals[key]
	if x == nil && len(d.locals) >= d.most {
		if now.Sub(d.swept) >= time.Second {
			d.sweep(now)
		}
		if len(d.locals) >= d.most {
			key = bucket.Key{Lo: h.Number}
			x = d.locals[key]
		}
	}
	if x == nil {
		x = newLocal(limit, now)
		d.locals[key] = x
		return x
	}
	x.turn(limit, now)
	return x
}

// sweep drops what is as if it were new.
func (d *Decider) sweep(now time.Time) {
	d.swept = now
	for key, x := range d.locals {
		if x.fresh(now) {
			delete(d.locals, key)
		}
	}
}
