package fallback

import (
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// Steady says which denials of a request last: those by policies that are enforced, whose
// tokens nobody but the cluster spends, and that refill by time alone, so that a denial
// stands until its retry time unless somebody gives something back or changes the limit. A
// permit of a concurrency limit is free whenever its holder is done. It returns whether that
// is so for the policy id, if version is what r has for this request.
func (r *Rules) Steady(q *policy.Request, id string, version uint64) bool {
	var stack [8]policy.Hit
	for _, h := range r.index.Match(q, stack[:0]) {
		if h.Policy.ID == id {
			return h.Rule.Version == version && h.Policy.Mode == policy.Enforce && h.Policy.Consistency == policy.Strict &&
				h.Rule.Limit.Algorithm != bucket.Concurrency
		}
	}
	return false
}
