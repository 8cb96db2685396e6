package cluster

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/decision"
	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/transport"
)

// Decide answers every request of m, in order: here, where this node leads the
// group, else through the node that does.
func (n *Node) Decide(ctx context.Context, m *pb.StreamRequest, seats transport.Seats) []*pb.Result {
	e, _ := seats.(*entered)
	return n.decide(ctx, m, origin{source: transport.Source(ctx), entered: e})
}

// decide sorts the requests of a message by the group that decides them.
// forwarded messages are never forwarded again.
func (n *Node) decide(ctx context.Context, m *pb.StreamRequest, from origin) []*pb.Result {
	n.metrics.takes.Add(float64(len(m.Requests)))
	b := newBatch(len(m.Requests), from, n.since())
	if from.entered != nil {
		b.begun = from.entered.at
	}
	v := n.view.Load()
	if n.stopping.Load() && from.forwarded || !v.placed() {
		err := fault.New(fault.NotReady, "node %s knows no placement yet", n.self.name)
		if v.placed() {
			err = fault.New(fault.Unavailable, "node %s is stopping", n.self.name)
		}
		for i := range m.Requests {
			b.fail(i, err)
		}
		return b.pointers
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.reset()
	s.seats.begin(ctx, b.begun, from)
	defer s.seats.leave()
	n.prepareAll(v, s, b, m)
	n.decideGroups(ctx, v, s, b, m)
	return b.pointers
}

// prepareAll does what can be done before anything must be waited for.
func (n *Node) prepareAll(v *view, s *scratch, b *batch, m *pb.StreamRequest) {
	if len(m.Requests) > 0 && s.seats.first(v, s.subject(m.Requests[0]), len(m.Requests)) {
		n.turns.begin() // refusing needs none
		defer n.turns.end()
	}
	for i, r := range m.Requests {
		if err := n.prepare(v, s, b, m, i, r); err != nil {
			b.fail(i, err)
		}
	}
	s.seats.leaveFree()
}

// scratch holds what one message needs on its way to its groups. It is pooled.
type scratch struct {
	request    policy.Request
	principals []policy.Principal
	attributes []policy.Attribute
	costs      []policy.PolicyCost
	hits       []policy.Hit
	takes      []bucket.Take
	parts      []part // one per group that the message touches
	used       int
	session    struct{ id, key uint64 } // hashed last
	seats      seats
}

// part is the requests of a message that one group decides.
type part struct {
	group    uint32
	requests []group.Request
	at       []int          // position of each in the message
	hits     [][]policy.Hit // of each: those of this group first
	near     []int          // how many of them are this group's
	outcome  group.Outcome
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) reset() {
	s.hits, s.takes, s.used = s.hits[:0], s.takes[:0], 0
	s.session.key = 0
}

// part returns the part of a group, a new one if the message did not touch it yet.
func (s *scratch) part(id uint32) *part {
	for i := range s.parts[:s.used] {
		if s.parts[i].group == id {
			return &s.parts[i]
		}
	}
	if s.used == len(s.parts) {
		s.parts = append(s.parts, part{})
	}
	p := &s.parts[s.used]
	s.used++
	p.group, p.requests, p.at, p.hits, p.near = id, p.requests[:0], p.at[:0], p.hits[:0], p.near[:0]
	return p
}

// prepare matches one request and puts it into the part of its group, or
// answers it right away when no policy applies.
func (n *Node) prepare(v *view, s *scratch, b *batch, m *pb.StreamRequest, i int, r *pb.DecideRequest) error {
	req := s.subject(r)
	if err := req.Validate(); err != nil {
		return err
	}
	at := v.index.Home(req)
	if at.OK && !s.seats.has(v, v.state.SlotGroup[at.Slot], len(m.Requests)-i) {
		b.refuse(i)
		return nil
	}
	first := len(s.hits)
	s.hits = v.index.MatchIn(at, req, s.hits)
	hits := s.hits[first:len(s.hits):len(s.hits)]
	if len(hits) > bucket.MaxRequestTakes {
		return fault.New(fault.InvalidArgument, "%d policies apply to the request, at most %d may", len(hits), bucket.MaxRequestTakes)
	}
	if r.GetLease() != nil {
		if err := v.mayLease(hits); err != nil {
			return err
		}
	}
	if len(hits) == 0 || !decision.Enforced(hits) && v.state.Policies.NoMatch == policy.Deny {
		n.metrics.noMatch.Inc()
		b.noMatch(i, v.state.Policies.NoMatch)
		return nil
	}
	home, homeHash, near := v.place(at, hits)
	id, err := s.requestID(v, m, r, req, homeHash)
	if err != nil {
		return err
	}
	if id.Kind == bucket.NoID && near < len(hits) {
		id = temporaryID(v.index.Content(req))
	}
	if r.GetLease() != nil && near < len(hits) {
		return fault.New(fault.NotLeased, "the limits live in several groups")
	}
	groupID := v.state.SlotGroup[home]
	if !s.seats.take(v, groupID, len(m.Requests)-i) {
		b.refuse(i)
		return nil
	}
	p := s.part(groupID)
	firstTake := len(s.takes)
	for _, h := range hits[:near] {
		s.takes = append(s.takes, decision.Take(&h))
	}
	p.requests = append(p.requests, group.Request{
		Request:      bucket.Request{Home: home, ID: id, Takes: s.takes[firstTake:len(s.takes):len(s.takes)]},
		FirstAttempt: r.GetSent().GetAttempt() == 1,
		StaleOK:      r.GetStaleOk() && near == len(hits),
	})
	if r.GetLease() != nil {
		n.askLease(&p.requests[len(p.requests)-1].Request, r)
	}
	p.at, p.hits, p.near = append(p.at, i), append(p.hits, hits), append(p.near, near)
	return nil
}

// place finds where a request is decided: in the slot of its home if any of its
// buckets lives there, else in that of its first bucket, policies in id order. Which
// slot that is must not depend on the placement: its result is kept there, and
// found again by a copy that comes after a slot has moved. It moves the hits that
// the group of that slot decides to the front and counts them. hits are not empty.
func (v *view) place(at policy.Home, hits []policy.Hit) (home uint16, hash uint64, near int) {
	home, hash = at.Slot, at.Hash
	if !at.OK {
		hash = hits[0].Key.Lo
	}
	if !at.OK || !slices.ContainsFunc(hits, func(h policy.Hit) bool { return h.Slot == home }) {
		home = hits[0].Slot
	}
	return home, hash, nearby(v, hits, home)
}

// nearby moves the hits that the group of slot decides to the front, both parts
// in order, and counts them.
func nearby(v *view, hits []policy.Hit, slot uint16) int {
	g := v.state.SlotGroup[slot]
	slices.SortStableFunc(hits, func(a, b policy.Hit) int {
		return cmp.Compare(flag(v.state.SlotGroup[a.Slot] != g), flag(v.state.SlotGroup[b.Slot] != g))
	})
	for i := range hits {
		if v.state.SlotGroup[hits[i].Slot] != g {
			return i
		}
	}
	return len(hits)
}

// subject converts a wire request into the scratch's policy request.
func (s *scratch) subject(r *pb.DecideRequest) *policy.Request {
	sub := r.GetSubject()
	s.principals, s.attributes, s.costs = s.principals[:0], s.attributes[:0], s.costs[:0]
	for _, c := range r.GetCosts() {
		s.costs = append(s.costs, policy.PolicyCost{Policy: c.GetPolicy(), Cost: uint64(c.GetCost())})
	}
	for _, p := range sub.GetPrincipals() {
		s.principals = append(s.principals, policy.Principal{Type: p.GetType(), ID: p.GetId()})
	}
	for _, a := range sub.GetAttributes() {
		s.attributes = append(s.attributes, policy.Attribute{Name: a.GetName(), Value: a.GetValue()})
	}
	cost := uint64(1)
	if r.Cost != nil {
		cost = uint64(r.GetCost())
	}
	s.request = policy.Request{
		Tenant: sub.GetTenant(), Route: sub.GetRoute(), Plan: sub.GetPlan(), Region: sub.GetRegion(),
		Principals: s.principals, Attributes: s.attributes, Cost: cost, Costs: s.costs,
	}
	return &s.request
}

// requestID names a request as its table will know it. A copy that is older
// than what its group can remember is refused here.
func (s *scratch) requestID(v *view, m *pb.StreamRequest, r *pb.DecideRequest, req *policy.Request, home uint64) (bucket.ID, error) {
	if r.GetRequestId() == "" && r.GetSent().GetSequence() == 0 {
		return bucket.ID{}, nil
	}
	content, acked := v.index.Content(req), m.GetAcked()
	if l := r.GetLease(); l != nil {
		content, acked = leaseContent(content, l.GetUnits()), l.GetAcked()
	}
	if r.GetRequestId() != "" {
		return bucket.ID{Kind: bucket.OwnID, Own: v.index.OwnKey(home, r.GetRequestId()), Content: content}, nil
	}
	sent := r.GetSent()
	return bucket.ID{
		Kind: bucket.ClientID, Session: s.sessionKey(v, sent.GetSession()), Sequence: sent.GetSequence(), Acked: acked,
		Content: content, AgeNanos: sent.GetAgeNs(),
	}, nil
}

// sessionKey is the session as tables know it; mostly all requests of a message have one.
func (s *scratch) sessionKey(v *view, session uint64) uint64 {
	if session != s.session.id || s.session.key == 0 {
		s.session.id, s.session.key = session, v.index.Session(session)
	}
	return s.session.key
}

// decideGroups takes each part to its group; several groups at once.
func (n *Node) decideGroups(ctx context.Context, v *view, s *scratch, b *batch, m *pb.StreamRequest) {
	parts := s.parts[:s.used]
	if len(parts) == 1 {
		n.decidePart(ctx, v, &parts[0], b, m)
		return
	}
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			defer n.contain(slices.Clone(parts[i].at), b)
			n.decidePart(ctx, v, &parts[i], b, m)
		})
	}
	wg.Wait()
}

