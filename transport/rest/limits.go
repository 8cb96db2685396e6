package rest

import (
	"time"

	"github.com/ringlimit/ringlimit/api/ratelimit"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// limitsOf are the limits of a decision, for the header; none where no bucket was asked.
func limitsOf(d *pb.Decision) []ratelimit.Limit {
	if d.GetDegraded() {
		return nil
	}
	if len(d.GetLimits()) == 0 {
		return []ratelimit.Limit{limitOf(d, d.GetPolicyId())} // without a policy it has no name, and is not told
	}
	out := make([]ratelimit.Limit, len(d.GetLimits()))
	for i, l := range d.GetLimits() {
		out[i] = limitOf(l, l.GetPolicyId())
		out[i].Shadow = l.GetShadow()
	}
	return out
}

func limitOf(l limit, policy string) ratelimit.Limit {
	return ratelimit.Limit{
		Policy: policy, Quota: l.GetLimit(), Remaining: l.GetRemaining(), Reset: time.Duration(l.GetResetAfterNs()), Allowed: l.GetAllowed(),
	}
}
