// Package fallback decides in a caller's own process what the cluster cannot answer
// in time: by the failure mode of each policy that applies, and for the mode local by
// a share of its limit.
//
// Rules are the policies, compiled by the same code as the nodes' are, so that a
// request meets the same ones here and there. A Decider holds the shares that are
// being spent. An Outage says for how long the cluster has been out of reach, which
// ends the mode open. All of them are told the time: nothing here reads a clock,
// waits, or knows a network.
package fallback

import (
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/policy"
)

// Rules are the policies of a cluster, ready to be matched. They never change.
type Rules struct {
	index   *policy.Index
	noMatch policy.Action
	soonest time.Duration
}

// Compile makes the rules of a valid set. secret keys the identities of local
// buckets: rules with the same one spend from the same buckets.
func Compile(set *policy.Set, secret [16]byte) (*Rules, error) {
	index, err := policy.Compile(set, policy.Keys{Secret: secret, Slots: 1}) // no slot matters here
	if err != nil {
		return nil, err
	}
	r := &Rules{index: index, noMatch: set.NoMatch, soonest: policy.DefaultAfter}
	for _, p := range set.Policies {
		if after := after(p); after != policy.AfterDeadline && p.Mode == policy.Enforce {
			r.soonest = min(r.soonest, after)
		}
	}
	return r, nil
}

// Soonest is the least time that any request waits for the cluster: no After is less
// but AfterDeadline. It is at most policy.DefaultAfter.
func (r *Rules) Soonest() time.Duration { return r.soonest }

// After is how long a request waits for the cluster before it is decided here: the
// longest of the policies that may deny it, policy.AfterDeadline if one of them waits
// for the caller's own deadline. A policy without an answer of the cluster is not
// given up before its time, and a request is decided as a whole.
func (r *Rules) After(q *policy.Request) time.Duration {
	var stack [8]policy.Hit
	longest := time.Duration(0)
	for _, h := range r.index.Match(q, stack[:0]) {
		switch d := after(h.Policy); {
		case h.Policy.Mode == policy.Shadow:
		case d == policy.AfterDeadline:
			return d
		default:
			longest = max(longest, d)
		}
	}
	if longest == 0 {
		return policy.DefaultAfter
	}
	return longest
}

func after(p *policy.Policy) time.Duration {
	if d := p.OnUnavailable.After; d != 0 {
		return d
	}
	return policy.DefaultAfter
}

// Decision is the answer to one request.
type Decision struct {
	Allowed bool
	Head    int           // index in Limits of the strictest, -1: no policy that may deny applies
	Delay   time.Duration // how long the caller holds an admitted request
	Limits  []Limit       // one per policy that applies, by id
}

// Limit is what one policy says.
type Limit struct {
	Policy     *policy.Policy
	Version    uint64 // of the policy, or of the override that changes its limit if that is newer
	Mode       policy.FailureMode
	Allowed    bool
	Shadow     bool   // counted, but never denies
	Known      bool   // Capacity, Remaining and the times are those of a local share
	Capacity   uint64 // tokens: of the share, else of the whole limit
	Remaining  uint64
	ResetAfter time.Duration
	RetryAfter time.Duration // 0 when allowed, -1: no wait helps
	Delay      time.Duration
	Reason     string // "" when allowed
}

// The reasons, in the words of the nodes' answers.
const (
	RateLimited        = "rate_limited"
	CostExceeds        = "cost_exceeds_capacity"
	NothingAllowed     = "nothing_allowed"
	LimiterUnavailable = "limiter_unavailable"
	NoPolicy           = "no_policy"
)

// retry is when a caller that was denied may try again where nothing better is
// known: by then the cluster may be back.
const retry = time.Second

// head finds the strictest limit: one that is closed, of others that deny the one with
// the longest wait, else that with the least remaining share; the first among equals.
func head(limits []Limit) int {
	best := -1
	for i := range limits {
		if !limits[i].Shadow && (best < 0 || stricter(&limits[i], &limits[best])) {
			best = i
		}
	}
	return best
}

func stricter(a, b *Limit) bool {
	switch {
	case a.Allowed != b.Allowed:
		return !a.Allowed
	case !a.Allowed && (a.Mode == policy.Closed) != (b.Mode == policy.Closed):
		return a.Mode == policy.Closed
	case !a.Allowed:
		return uint64(a.RetryAfter) > uint64(b.RetryAfter) // -1, never, is the longest
	case a.Known != b.Known:
		return a.Known
	default:
		return a.Remaining*b.Capacity < b.Remaining*a.Capacity // all are at most 10^9
	}
}

// longestDelay is that of an admitted request.
func longestDelay(limits []Limit) (d time.Duration) {
	for i := range limits {
		if !limits[i].Shadow {
			d = max(d, limits[i].Delay)
		}
	}
	return d
}

// denied says whether any limit denies.
func denied(limits []Limit) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool { return !l.Allowed && !l.Shadow })
}
