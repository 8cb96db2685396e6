package rest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/api/ratelimit"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// decide answers POST /v1/decisions.
func decide(c *call) error {
	all, err := c.wantsLimits()
	if err != nil {
		return err
	}
	id, err := c.idempotencyKey()
	if err != nil {
		return err
	}
	s, err := c.body(maxDecisionBody)
	if err != nil {
		return err
	}
	q := new(request)
	if err := q.read(&s, false); err != nil {
		return err
	}
	if err := s.end(); err != nil {
		return err
	}
	q.decide.RequestId = id
	if err := q.done(); err != nil {
		return err
	}
	c.q.Message.Requests = append(c.q.Message.Requests[:0], &q.decide)
	r := c.h.options.Service.Decide(c.r.Context(), &c.q)[0]
	d := r.GetDecision()
	if d == nil {
		return q.subject.located(errorOf(r))
	}
	if d.GetDegraded() && !d.GetAllowed() {
		p := unavailable(d)
		c.writeProblem(&p)
		return nil
	}
	status := http.StatusOK
	if !d.GetAllowed() {
		status = http.StatusTooManyRequests
		if s, ok := ratelimit.RetryAfter(time.Duration(d.GetRetryAfterNs()), nil); ok {
			c.w.Header()[ratelimit.HeaderRetryAfter] = []string{strconv.FormatInt(s, 10)}
		}
	}
	ratelimit.Set(c.w.Header(), limitsOf(d))
	c.out = append(appendDecision(c.out[:0], d, all), '\n')
	c.answer(status, typeJSON)
	return nil
}

// idempotencyKey is the caller's own id of the request, taken as it stands; "": none.
func (c *call) idempotencyKey() (string, error) {
	id, ok, err := c.header(headerIdempotency)
	if err != nil || !ok {
		return "", err
	}
	if err := checkID(id); err != nil {
		return "", within(headerIdempotency, err)
	}
	return id, nil
}

// wantsLimits reads the one query parameter of decisions.
func (c *call) wantsLimits() (bool, error) {
	if c.r.URL.RawQuery == "" {
		return false, nil
	}
	query, err := c.query("limits")
	if err != nil {
		return false, err
	}
	switch v := query.Get("limits"); v {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, fault.Field("limits", "%s, want true or false", printable(v))
	}
}

func errorOf(r *pb.Result) error {
	if r.GetError() == nil {
		return fault.New(fault.OutcomeUnknown, "neither decision nor error")
	}
	return fault.FromProto(r.GetError())
}

// decideBatch answers POST /v1/decisions:batch. A body that is no list of requests is
// an error, with nothing charged; what is wrong with one request is answered in its
// place.
func decideBatch(c *call) error {
	all, err := c.wantsLimits()
	if err != nil {
		return err
	}
	if len(c.r.Header[headerIdempotency]) > 0 {
		return fault.Field(headerIdempotency, "given for a batch, want a request_id in each request instead")
	}
	s, err := c.body(maxBatchBody)
	if err != nil {
		return err
	}
	requests, err := c.readBatch(&s)
	if err != nil {
		return err
	}
	results := c.h.options.Service.Decide(c.r.Context(), &c.q)
	c.out = append(c.out[:0], `{"results":[`...)
	for i, r := range results {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendResult(c.out, r, requests[i], i, all)
	}
	c.out = append(c.out, "]}\n"...)
	c.answer(http.StatusOK, typeJSON)
	return nil
}

// appendResult writes the body that the request would have got alone.
func appendResult(dst []byte, r *pb.Result, q *request, i int, all bool) []byte {
	switch d := r.GetDecision(); {
	case d == nil:
		p := problemOf(within(at(i), q.subject.located(errorOf(r))))
		return p.append(dst)
	case d.GetDegraded() && !d.GetAllowed():
		p := unavailable(d)
		return p.append(dst)
	default:
		return appendDecision(dst, d, all)
	}
}

// readBatch reads all requests, and puts the good and the bad ones into c.q.
func (c *call) readBatch(s *scan) (requests []*request, err error) {
	c.q.Message.Requests, c.q.Bad = c.q.Message.Requests[:0], c.q.Bad[:0]
	given := false
	err = s.object("an object with requests", func(name string) error {
		if name != "requests" {
			return fault.Field("", "is unknown, want requests")
		}
		given = true
		return s.list("a list of requests", func(i int) error {
			if i == wire.MaxRequests {
				return fault.Field("", "one too many, want at most %d", wire.MaxRequests)
			}
			one, err := s.pass()
			if err != nil {
				return err
			}
			q := new(request)
			requests = append(requests, q)
			if err := q.read(&one, true); err != nil {
				c.q.Bad = append(c.q.Bad, wire.Bad{Index: i, Err: err})
			} else if err := q.done(); err != nil {
				c.q.Bad = append(c.q.Bad, wire.Bad{Index: i, Err: err})
			} else {
				c.q.Message.Requests = append(c.q.Message.Requests, &q.decide)
			}
			return nil
		})
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && !given {
		err = fault.Field("requests", "missing, want a list of requests")
	}
	return requests, err
}
