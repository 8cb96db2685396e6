package cluster

import (
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/decision"
	"github.com/ringlimit/ringlimit/policy"
)

// A request that needs a new bucket where the cap is reached meets the failure
// mode of its policy, as it would if the limiter were out of reach. Nothing was
// charged: a request is decided as a whole or not at all.

// spell is for how long a group has had no room, as far as its answers tell.
type spell struct {
	mu          sync.Mutex // guards the rest
	began, last time.Time
}

// spellGap is how long a group has had room again, or was not asked, when the
// next refusal counts as the first of a new spell.
const spellGap = 10 * time.Second

// refused notes a refusal and returns how long the spell has lasted.
func (s *spell) refused(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() || now.Sub(s.last) > spellGap {
		s.began = now
	}
	s.last = now
	return now.Sub(s.began)
}

// fullRetry is when a caller that was denied for want of room may try again: a
// sweep, which drops buckets that are fresh again, comes by every second.
const fullRetry = time.Second

// full answers request i for which its group had no room: a decision where the
// policy's failure mode is one, else an error that says that the caller decides.
func (n *Node) full(b *batch, i int, group, epoch uint32, hits []policy.Hit) {
	v, _ := n.spells.LoadOrStore(group, new(spell))
	h, mode := strictest(hits, v.(*spell).refused(time.Now()))
	n.metrics.full(mode)
	if h == nil || mode == policy.Local {
		e := &fault.Error{
			Kind: fault.StoreFull, Mode: mode.String(),
			Message: "the cap on buckets or request ids is reached, and this key is new",
		}
		if h != nil {
			e.Policy = h.Policy.ID
		}
		b.fail(i, e)
		return
	}
	d := &b.decisions[i]
	*d = pb.Decision{
		Degraded: true, Group: group, Epoch: epoch, Allowed: mode == policy.Open,
		PolicyId: h.Policy.ID, PolicyVersion: h.Rule.Version, Limit: h.Rule.Limit.Capacity(),
	}
	if !d.Allowed {
		d.Reason, d.RetryAfterNs = decision.LimiterUnavailable, int64(fullRetry)
	}
	b.results[i].Decision = d
}

// strictest is the policy whose failure mode a request meets after a spell of
// some length, of those that may deny: closed before local before open. nil:
// there is none, and the caller decides.
func strictest(hits []policy.Hit, lasted time.Duration) (*policy.Hit, policy.FailureMode) {
	rank := func(m policy.FailureMode) int {
		switch m {
		case policy.Closed:
			return 2
		case policy.Open:
			return 0
		}
		return 1
	}
	var worst *policy.Hit
	mode := policy.Local
	for i := range hits {
		h := &hits[i]
		if h.Policy.Mode == policy.Shadow {
			continue
		}
		if m := h.Policy.OnUnavailable.At(lasted); worst == nil || rank(m) > rank(mode) {
			worst, mode = h, m
		}
	}
	return worst, mode
}
