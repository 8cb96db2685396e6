package rest

import (
	"net/http"
	"strconv"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// refund answers POST /v1/decisions:refund: the members of a decision that was asked for
// under an id of the caller's own, with that id as request_id. It may be repeated: what
// was given back is not given back again.
func refund(c *call) error {
	s, err := c.body(maxDecisionBody)
	if err != nil {
		return err
	}
	var subject subject
	req := &pb.RefundRequest{Subject: &subject.pb}
	err = s.object("an object", func(name string) error {
		known, err := subject.member(&s, name)
		switch {
		case known:
			return err
		case name == "cost":
			n, err := s.whole(wire.MaxCost)
			req.Cost = int64(n)
			return err
		case name == "request_id":
			if req.RequestId, err = s.textValue(); err == nil {
				err = checkID(req.RequestId)
			}
			return err
		default:
			return fault.Field("", "is unknown, want request_id, cost, %s", subjectFields)
		}
	})
	if err == nil {
		err = s.end()
	}
	if err == nil {
		err = subject.done()
	}
	if err == nil && req.RequestId == "" {
		err = fault.Field("request_id", "missing, want the Idempotency-Key or request_id of the decision")
	}
	if err != nil {
		return err
	}
	r, err := c.h.options.Service.Refund(c.r.Context(), req)
	if err != nil {
		return subject.located(err)
	}
	c.out = strconv.AppendBool(append(c.out[:0], `{"refunded":`...), r.GetRefunded())
	if limits := r.GetLimits(); len(limits) > 0 {
		c.out = append(appendLimits(append(c.out, `,"limits":[`...), &pb.Decision{Limits: limits}), ']')
	}
	c.out = append(c.out, "}\n"...)
	c.answer(http.StatusOK, typeJSON)
	return nil
}
