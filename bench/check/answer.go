package check

import (
	"maps"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
)

// Names are the buckets that a request counts against, by policy id. Limits of other
// policies are left out. nil: one bucket, Op.Bucket.
type Names map[string]string

// Answered makes the operations of one request from what the client library
// returned: one for each limit of the answer, or for each bucket of one that failed.
// o says all that was known before: Kind, Request, ID, Body, Cost, Call and Return,
// and Bucket where names are nil.
func Answered(o Op, d *client.Decision, err error, names Names) []Op {
	if err != nil || d == nil {
		return failed(o, err, names)
	}
	o.set(d.Allowed, d.Degraded)
	o.witness(d.Group, d.Epoch, d.Term, d.Index, d.SlotTime, d.Uncommitted)
	o.Witness.place(d.Witness)
	if o.Leased = d.Leased; o.Leased {
		o.Witness = Witness{} // what the answer has is of the grant
	}
	var out []Op
	for _, a := range d.All() {
		l := o
		l.Passed, l.Shadow, l.Capacity, l.Remaining = a.Allowed, a.Shadow, a.Limit, a.Remaining
		l.ResetAfter, l.RetryAfter, l.Delay, l.Reason = a.ResetAfter, a.RetryAfter, a.Delay, a.Reason
		l.Policy, l.Version, l.Permit, l.Token = a.PolicyID, a.PolicyVersion, a.PermitID, a.FencingToken
		l.Witness.place(a.Witness)
		if l.named(names) {
			out = append(out, l)
		}
	}
	return alone(out, o)
}

// Result makes the operations of one request from what a node answered.
func Result(o Op, r *pb.Result, names Names) []Op {
	d := r.GetDecision()
	if d == nil {
		err := fault.FromProto(r.GetError())
		if err == nil {
			err = fault.OutcomeUnknown
		}
		return failed(o, err, names)
	}
	o.set(d.GetAllowed(), d.GetDegraded())
	o.witness(d.GetGroup(), d.GetEpoch(), d.GetTerm(), d.GetIndex(), time.Duration(d.GetSlotTimeNs()), d.GetUncommitted())
	o.Witness.placeProto(d.GetWitness())
	limits := d.GetLimits()
	if len(limits) == 0 && d.GetPolicyVersion() > 0 {
		limits = []*pb.LimitDecision{{
			Allowed: d.GetAllowed(), Limit: d.GetLimit(), Remaining: d.GetRemaining(), ResetAfterNs: d.GetResetAfterNs(),
			RetryAfterNs: d.GetRetryAfterNs(), DelayNs: d.GetDelayNs(), PolicyId: d.GetPolicyId(), PolicyVersion: d.GetPolicyVersion(),
			Reason: d.GetReason(), PermitId: d.GetPermitId(), FencingToken: d.GetFencingToken(),
		}}
	}
	var out []Op
	for _, a := range limits {
		l := o
		l.Passed, l.Shadow, l.Capacity, l.Remaining = a.GetAllowed(), a.GetShadow(), a.GetLimit(), a.GetRemaining()
		l.ResetAfter, l.RetryAfter, l.Delay = time.Duration(a.GetResetAfterNs()), time.Duration(a.GetRetryAfterNs()), time.Duration(a.GetDelayNs())
		l.Reason, l.Policy, l.Version, l.Permit, l.Token = a.GetReason(), a.GetPolicyId(), a.GetPolicyVersion(), a.GetPermitId(), a.GetFencingToken()
		l.Witness.placeProto(a.GetWitness())
		if l.named(names) {
			out = append(out, l)
		}
	}
	return alone(out, o)
}

// Failed is a request that ended with an error.
func Failed(o Op, err error) Op {
	o.Code = Code(fault.ToProto(err).GetCode())

	if NotCharged(o.Code) {
		o.Outcome = Refused
		return o
	}
	o.Outcome, o.Return = Unknown, Forever
	return o
}

// Held is a renewal or release with its answer. That nothing was held says little of a
// release of which a second copy was perhaps sent: the first may have freed the permit.
// once is the longest that a call takes whose only copy was answered.
func Held(o Op, held bool, once time.Duration) Op {
	switch {
	case held:
		o.Outcome = Admitted
	case o.Kind == Release && o.Return-o.Call >= once:
		o.Outcome, o.Return, o.Code = Unknown, Forever, "outcome_unknown"
	default:
		o.Outcome = Denied
	}
	return o
}

// failed is one for each bucket, in order of their names.
func failed(o Op, err error, names Names) []Op {
	o = Failed(o, err)
	if len(names) == 0 {
		return []Op{o}
	}
	var out []Op
	for _, b := range slices.Sorted(maps.Values(names)) {
		o.Bucket = b
		out = append(out, o)
	}
	return out
}

func (o *Op) set(allowed, degraded bool) {
	o.Outcome, o.Degraded = Denied, degraded
	if allowed {
		o.Outcome = Admitted
	}
}

func (o *Op) witness(group, epoch uint32, term, index uint64, at time.Duration, uncommitted bool) {
	o.Witness = Witness{Group: group, Epoch: epoch, Term: term, Index: index, SlotTime: at, Uncommitted: uncommitted}
}

// named finds the bucket of o by its policy.
func (o *Op) named(names Names) bool {
	if names != nil {
		o.Bucket = names[o.Policy]
	}
	return o.Bucket != ""
}

// alone makes a request of one limit one that stands alone; of none, the answer
// itself, which tells of no bucket.
func alone(ops []Op, o Op) []Op {
	switch len(ops) {
	case 0:
		o.Passed = o.Outcome == Admitted
		return []Op{o}
	case 1:
		ops[0].Request = 0
	}
	return ops
}

func (w *Witness) place(p *client.Witness) {
	if p != nil {
		*w = Witness(*p)
	}
}

func (w *Witness) placeProto(p *pb.Witness) {
	if p != nil {
		*w = Witness{
			Group: p.GetGroup(), Epoch: p.GetEpoch(), Term: p.GetTerm(), Index: p.GetIndex(), Position: int(p.GetPosition()),
			SlotTime: time.Duration(p.GetSlotTimeNs()), Uncommitted: p.GetUncommitted(), Repeated: p.GetRepeated(),
		}
	}
}
