package client

import (
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// All returns the answer of every policy that applied, in order of their ids; none
// if no policy did. Where exactly one did, that is the headline, and All makes the
// slice: Limits stays nil, so that decisions nobody looks at so closely cost nothing.
func (d *Decision) All() []Answer {
	if len(d.Limits) > 0 || d.PolicyID == "" && d.PolicyVersion == 0 {
		return d.Limits
	}
	return []Answer{d.Answer}
}

// set takes over an answer.
func (d *Decision) set(p *pb.Decision) {
	*d = Decision{
		Answer: Answer{
			Allowed: p.Allowed, Limit: p.Limit, Remaining: p.Remaining,
			ResetAfter: time.Duration(p.ResetAfterNs), RetryAfter: time.Duration(p.RetryAfterNs), Delay: time.Duration(p.DelayNs),
			PolicyID: p.PolicyId, PolicyVersion: p.PolicyVersion, Reason: p.Reason,
		},
		Degraded: p.Degraded, Uncommitted: p.Uncommitted,
		Group: p.Group, Epoch: p.Epoch, Term: p.Term, Index: p.Index, SlotTime: time.Duration(p.SlotTimeNs),
	}
	if len(p.Limits) == 0 {
		return
	}
	d.Limits = make([]Answer, len(p.Limits))
	for i, l := range p.Limits {
		d.Limits[i] = Answer{
			Allowed: l.Allowed, Limit: l.Limit, Remaining: l.Remaining,
			ResetAfter: time.Duration(l.ResetAfterNs), RetryAfter: time.Duration(l.RetryAfterNs), Delay: time.Duration(l.DelayNs),
			PolicyID: l.PolicyId, PolicyVersion: l.PolicyVersion, Reason: l.Reason,
		}
	}
}
