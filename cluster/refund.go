package cluster

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/decision"
	"github.com/ringlimit/ringlimit/policy"
)

// matched is a request with all that says where it is decided.
type matched struct {
	view *view
	req  *policy.Request
	hits []policy.Hit // those of the home's group first
	near int
	home uint16
	hash uint64 // of the home's values
}

// match finds the policies and the home of a request as decide does.
func (n *Node) match(r *pb.DecideRequest) (*matched, error) {
	v := n.view.Load()
	if !v.placed() {
		return nil, fault.New(fault.NotReady, "node %s knows no placement yet", n.self.name)
	}
	s := new(scratch)
	m := &matched{view: v, req: s.subject(r)}
	if err := m.req.Validate(); err != nil {
		return nil, err
	}
	m.hits = v.index.Match(m.req, nil)
	if len(m.hits) > 0 {
		m.home, m.hash, m.near = v.place(v.index.Home(m.req), m.hits)
		return m, nil
	}
	home := v.index.Home(m.req)
	if !home.OK {
		return nil, fault.New(fault.NotFound, "no policy applies to the request, and it has no home")
	}
	m.home, m.hash = home.Slot, home.Hash
	return m, nil
}

// parts are the slots that may keep a part of the request's result: which of them
// were decided together depended on the placement then.
func (m *matched) parts() []uint16 {
	slots := []uint16{m.home}
	for i := range m.hits {
		if s := m.hits[i].Slot; !slices.Contains(slots, s) {
			slots = append(slots, s)
		}
	}
	return slots
}

