// Package decision turns what the buckets of one request answer into what its
// caller is told: one limit for each policy, in words, and which of them is the
// headline. The cluster and `rlnode simulate` share it, so that they cannot
// differ. It is pure, as bucket and policy are.
package decision

import (
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// Limit is the answer of one policy as its caller is told it. Times are in ns;
// RetryAfter is -1 if no wait helps.
type Limit struct {
	PolicyID      string
	PolicyVersion uint64
	Allowed       bool
	Shadow        bool   // counted, but never denies
	Reason        string // one of the reasons; "" when allowed
	Capacity      uint64
	Remaining     uint64
	ResetAfter    int64
	RetryAfter    int64
	Delay         int64
	PermitID      uint64 // as bucket.Answer has it
	FencingToken  uint64 // likewise
	Units         uint64 // likewise, of a lease
	UnitCost      uint64 // likewise
}

// The reasons of decisions, as callers see them.
const (
	NoPolicy        = "no_policy" // no policy applies, or none that may deny
	RateLimited     = "rate_limited"
	CostExceeds     = "cost_exceeds_capacity"
	NothingAllowed  = "nothing_allowed"
	DeniedElsewhere = "denied_by_another_limit" // this id was denied before; a new id may ask at once
	Refunded        = "refunded"                // the id was refunded before it was used

	LimiterUnavailable = "limiter_unavailable" // no bucket was asked; the policy's failure mode is closed
)

// Reason is the word for a bucket's reason.
func Reason(r bucket.Reason) string {
	switch r {
	case bucket.ReasonNone:
		return ""
	case bucket.ReasonCostExceedsCapacity:
		return CostExceeds
	case bucket.ReasonNothingAllowed:
		return NothingAllowed
	case bucket.ReasonDeniedElsewhere:
		return DeniedElsewhere
	case bucket.ReasonRefunded:
		return Refunded
	default:
		return RateLimited
	}
}

// Append appends the limit of each answer to dst. hits are the policies as
// matched now, in the order of the takes. A stored answer may be of older ones:
// they are found in the index by their number, and have no id if they are gone.
func Append(dst []Limit, index *policy.Index, hits []policy.Hit, answers []bucket.Answer) []Limit {
	for i := range answers {
		a := &answers[i]
		l := Limit{
			PolicyVersion: a.Rule.Version, Allowed: a.Allowed, Shadow: a.Shadow, Reason: Reason(a.Reason),
			Capacity: a.Capacity, Remaining: a.Remaining, ResetAfter: a.ResetAfter, RetryAfter: a.RetryAfter,
			Delay: a.Delay, PermitID: a.PermitID, FencingToken: a.FencingToken, Units: a.Units, UnitCost: a.UnitCost,
		}
		if i < len(hits) && hits[i].Rule.Policy == a.Rule.Policy {
			l.PolicyID = hits[i].Policy.ID
		} else if p, ok := index.ByNumber(a.Rule.Policy); ok {
			l.PolicyID = p.ID
		}
		dst = append(dst, l)
	}
	return dst
}

// Enforced says whether any of the policies that apply may deny. A request
// without one falls to the set's no_match: a shadow policy must change no
// decision, so it can neither admit what would be denied without it.
func Enforced(hits []policy.Hit) bool {
	for i := range hits {
		if hits[i].Policy.Mode != policy.Shadow {
			return true
		}
	}
	return false
}

// Headline is the index of the strictest limit, -1 if there is none but shadow
// ones: of those that deny the one with the longest wait, else the one with the
// least remaining share; the first among equals.
func Headline(limits []Limit) int {
	head := -1
	for i := range limits {
		if !limits[i].Shadow && (head < 0 || stricter(&limits[i], &limits[head])) {
			head = i
		}
	}
	return head
}

func stricter(a, b *Limit) bool {
	if a.Allowed != b.Allowed {
		return !a.Allowed
	}
	if !a.Allowed {
		return uint64(a.RetryAfter) > uint64(b.RetryAfter) // -1, never, is the longest
	}
	// a.Remaining/a.Capacity < b.Remaining/b.Capacity; all are at most 10^9.
	return a.Remaining*b.Capacity < b.Remaining*a.Capacity
}

// Delay is how long the caller of an admitted request holds it, in ns: the
// longest delay of all limits but shadow ones.
func Delay(limits []Limit) (ns int64) {
	for i := range limits {
		if !limits[i].Shadow {
			ns = max(ns, limits[i].Delay)
		}
	}
	return ns
}

// Permit is the index of the limit whose permit stands for the decision, the
// first that granted one; -1: none did.
func Permit(limits []Limit) int {
	for i := range limits {
		if limits[i].PermitID != 0 && !limits[i].Shadow {
			return i
		}
	}
	return -1
}

// Take is what a policy that applies asks of its bucket.
func Take(h *policy.Hit) bucket.Take {
	return bucket.Take{Slot: h.Slot, Key: h.Key, Rule: h.Rule, Cost: h.Cost, Shadow: h.Policy.Mode == policy.Shadow}
}
