package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/decision"
	"github.com/ringlimit/ringlimit/policy"
)

// batch holds the results of one message. Results and decisions are made in one
// piece each; parts of different groups write different positions.
type batch struct {
	pointers  []*pb.Result
	results   []pb.Result
	decisions []pb.Decision
	from      origin
	begun     int64 // Node.since
}

func newBatch(n int, from origin, now int64) *batch {
	b := &batch{from: from, begun: now, pointers: make([]*pb.Result, n), results: make([]pb.Result, n), decisions: make([]pb.Decision, n)}
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
	d.Reason = decision.NoPolicy
	if !d.Allowed {
		d.RetryAfterNs = -1
	}
	b.results[i].Decision = d
}

// codeErrors maps what a table refuses to the error the caller gets.
var codeErrors = map[bucket.Code]error{
	bucket.TooOld:      fault.New(fault.TooOld, "the request id was acknowledged, or is older than what is kept"),
	bucket.IDReused:    fault.New(fault.IDReused, "an earlier request with this id had other content"),
	bucket.NotHeld:     fault.New(fault.NotHeld, "the group does not hold this slot"),
	bucket.PolicyStale: fault.New(fault.PolicyStale, "the group holds a newer version of a policy"),
	bucket.StoreFull:   fault.New(fault.StoreFull, "the cap on buckets or request ids is reached"), // see full
	bucket.NotLeasable: fault.New(fault.NotLeased, "a limit of this kind, or a cost of 0, cannot be leased"),
}

// answer writes the results of one group's part. Requests with limits in other
// groups go on to those; requests matched by policies older than the group's are
// matched again, and those for slots that it does not hold wait for who does.
func (n *Node) answer(ctx context.Context, v *view, p *part, b *batch, m *pb.StreamRequest, epoch uint32) {
	var spreading sync.WaitGroup
	defer spreading.Wait()
	stale, away, slots := n.answerHere(ctx, v, p, b, m, epoch, &spreading)
	n.learned(v, p, b)
	if len(away) > 0 {
		spreading.Go(func() {
			defer n.contain(away, b)
			n.decideElsewhere(ctx, v, b, m, away, slots)
		})
	}
	if len(stale) > 0 {
		n.matchAgain(ctx, v, b, m, stale)
	}
}

// answerHere answers what needs nobody else. It begins to ask others, in spreading, and
// returns the positions of what must be decided anew: by newer policies, or where the
// slots are.
func (n *Node) answerHere(ctx context.Context, v *view, p *part, b *batch, m *pb.StreamRequest, epoch uint32, spreading *sync.WaitGroup) (stale, away []int, slots []uint16) {
	n.turns.begin()
	defer n.turns.end()
	o := &p.outcome
	for k, i := range p.at {
		item := &o.Results.Items[k]
		if item.Code == bucket.PolicyStale {
			stale = append(stale, i)
			continue
		}
		if item.Code == bucket.NotHeld {
			away, slots = append(away, i), slotsOf(slots, &p.requests[k].Request)
			continue
		}
		if item.Code == bucket.StoreFull && m.Requests[i].Lease == nil {
			n.full(b, i, p.group, epoch, p.hits[k])
			continue
		}
		if err := codeErrors[item.Code]; err != nil {
			b.fail(i, err)
			continue
		}
		d := &b.decisions[i]
		d.Allowed = item.Code == bucket.Admitted || item.Code == bucket.Repeated
		d.Uncommitted = o.Uncommitted[k]
		d.Epoch, d.Group, d.Index, d.Term, d.SlotTimeNs = epoch, p.group, o.Index, o.Term, item.SlotTime
		if d.Uncommitted {
			d.Index = o.Applied
		}
		if m.Requests[i].Witness {
			d.Witness = witness(o, k, p.group, epoch)
		}
		answers := o.Results.Answers[item.First : item.First+item.Count]
		if far := p.far(k, item.Code, answers); d.Allowed && len(far) > 0 {
			spreading.Go(func() { n.answerSpread(ctx, v, p, k, b, m, i, answers, far) })
			continue
		}
		describe(v, d, answers, p.hits[k])
		witnessLimits(d, p.requests[k].Home, p.hits[k], p.near[k])
		if err := stillLeased(d.Lease, item.Age); err != nil {
			b.fail(i, err)
			continue
		}
		if d.Leased = p.near[k] == len(p.hits[k]) && v.leased(p.hits[k]); m.Requests[i].Lease != nil {
			n.metrics.lease(d)
		}
		b.results[i].Decision = d
		n.metrics.count(d)
	}
	return stale, away, slots
}

