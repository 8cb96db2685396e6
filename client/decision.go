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
			PermitID: p.PermitId, FencingToken: p.FencingToken, Witness: witness(p.Witness),
		},
		Limits:   answers(p.Limits),
		Degraded: p.Degraded, FailureMode: failureMode(p), Uncommitted: p.Uncommitted,
		Group: p.Group, Epoch: p.Epoch, Term: p.Term, Index: p.Index, SlotTime: time.Duration(p.SlotTimeNs),
	}
}

// decide takes over the cluster's answer to k.
func (k *call) decide(p *pb.Decision) {
	k.decision.set(p)
	k.leased = p.Leased
	if k.lease != nil {
		k.lease.take(p)
	}
}

// failureMode is that of a decision which a node made without a bucket. Its modes are
// closed and open: for local it answers with an error.
func failureMode(p *pb.Decision) FailureMode {
	switch {
	case !p.Degraded:
		return ""
	case p.Allowed:
		return ModeOpen
	default:
		return ModeClosed
	}
}

// answers copies what single policies say; nil for none.
func answers(limits []*pb.LimitDecision) []Answer {
	if len(limits) == 0 {
		return nil
	}
	out := make([]Answer, len(limits))
	for i, l := range limits {
		out[i] = Answer{
			Allowed: l.GetAllowed(), Limit: l.GetLimit(), Remaining: l.GetRemaining(),
			ResetAfter: time.Duration(l.GetResetAfterNs()), RetryAfter: time.Duration(l.GetRetryAfterNs()), Delay: time.Duration(l.GetDelayNs()),
			PolicyID: l.GetPolicyId(), PolicyVersion: l.GetPolicyVersion(), Reason: l.GetReason(),
			PermitID: l.GetPermitId(), FencingToken: l.GetFencingToken(), Shadow: l.GetShadow(),
			Witness: witness(l.GetWitness()),
		}
	}
	return out
}

func witness(w *pb.Witness) *Witness {
	if w == nil {
		return nil
	}
	return &Witness{
		Group: w.Group, Epoch: w.Epoch, Term: w.Term, Index: w.Index, Position: int(w.Position),
		SlotTime: time.Duration(w.SlotTimeNs), Uncommitted: w.Uncommitted, Repeated: w.Repeated,
	}
}
