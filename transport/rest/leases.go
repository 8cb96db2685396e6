package rest

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/api/ratelimit"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// lease answers POST /v1/leases: units of leased policies, for the caller to spend until
// so long after it sent the request. What it does not spend it returns as a refund of
// the lease's id.
func lease(c *call) error {
	id, err := c.idempotencyKey()
	if err != nil {
		return err
	}
	s, err := c.body(maxDecisionBody)
	if err != nil {
		return err
	}
	q, ask := new(request), new(pb.LeaseAsk)
	q.decide.Lease = ask
	err = s.object("an object", func(name string) error {
		known, err := q.subject.member(&s, name)
		switch {
		case known:
			return err
		case name == "units":
			ask.Units, err = s.whole(wire.MaxCost)
			return err
		case name == "cost":
			n, err := s.whole(wire.MaxCost)
			q.cost, q.decide.Cost = int64(n), &q.cost
			return err
		default:
			return fault.Field("", "is unknown, want units, cost, %s", subjectFields)
		}
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && ask.Units == 0 {
		err = fault.Field("units", "none, want how many units to lease, 1 … %d", wire.MaxCost)
	}
	if err != nil {
		return err
	}
	if id == "" {
		id = newID()
	}
	q.decide.Subject, q.decide.RequestId = &q.subject.pb, id
	if err := q.done(); err != nil {
		return err
	}
	c.q.Message.Requests = append(c.q.Message.Requests[:0], &q.decide)
	r := c.h.options.Service.Decide(c.r.Context(), &c.q)[0]
	d := r.GetDecision()
	switch {
	case d == nil:
		return q.subject.located(errorOf(r))
	case d.GetAllowed() && d.GetLease() == nil:
		return fault.New(fault.Internal, "allowed, and no lease was granted")
	}
	c.writeLease(d, id)
	return nil
}

// writeLease answers with what was granted, or with the denial.
func (c *call) writeLease(d *pb.Decision, id string) {
	status := http.StatusOK
	c.out = appendHead(c.out[:0], d)
	if l := d.GetLease(); l != nil {
		c.out = appendText(c.out, "lease_id", id)
		c.out = strconv.AppendUint(append(c.out, `,"units":`...), l.GetUnits(), 10)
		c.out = strconv.AppendUint(append(c.out, `,"unit_cost":`...), l.GetUnitCost(), 10)
		// Rounded down: a holder must not spend behind its end.
		c.out = strconv.AppendInt(append(c.out, `,"expires_after_ms":`...), l.GetTtlNs()/1e6, 10)
	} else {
		status = http.StatusTooManyRequests
		if s, ok := ratelimit.RetryAfter(time.Duration(d.GetRetryAfterNs()), nil); ok {
			c.w.Header()[ratelimit.HeaderRetryAfter] = []string{strconv.FormatInt(s, 10)}
		}
	}
	ratelimit.Set(c.w.Header(), limitsOf(d))
	c.out = append(c.out, "}\n"...)
	c.answer(status, typeJSON)
}

// newID names a lease whose caller has no name for it.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