// answerSpread asks the other slots of request k, which its home admitted, and
// answers for all of them.
func (n *Node) answerSpread(ctx context.Context, v *view, p *part, k int, b *batch, m *pb.StreamRequest, i int, near []bucket.Answer, hits []policy.Hit) {
	defer n.contain([]int{i}, b)
	far, err := n.spread(ctx, &p.requests[k], hits)
	d := &b.decisions[i]
	answers := slices.Clone(near)
	hits = slices.Clone(p.hits[k])
	for _, r := range far {
		code := r.code()
		if refusal := codeErrors[code]; err == nil && refusal != nil {
			err = refusal
		}
		if code != bucket.Admitted && code != bucket.Repeated {
			d.Allowed = false
		}
		if r.err == nil {
			answers = append(answers, r.outcome.Results.Answers...)
		}
	}
	switch {
	case errors.Is(err, fault.PolicyStale):
		n.matchAgain(ctx, v, b, m, []int{i})
		return
	case errors.Is(err, fault.StoreFull):
		n.full(b, i, p.group, d.Epoch, p.hits[k])
		return
	case err != nil:
		b.fail(i, err)
		return
	}
	describe(v, d, answers, hits)
	witnessLimits(d, p.requests[k].Home, hits, p.near[k])
	b.results[i].Decision = d
	n.metrics.count(d)
}

// staleWait bounds how long a request waits for policies that a group already has.
const staleWait = time.Second

// matchAgain decides requests anew once this node has policies newer than v:
// their group holds a newer version of one than they named, and charged nothing.
func (n *Node) matchAgain(ctx context.Context, v *view, b *batch, m *pb.StreamRequest, at []int) {
	ctx, cancel := context.WithTimeout(ctx, staleWait)
	defer cancel()
	n.metrics.stale.Add(float64(len(at)))
	if !n.awaitPolicies(ctx, v) {
		for _, i := range at {
			b.fail(i, fault.New(fault.NotReady, "node %s has older policies than the group of the request", n.self.name))
		}
		return
	}
	again := &pb.StreamRequest{Id: m.Id, Session: m.Session, Acked: m.Acked, Revision: m.Revision}
	for _, i := range at {
		again.Requests = append(again.Requests, m.Requests[i])
	}
	for k, r := range n.decide(ctx, again, b.from.again()) {
		b.pointers[at[k]] = r
	}
}

// awaitPolicies waits until this node has other policies than v; false: ctx ended before.
func (n *Node) awaitPolicies(ctx context.Context, v *view) bool {
	for n.view.Load().state.PolicyVersion == v.state.PolicyVersion {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// describe fills in the answer of each limit and the headline. hits are the
// policies as matched now; epoch is of the group that answered.
func describe(v *view, d *pb.Decision, answers []bucket.Answer, hits []policy.Hit) {
	var stack [4]decision.Limit
	limits := decision.Append(stack[:0], v.index, hits, answers)
	slices.SortStableFunc(limits, func(a, b decision.Limit) int { return strings.Compare(a.PolicyID, b.PolicyID) })
	head := decision.Headline(limits)
	if head < 0 {
		d.Reason = decision.NoPolicy
	} else {
		h := &limits[head]
		d.Limit, d.Remaining, d.ResetAfterNs, d.RetryAfterNs = h.Capacity, h.Remaining, h.ResetAfter, h.RetryAfter
		d.PolicyId, d.PolicyVersion, d.Reason = h.PolicyID, h.PolicyVersion, h.Reason
		if d.Allowed && h.Units > 0 {
			d.Lease = &pb.Lease{Units: h.Units, TtlNs: int64(leaseTime(answers)), UnitCost: h.UnitCost}
		}
	}
	if d.Allowed {
		d.DelayNs = decision.Delay(limits)
	}
	if len(limits) == 1 && head == 0 && limits[0].PermitID == 0 {
		return // the headline says it all
	}
	list := make([]pb.LimitDecision, len(limits))
	d.Limits = make([]*pb.LimitDecision, len(limits))
	for i := range limits {
		l := &limits[i]
		d.Limits[i] = &list[i]
		list[i].Allowed, list[i].Limit, list[i].Remaining = l.Allowed, l.Capacity, l.Remaining
		list[i].ResetAfterNs, list[i].RetryAfterNs, list[i].DelayNs = l.ResetAfter, l.RetryAfter, l.Delay
		list[i].PolicyId, list[i].PolicyVersion, list[i].Reason, list[i].Shadow = l.PolicyID, l.PolicyVersion, l.Reason, l.Shadow
		list[i].UnitCost = l.UnitCost
		if l.PermitID != 0 {
			list[i].PermitId, list[i].FencingToken = permitOf(hits, l), l.FencingToken
		}
	}
	if i := decision.Permit(limits); i >= 0 {
		d.PermitId, d.FencingToken = list[i].PermitId, list[i].FencingToken
	}
}

// permitOf is the id of a limit's permit: all that says where it is held.
func permitOf(hits []policy.Hit, l *decision.Limit) string {
	for i := range hits {
		if h := &hits[i]; h.Policy.ID == l.PolicyID {
			return permitRef{h.Slot, h.Key, l.PermitID, h.Rule.Limit.Window, h.Rule.Policy}.String()
		}
	}
	return ""
}
