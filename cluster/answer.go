package cluster

import (
	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// batch holds the results of one message. Results and decisions are made in one
// piece each; parts of different groups write different positions.
type batch struct {
	pointers  []*pb.Result
	results   []pb.Result
	decisions []pb.Decision
}

func newBatch(n int) *batch {
	b := &batch{pointers: make([]*pb.Result, n), results: make([]pb.Result, n), decisions: make([]pb.Decision, n)}
	for i := range b.results {
		b.pointers[i] = &b.results[i]
	}
	return b
}

func (b *batch) fail(i int, err error) { b.results[i].Error = fault.ToProto(err) }

// noMatch answers a request to which no policy applies.
func (b *batch) noMatch(i int, action policy.Action) {
	d := &b.decisions[i]
	d.Allowed = action == policy.Allow
	d.Reason = reasonNoPolicy
	if !d.Allowed {
		d.RetryAfterNs = -1
	}
	b.results[i].Decision = d
}

// The reasons of decisions, as callers see them.
const (
	reasonNoPolicy       = "no_policy"
	reasonRateLimited    = "rate_limited"
	reasonCostExceeds    = "cost_exceeds_capacity"
	reasonNothingAllowed = "nothing_allowed"
)

var reasons = map[bucket.Reason]string{
	bucket.ReasonNone:                "",
	bucket.ReasonRateLimited:         reasonRateLimited,
	bucket.ReasonCostExceedsCapacity: reasonCostExceeds,
	bucket.ReasonNothingAllowed:      reasonNothingAllowed,
}

// codeErrors maps what a table refuses to the error the caller gets.
var codeErrors = map[bucket.Code]error{
	bucket.TooOld:    fault.New(fault.TooOld, "the request id was acknowledged, or is older than what is kept"),
	bucket.IDReused:  fault.New(fault.IDReused, "an earlier request with this id had other content"),
	bucket.NotHeld:   fault.New(fault.NotHeld, "the group does not hold this slot"),
	bucket.StoreFull: fault.New(fault.StoreFull, "the cap on buckets or request ids is reached, and this key is new"),
}

// answer writes the results of one group's part.
func (n *Node) answer(v *view, p *part, b *batch, epoch uint32) {
	o := &p.outcome
	for k, i := range p.at {
		item := &o.Results.Items[k]
		if err := codeErrors[item.Code]; err != nil {
			b.fail(i, err)
			continue
		}
		d := &b.decisions[i]
		d.Allowed = item.Code == bucket.Admitted || item.Code == bucket.Repeated
		d.Uncommitted = o.Uncommitted[k]
		d.Epoch, d.Group, d.Index, d.Term, d.SlotTimeNs = epoch, p.group, o.Index, o.Term, item.SlotTime
		describe(v, d, o.Results.Answers[item.First:item.First+item.Count], p.hits[k])
		b.results[i].Decision = d
		n.metrics.count(d)
	}
}

// describe fills in the answer of each limit and the headline, the strictest.
// hits are the policies as matched now; a repeated answer may be of older ones.
func describe(v *view, d *pb.Decision, answers []bucket.Answer, hits []policy.Hit) {
	limits := make([]pb.LimitDecision, len(answers))
	head := 0
	for i := range answers {
		a, l := &answers[i], &limits[i]
		l.Allowed, l.Limit, l.Remaining = a.Allowed, a.Capacity, a.Remaining
		l.ResetAfterNs, l.RetryAfterNs, l.Reason = a.ResetAfter, a.RetryAfter, reasons[a.Reason]
		l.PolicyVersion = a.Rule.Version
		if i < len(hits) && hits[i].Number == a.Rule.Policy {
			l.PolicyId = hits[i].Policy.ID
		} else if p, ok := v.index.ByNumber(a.Rule.Policy); ok {
			l.PolicyId = p.ID
		}
		if stricter(l, &limits[head]) {
			head = i
		}
	}
	if len(limits) == 0 {
		return
	}
	h := &limits[head]
	d.Limit, d.Remaining, d.ResetAfterNs, d.RetryAfterNs = h.Limit, h.Remaining, h.ResetAfterNs, h.RetryAfterNs
	d.PolicyId, d.PolicyVersion, d.Reason = h.PolicyId, h.PolicyVersion, h.Reason
	if len(limits) > 1 {
		d.Limits = make([]*pb.LimitDecision, len(limits))
		for i := range limits {
			d.Limits[i] = &limits[i]
		}
	}
}

// stricter says whether a makes a better headline than b: a denier before any
// other, the longest wait among deniers, the least remaining share among the rest.
func stricter(a, b *pb.LimitDecision) bool {
	if a.Allowed != b.Allowed {
		return !a.Allowed
	}
	if !a.Allowed {
		return uint64(a.RetryAfterNs) > uint64(b.RetryAfterNs) // -1, never, is the longest
	}
	// a.Remaining/a.Limit < b.Remaining/b.Limit; both are at most 10^9.
	return a.Remaining*b.Limit < b.Remaining*a.Limit
}