// Refund gives back what a decision under the caller's own id took, or what was not
// spent of a lease, once. It may be repeated: what was given back is not given back again.
func (n *Node) Refund(ctx context.Context, r *pb.RefundRequest) (*pb.RefundResponse, error) {
	m, err := n.match(&pb.DecideRequest{Subject: r.GetSubject()})
	if err != nil {
		return nil, err
	}
	id, slots := bucket.ID{Kind: bucket.OwnID, Own: m.view.index.OwnKey(m.hash, r.GetRequestId())}, m.parts()
	if l := r.GetLease(); l != nil {
		id = bucket.ID{Kind: bucket.ClientID, Session: m.view.index.Session(l.GetSession()), Sequence: l.GetSequence(), AgeNanos: l.GetAgeNs()}
		slots = slots[:1] // the home's: a lease is of one entry
	}
	out := new(pb.RefundResponse)
	for _, slot := range slots {
		var o group.Outcome
		err := n.askSlot(ctx, &group.Request{Request: bucket.Request{
			Op: bucket.OpRefund, Home: slot, ID: id, Amount: uint64(r.GetCost()),
		}}, &o)
		if err != nil {
			return nil, err
		}
		item := &o.Results.Items[0]
		switch item.Code {
		case bucket.Refunded:
			out.Refunded = true
			n.metrics.refunds.Inc()
			var d pb.Decision
			describe(m.view, &d, o.Results.Answers[item.First:item.First+item.Count], nil)
			out.Limits = append(out.Limits, limitsOf(&d)...)
		case bucket.NothingToRefund:
		default:
			if err := codeErrors[item.Code]; err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// limitsOf lists the answers of a decision, also the only one.
func limitsOf(d *pb.Decision) []*pb.LimitDecision {
	if len(d.Limits) > 0 || d.PolicyId == "" {
		return d.Limits
	}
	return []*pb.LimitDecision{{
		Allowed: d.Allowed, Limit: d.Limit, Remaining: d.Remaining, ResetAfterNs: d.ResetAfterNs, RetryAfterNs: d.RetryAfterNs,
		DelayNs: d.DelayNs, PolicyId: d.PolicyId, PolicyVersion: d.PolicyVersion, Reason: d.Reason,
	}}
}

// permitRef is what a permit's id, as callers see it, says: where it is held.
type permitRef struct {
	slot   uint16
	key    bucket.Key
	permit uint64
	window int64 // ns, the permit's time limit
	policy uint64
}

const permitBytes = 2 + 16 + 8 + 8 + 8

func (p permitRef) String() string {
	b := binary.LittleEndian.AppendUint16(make([]byte, 0, permitBytes), p.slot)
	for _, v := range []uint64{p.key.Hi, p.key.Lo, p.permit, uint64(p.window), p.policy} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parsePermit(text string) (permitRef, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != permitBytes {
		return permitRef{}, fault.Field("permit_id", "%q is no permit: want one that a decision gave", text)
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[2+8*i:]) }
	return permitRef{
		slot: binary.LittleEndian.Uint16(b), key: bucket.Key{Hi: u(0), Lo: u(1)},
		permit: u(2), window: int64(u(3)), policy: u(4),
	}, nil
}

// Release frees a permit before its time.
func (n *Node) Release(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error) {
	return n.permit(ctx, r, bucket.OpRelease)
}

// Renew gives a permit its full time again, from now.
func (n *Node) Renew(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error) {
	return n.permit(ctx, r, bucket.OpRenew)
}

func (n *Node) permit(ctx context.Context, r *pb.PermitRequest, op bucket.Op) (*pb.PermitResponse, error) {
	p, err := parsePermit(r.GetPermitId())
	if err != nil {
		return nil, err
	}
	v := n.view.Load()
	if !v.placed() {
		return nil, fault.New(fault.NotReady, "node %s knows no placement yet", n.self.name)
	}
	if int(p.slot) >= len(v.state.SlotGroup) {
		return nil, fault.Field("permit_id", "names slot %d of %d", p.slot, len(v.state.SlotGroup))
	}
	rule := bucket.Rule{Policy: p.policy, Limit: bucket.Limit{Algorithm: bucket.Concurrency, Amount: 1, Window: p.window}}
	if now, ok := v.index.ByNumber(p.policy); ok {
		rule.Version, rule.Limit, rule.Loss = now.Version, now.Limit, now.OnStateLoss.Loss()
	}
	var o group.Outcome
	err = n.askSlot(ctx, &group.Request{Request: bucket.Request{
		Op: op, Home: p.slot, Permit: p.permit, Takes: []bucket.Take{{Slot: p.slot, Key: p.key, Rule: rule}},
	}}, &o)
	if err != nil {
		return nil, err
	}
	switch code := o.Results.Items[0].Code; code {
	case bucket.Refunded:
		return &pb.PermitResponse{Held: true}, nil
	case bucket.Admitted:
		return &pb.PermitResponse{Held: true, ExpiresAfterNs: rule.Limit.Window}, nil
	case bucket.NoSuchPermit:
		return new(pb.PermitResponse), nil
	default:
		return nil, errors.Join(codeErrors[code], ctx.Err())
	}
}

// explainLimit bounds the policies that an explanation lists.
const explainLimit = 50

// Explain says which policies a request falls under and why, and what each
// bucket holds. It takes nothing.
func (n *Node) Explain(ctx context.Context, r *pb.DecideRequest) (*pb.ExplainResponse, error) {
	wait, cancel := context.WithTimeout(ctx, staleWait)
	defer cancel()
	for {
		v := n.view.Load()
		out, err := n.explain(ctx, r)
		if !errors.Is(err, fault.PolicyStale) || !n.awaitPolicies(wait, v) {
			return out, err
		}
	}
}

// explain is Explain by the policies that this node has; fault.PolicyStale if a
// group has newer ones.
func (n *Node) explain(ctx context.Context, r *pb.DecideRequest) (*pb.ExplainResponse, error) {
	m, err := n.match(r)
	if err != nil {
		return nil, err
	}
	g := m.view.state.SlotGroup[m.home]
	grp, _ := m.view.state.Group(g)
	out := &pb.ExplainResponse{HomeSlot: uint32(m.home), Group: g, Epoch: grp.Epoch, Home: strings.Join(m.view.state.Policies.Home, ", ")}
	if c, ok := n.table.leader(g); ok {
		out.Leader = c.node
	}
	for _, x := range m.view.index.Explain(m.req, explainLimit) {
		p := &pb.ExplainedPolicy{
			PolicyId: x.Policy.ID, Version: x.Policy.Version, Applies: x.Verdict == policy.Applies,
			Why: x.String(), Source: x.Policy.Source, Mode: x.Policy.Mode.String(),
		}
		if p.Applies {
			h := x.Hit
			p.Slot, p.Group, p.Cost = uint32(h.Slot), m.view.state.SlotGroup[h.Slot], h.Cost
			if h.Override != nil {
				p.Override, p.Version = h.Override.Key.String(), h.Rule.Version
			}
			if p.Now, err = n.lookAt(ctx, m.view, h); err != nil {
				return nil, err
			}
		}
		out.Policies = append(out.Policies, p)
	}
	return out, nil
}

// lookAt tells what one bucket holds now.
func (n *Node) lookAt(ctx context.Context, v *view, h policy.Hit) (*pb.LimitDecision, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	take := decision.Take(&h)
	take.Cost = 0
	var o group.Outcome
	if err := n.askSlot(ctx, &group.Request{Request: bucket.Request{Home: h.Slot, Takes: []bucket.Take{take}}}, &o); err != nil {
		return nil, err
	}
	item := &o.Results.Items[0]
	if err := codeErrors[item.Code]; err != nil {
		return nil, err
	}
	var d pb.Decision
	d.Allowed = item.Code == bucket.Admitted
	describe(v, &d, o.Results.Answers[item.First:item.First+item.Count], []policy.Hit{h})
	return limitsOf(&d)[0], nil
}
