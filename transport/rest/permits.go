package rest

import (
	"context"
	"net/http"
	"strconv"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// release answers POST /v1/permits:release: held says whether the permit was still
// held; one that had ended frees nobody else's.
func release(c *call) error { return permit(c, c.h.options.Service.Release, false) }

// renew answers POST /v1/permits:renew: with held, the permit has its full time again.
func renew(c *call) error { return permit(c, c.h.options.Service.Renew, true) }

func permit(c *call, do func(context.Context, *pb.PermitRequest) (*pb.PermitResponse, error), renews bool) error {
	s, err := c.body(maxDecisionBody)
	if err != nil {
		return err
	}
	var subject subject
	req := &pb.PermitRequest{Subject: &subject.pb}
	err = s.object("an object", func(name string) error {
		known, err := subject.member(&s, name)
		switch {
		case known:
			return err
		case name == "permit_id":
			req.PermitId, err = s.textValue()
			return err
		default:
			return fault.Field("", "is unknown, want permit_id, %s", subjectFields)
		}
	})
	if err == nil {
		err = s.end()
	}
	if err == nil {
		err = subject.done()
	}
	if err != nil {
		return err
	}
	r, err := do(c.r.Context(), req)
	if err != nil {
		return subject.located(err)
	}
	c.out = strconv.AppendBool(append(c.out[:0], `{"held":`...), r.GetHeld())
	if renews && r.GetHeld() {
		// Rounded down: a holder must not believe in time that it does not have.
		c.out = strconv.AppendInt(append(c.out, `,"expires_after_ms":`...), r.GetExpiresAfterNs()/1e6, 10)
	}
	c.out = append(c.out, "}\n"...)
	c.answer(http.StatusOK, typeJSON)
	return nil
}