func (n *Node) decidePart(ctx context.Context, v *view, p *part, b *batch, m *pb.StreamRequest) {
	replica := v.replicas[p.group]
	if replica != nil && (b.from.forwarded || replica.Serving()) {
		if at, slots := p.setAside(v, replica); len(at) > 0 {
			var wait sync.WaitGroup
			defer wait.Wait()
			wait.Go(func() {
				defer n.contain(at, b)
				n.decideElsewhere(ctx, v, b, m, at, slots)
			})
			if len(p.at) == 0 {
				return
			}
		}
		err := replica.Take(ctx, p.requests, &p.outcome)
		switch {
		case err == nil:
			g, _ := v.state.Group(p.group)
			n.answer(ctx, v, p, b, m, g.Epoch)
			return
		case errors.Is(err, fault.Busy):
			if !b.from.seated { // else their seats are in the queue of another group
				v.queues[p.group].Full(len(p.at))
			}
			p.fail(b, err)
			return
		case errors.Is(err, group.ErrTooBig) && len(p.at) > 1:
			// The callers were only gathered: what no entry can carry at once goes in two.
			for _, half := range p.halves() {
				n.decidePart(ctx, v, half, b, m)
			}
			return
		case !errors.Is(err, fault.NotLeader):
			p.fail(b, err)
			return
		}
	}
	if b.from.forwarded {
		p.fail(b, fault.Leader(n.hint(v, p.group)))
		return
	}
	n.forward(ctx, v, p, b, m)
}

// halves are two parts that together ask what p asks.
func (p *part) halves() []*part {
	k := len(p.at) / 2
	return []*part{
		{group: p.group, requests: p.requests[:k], at: p.at[:k], hits: p.hits[:k], near: p.near[:k]},
		{group: p.group, requests: p.requests[k:], at: p.at[k:], hits: p.hits[k:], near: p.near[k:]},
	}
}

func (p *part) fail(b *batch, err error) {
	for _, i := range p.at {
		b.fail(i, err)
	}
}

// contain, deferred, keeps a panic to the requests at positions at: the others, and
// the process, go on. What had been done for them by then is not known.
func (n *Node) contain(at []int, b *batch) {
	fate := recover()
	if fate == nil {
		return
	}
	n.log.Error("panic while deciding", "panic", fate, "stack", string(debug.Stack()))
	for _, i := range at {
		b.fail(i, fault.New(fault.OutcomeUnknown, "the node failed while deciding"))
	}
}
