package wire

import (
	"fmt"
	"math"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// check holds a request to the rules that need no policy, and gives its Sent
// the session of the message if it names none.
func check(q *pb.DecideRequest, session uint64) error {
	if c := q.GetCost(); c < 0 || c > MaxCost {
		return invalid("cost", "must be 0 to %d, is %d", MaxCost, c)
	}
	for i, c := range q.Costs {
		if c.Cost < 0 || c.Cost > MaxCost {
			return invalid(fmt.Sprintf("costs[%d].cost", i), "must be 0 to %d, is %d", MaxCost, c.Cost)
		}
	}
	if n := len(q.RequestId); n > MaxRequestID {
		return invalid("request_id", "must be at most %d bytes, is %d", MaxRequestID, n)
	}
	if q.Lease != nil {
		if err := checkLease(q); err != nil {
			return err
		}
		session = 0 // leases have one of their own
	}
	if q.Sent == nil {
		return nil
	}
	if q.RequestId != "" {
		return invalid("request_id", "must be absent where sent names the request")
	}
	return checkSent("sent", q.Sent, session)
}

// checkLease judges a request that asks for a lease.
func checkLease(q *pb.DecideRequest) error {
	switch n := q.Lease.GetUnits(); {
	case n < 1 || n > MaxCost:
		return invalid("lease.units", "must be 1 to %d, is %d", MaxCost, n)
	case q.Cost != nil && q.GetCost() == 0:
		return invalid("cost", "must be that of one unit of the lease, is 0")
	}
	return nil
}

// CheckDecide holds a request that protobuf did not decode to the rules that need no
// policy.
func CheckDecide(q *pb.DecideRequest) error {
	if err := check(q, 0); err != nil {
		return err
	}
	return checkSubject(q.GetSubject())
}

// checkSent judges the name of a request in the field at.
func checkSent(at string, s *pb.Sent, session uint64) error {
	if s.Session == 0 {
		s.Session = session
	}
	switch {
	case s.Session == 0:
		return invalid(at+".session", "must not be 0")
	case session != 0 && s.Session != session:
		return invalid(at+".session", "must be that of the message")
	case s.Sequence == 0:
		return invalid(at+".sequence", "must be at least 1")
	case s.AgeNs > math.MaxInt64:
		return invalid(at+".age_ns", "must be at most %d", int64(math.MaxInt64))
	}
	return nil
}

// CheckRefund holds a refund to the rules that need no policy.
func CheckRefund(r *pb.RefundRequest) error {
	switch n := len(r.GetRequestId()); {
	case n == 0 && r.Lease == nil:
		return invalid("request_id", "must be that of the decision, is empty")
	case n > 0 && r.Lease != nil:
		return invalid("request_id", "must be absent where lease names what is returned")
	case n > MaxRequestID:
		return invalid("request_id", "must be at most %d bytes, is %d", MaxRequestID, n)
	case r.GetCost() < 0 || r.GetCost() > MaxCost:
		return invalid("cost", "must be 0 to %d, is %d", MaxCost, r.GetCost())
	}
	if r.Sent != nil {
		if err := checkSent("sent", r.Sent, 0); err != nil {
			return err
		}
	}
	if r.Lease != nil {
		if err := checkSent("lease", r.Lease, 0); err != nil {
			return err
		}
	}
	return checkSubject(r.GetSubject())
}

// CheckPermit holds a release or renewal to the rules that need no policy.
func CheckPermit(r *pb.PermitRequest) error {
	switch n := len(r.GetPermitId()); {
	case n == 0:
		return invalid("permit_id", "must be that of a decision, is empty")
	case n > MaxPermitID:
		return invalid("permit_id", "must be at most %d bytes, is %d", MaxPermitID, n)
	}
	return checkSubject(r.GetSubject())
}

// checkSubject bounds a subject that protobuf decoded.
func checkSubject(s *pb.Subject) error {
	if n := len(s.GetPrincipals()); n > MaxPrincipals {
		return invalid("subject.principals", "must be at most %d, are %d", MaxPrincipals, n)
	}
	if n := len(s.GetAttributes()); n > MaxAttributes {
		return invalid("subject.attributes", "must be at most %d, are %d", MaxAttributes, n)
	}
	return nil
}
