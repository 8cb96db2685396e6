package cluster

import (
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/decision"
	"github.com/ringlimit/ringlimit/policy"
)

// A caller may take many units at once and spend them by itself for a while, where
// all policies that apply say so. To the table that is one take, see bucket's lease;
// here is who may have one, and how large a part of what is left.

// maxLeaseTime is how long tokens of a lease may be spent. It stands in the bound of
// leased limits, burst + rate × (time + maxLeaseTime), so it is no setting.
const maxLeaseTime = time.Second

// leaseFormat is the format of entries that hand out leases, as control.FormatMax
// counts: a node that reads less would have to stop at such an entry.
const leaseFormat = control.FormatMax + 1

// cannotLease is a registered node that cannot read entries with leases; "": all can.
func cannotLease(s *control.State) string {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.Removed && n.FormatMax < leaseFormat {
			return n.Name
		}
	}
	return ""
}

// leased says whether what hits count may be leased: all policies must say so, also
// those in shadow mode, whose count would else not be that of the requests, and one
// of them must be able to deny.
func (v *view) leased(hits []policy.Hit) bool {
	return strict(hits) == nil && v.unread == "" && decision.Enforced(hits)
}

// strict is the first policy of hits that is not leased; nil: there is none.
func strict(hits []policy.Hit) *policy.Policy {
	for i := range hits {
		if hits[i].Policy.Consistency != policy.Leased {
			return hits[i].Policy
		}
	}
	return nil
}

// mayLease is nil if leased, else why not.
func (v *view) mayLease(hits []policy.Hit) error {
	p := strict(hits)
	switch {
	case p != nil:
		return fault.New(fault.NotLeased, "policy %s is %s", p.ID, p.Consistency)
	case v.unread != "":
		return fault.New(fault.NotLeased, "node %s is of an older build", v.unread)
	case !decision.Enforced(hits):
		return fault.New(fault.NotLeased, "no policy that may deny applies")
	}
	return nil
}

// askLease makes q, which is to be a take, ask for a lease.
func (n *Node) askLease(q *bucket.Request, r *pb.DecideRequest) {
	q.Op, q.Amount = bucket.OpLease, r.GetLease().GetUnits()
	q.Share = n.lessees.note(q.Takes, r.GetSent().GetSession(), time.Now())
}

// leaseContent is the content of a request that also asks for a lease.
func leaseContent(content, units uint64) uint64 { return content + units*0x9e3779b97f4a7c15 }

// stillLeased shortens a lease that is granted again to a copy of its request by how long
// ago it was granted first. The error says that it is over.
func stillLeased(l *pb.Lease, age int64) error {
	if l == nil || age == 0 {
		return nil
	}
	if l.TtlNs -= age; l.TtlNs <= 0 {
		return fault.New(fault.TooOld, "the lease that this id was granted is over: ask under another one")
	}
	return nil
}

// leaseTime is how long the units of answers may be spent: never after the end of a
// window that counts them.
func leaseTime(answers []bucket.Answer) time.Duration {
	most := maxLeaseTime
	for i := range answers {
		if a := &answers[i]; a.Units > 0 && a.Rule.Limit.Algorithm == bucket.FixedWindow {
			most = min(most, time.Duration(a.ResetAfter))
		}
	}
	return most
}

// lease counts a decision that was asked for a lease.
func (m *metrics) lease(d *pb.Decision) {
	m.leases[flag(d.Allowed)].Inc()
	m.units.Add(float64(d.GetLease().GetUnits()))
}
