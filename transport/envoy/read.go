package envoy

import (
	"fmt"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
	"github.com/ringlimit/ringlimit/policy/descriptor"
)

// question is a request of Envoy, one request of ours for each descriptor.
type question struct {
	requests wire.Requests
	hits     []hits // of each
}

// hits is what a descriptor adds to its counters.
type hits uint8

const (
	spend  hits = iota
	look        // 0 hits: would one pass?
	refund      // negative hits: nothing is known to give back, so it is answered as a look and never denied
)

// read turns a request into one decision for each of its descriptors.
func read(in *rls.RateLimitRequest) (*question, error) {
	n := len(in.GetDescriptors())
	switch {
	case in.GetDomain() == "":
		return nil, fault.Field("domain", "empty, want the domain of the descriptors")
	case n == 0 || n > wire.MaxRequests:
		return nil, fault.Field("descriptors", "%d of them, want 1 … %d", n, wire.MaxRequests)
	}
	q := &question{hits: make([]hits, n)}
	q.requests.Message.Requests = make([]*pb.DecideRequest, n)
	for i, d := range in.GetDescriptors() {
		if len(d.GetEntries()) > descriptor.MaxEntries {
			return nil, fault.Field(fmt.Sprintf("descriptors[%d].entries", i), "%d of them, want at most %d", len(d.GetEntries()), descriptor.MaxEntries)
		}
		kind, cost := hitsOf(in, d)
		q.hits[i] = kind
		q.requests.Message.Requests[i] = &pb.DecideRequest{Subject: subjectOf(in.GetDomain(), d), Cost: &cost}
	}
	return q, nil
}

// hitsOf is what a descriptor adds: its own hits, which may be 0, else those of the
// request, of which 0 means 1. More than the largest cost is that: only a limit of the
// largest amount admits it.
func hitsOf(in *rls.RateLimitRequest, d *common.RateLimitDescriptor) (hits, int64) {
	n := max(1, uint64(in.GetHitsAddend()))
	if d.GetHitsAddend() != nil {
		n = d.GetHitsAddend().GetValue()
	}
	switch {
	case d.GetIsNegativeHits():
		return refund, 0
	case n == 0:
		return look, 0
	}
	return spend, int64(min(n, wire.MaxCost))
}

// subjectOf is what policies see of a descriptor.
func subjectOf(domain string, d *common.RateLimitDescriptor) *pb.Subject {
	var entryStore [descriptor.MaxEntries]descriptor.Entry
	var nameStore [descriptor.MaxEntries]string
	entries := entryStore[:0]
	for _, e := range d.GetEntries() {
		entries = append(entries, descriptor.Entry{Key: e.GetKey(), Value: e.GetValue()})
	}
	s := &pb.Subject{Attributes: make([]*pb.Attribute, 0, len(entries)+3)}
	add := func(name, value string) {
		s.Attributes = append(s.Attributes, &pb.Attribute{Name: name, Value: value})
	}
	add(descriptor.Domain, descriptor.Value(descriptor.Domain, domain))
	add(descriptor.Shape, descriptor.ShapeOf(entries))
	for i, name := range descriptor.Names(nameStore[:0], entries) {
		value := descriptor.Value(name, entries[i].Value)
		switch name {
		case "tenant":
			s.Tenant = value
		case "plan":
			s.Plan = value
		case "region":
			s.Region = value
		default:
			add(name, value)
		}
	}
	if l := d.GetLimit(); l != nil {
		add(descriptor.Limit, limitText(l))
	}
	return s
}

// limitText is the limit that a request brings, such as 100/minute or 100/10minute.
// No policy is made of it: it is an attribute, for policies to match.
func limitText(l *common.RateLimitDescriptor_RateLimitOverride) string {
	times := ""
	if n := l.GetUnitMultiplier().GetValue(); n > 1 {
		times = fmt.Sprint(n)
	}
	return fmt.Sprintf("%d/%s%s", l.GetRequestsPerUnit(), times, strings.ToLower(l.GetUnit().String()))
}
