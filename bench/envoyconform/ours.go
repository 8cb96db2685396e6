package main

import (
	"context"
	"fmt"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/decision"
	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/policy/envoyimport"
	"github.com/ringlimit/ringlimit/transport/envoy"
)

// ours is the product's service and import over one table of buckets, at the time it
// is told. Windows begin where those of the reference do, not shifted by the hash of
// each key, so that both can be compared.
type ours struct {
	set     *policy.Set
	index   *policy.Index
	table   *bucket.Table
	server  *envoy.Server
	now     int64 // ns since epoch
	entries uint64
}

// version is that of all policies.
const version = 1

const slots = 8

func newOurs(files []string, a bucket.Algorithm) (*ours, error) {
	var in []envoyimport.File
	for i, f := range files {
		in = append(in, envoyimport.File{Name: fmt.Sprintf("%d.yaml", i), Data: []byte(f)})
	}
	made, err := envoyimport.Import(in, envoyimport.Options{Algorithm: a})
	if err != nil {
		return nil, err
	}
	o := &ours{set: made.Set, table: bucket.NewTable(slots, bucket.WithPhaseZero())}
	for _, p := range o.set.Policies {
		p.Version = version
	}
	if o.index, err = policy.Compile(o.set, policy.Keys{Slots: slots}); err != nil {
		return nil, err
	}
	all := make([]uint16, slots)
	for i := range all {
		all[i] = uint16(i)
	}
	o.entries++
	if err := o.table.Apply(o.entries, bucket.HoldEntry(0, all), nil); err != nil {
		return nil, err
	}
	o.server = envoy.New(envoy.Options{Service: o, Fallback: o.fallback, Timeout: time.Minute})
	return o, nil
}

// fallback tells the policies in one piece.
func (o *ours) fallback(context.Context, *pb.GetFallbackRequest) (*pb.GetFallbackResponse, error) {
	data := o.set.Encode()
	return &pb.GetFallbackResponse{Digest: 1, Total: uint64(len(data)), Data: data}, nil
}

// ask answers the request of a case.
func (o *ours) ask(a *ask) (*rls.RateLimitResponse, error) {
	in := a.in
	o.now = a.ns()
	return o.server.ShouldRateLimit(context.Background(), in)
}

// Decide makes it the service behind the server.
func (o *ours) Decide(_ context.Context, q *wire.Requests) []*pb.Result {
	out := make([]*pb.Result, len(q.Message.Requests))
	for i, r := range q.Message.Requests {
		d, err := o.decide(r)
		if err != nil {
			panic(err)
		}
		out[i] = &pb.Result{Decision: d}
	}
	return out
}

func (o *ours) decide(q *pb.DecideRequest) (*pb.Decision, error) {
	r := &policy.Request{Tenant: q.GetSubject().GetTenant(), Cost: uint64(q.GetCost())}
	for _, a := range q.GetSubject().GetAttributes() {
		r.Attributes = append(r.Attributes, policy.Attribute{Name: a.GetName(), Value: a.GetValue()})
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	hits := o.index.Match(r, nil)
	if len(hits) == 0 {
		return &pb.Decision{Allowed: true, Reason: decision.NoPolicy}, nil
	}
	var b bucket.Builder
	takes := make([]bucket.Take, len(hits))
	for i := range hits {
		takes[i] = decision.Take(&hits[i])
	}
	if !b.Add(&bucket.Request{Home: takes[0].Slot, Takes: takes}) {
		return nil, fmt.Errorf("%d policies apply to one descriptor", len(takes))
	}
	var results bucket.Results
	o.entries++
	if err := o.table.Apply(o.entries, b.Entry(o.now), &results); err != nil {
		return nil, err
	}
	if c := results.Items[0].Code; c != bucket.Admitted && c != bucket.Denied {
		return nil, fmt.Errorf("the table answers with code %d", c)
	}
	limits := decision.Append(nil, o.index, hits, results.Answers)
	return told(limits, results.Items[0].Code == bucket.Admitted), nil
}

// told is a decision as a node tells it.
func told(limits []decision.Limit, admitted bool) *pb.Decision {
	d := &pb.Decision{Allowed: true, Reason: decision.NoPolicy}
	if h := decision.Headline(limits); h >= 0 {
		l := limits[h]
		d = &pb.Decision{
			Allowed: admitted, Limit: l.Capacity, Remaining: l.Remaining, ResetAfterNs: l.ResetAfter, RetryAfterNs: l.RetryAfter,
			PolicyId: l.PolicyID, PolicyVersion: l.PolicyVersion, Reason: l.Reason,
		}
	}
	for _, l := range limits {
		d.Limits = append(d.Limits, &pb.LimitDecision{
			Allowed: l.Allowed, Limit: l.Capacity, Remaining: l.Remaining, ResetAfterNs: l.ResetAfter, RetryAfterNs: l.RetryAfter,
			PolicyId: l.PolicyID, PolicyVersion: l.PolicyVersion, Reason: l.Reason, Shadow: l.Shadow,
		})
	}
	return d
}
