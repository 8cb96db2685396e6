package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// MaxCost, MaxRequestID and MaxPermitID bound a request.
const (
	MaxCost      = 1_000_000_000
	MaxRequestID = 64  // bytes
	MaxPermitID  = 256 // bytes
)

// Requests is a decoded message of takes and the memory it lives in, which the
// next decoding reuses. It is not safe for concurrent use.
type Requests struct {
	// Message holds the well-formed requests, in order. Each has a subject, and
	// each Sent its session.
	Message pb.StreamRequest
	// Bad are the others, by index. Together they are the requests of the message.
	Bad []Bad
	// Unread is how many requests at the end of the message were only counted.
	Unread int

	source     source
	requests   slab[pb.DecideRequest]
	subjects   slab[pb.Subject]
	principals slab[pb.Principal]
	attributes slab[pb.Attribute]
	sents      slab[pb.Sent]
	costs      slab[int64]
	single     slab[pb.PolicyCost]
	leases     slab[pb.LeaseAsk]
}

// Bad is a request that cannot be judged. Err is InvalidArgument with the field's path.
type Bad struct {
	Index int
	Err   error
}

// Len is the number of requests that were read, bad ones too.
func (r *Requests) Len() int { return len(r.Message.Requests) + len(r.Bad) }

// Decide decodes a DecideRequest as a message of one request. An error is about
// the request itself, with a path that starts there.
func (r *Requests) Decide(b []byte) error {
	r.reset()
	q, err := r.decide(r.source.read(b, true))
	if err == nil {
		err = check(q, 0)
	}
	r.Message.Requests = append(r.Message.Requests, q)
	return err
}

// Batch decodes a DecideBatchRequest. An error is about the message as a whole.
func (r *Requests) Batch(b []byte) error { return r.message(b, 1, MaxRequests) }

// Stream decodes a StreamRequest, of its requests the first ones, at most so many; the
// others are Unread, and cost next to nothing. An error is about the message as a whole.
func (r *Requests) Stream(b []byte, most int) error { return r.message(b, 5, most) }

// message decodes a StreamRequest, or, if requests is 1, a DecideBatchRequest.
func (r *Requests) message(b []byte, requests protowire.Number, most int) error {
	r.reset()
	m := &r.Message
	s := r.source.read(b, most > 1)
	index := 0
	for s.more() {
		num, typ, err := s.next()
		switch {
		case err != nil:
		case num == requests && typ == protowire.BytesType:
			err = r.element(&s, index, most)
			index++
		case requests == 1:
			err = s.skip(num, typ)
		case num == 1 && typ == protowire.VarintType:
			m.Id, err = s.varint()
		case num == 2 && typ == protowire.Fixed64Type:
			m.Session, err = s.fixed64()
		case num == 3 && typ == protowire.VarintType:
			m.Acked, err = s.varint()
		case num == 4 && typ == protowire.VarintType:
			m.Revision, err = s.varint()
		case num == 6 && typ == protowire.VarintType:
			m.TimeoutNs, err = s.varint()
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return err
		}
	}
	r.checkAll()
	return nil
}

// element decodes one request of a message; if it is bad, only it suffers.
func (r *Requests) element(s *span, index, most int) error {
	in, err := s.sub()
	if err != nil {
		return err
	}
	if index == MaxRequests {
		return invalid("requests", "must be at most %d", MaxRequests)
	}
	if index >= most {
		r.Unread++
		return nil
	}
	if most == 1 {
		r.source.all = string(r.source.b[:in.end]) // not all of what is not read
	}
	q, err := r.decide(in)
	if err != nil {
		r.Bad = append(r.Bad, Bad{index, within(fmt.Sprintf("requests[%d]", index), err)})
		return nil
	}
	r.Message.Requests = append(r.Message.Requests, q)
	return nil
}

// checkAll moves requests that break a rule to Bad, which stays sorted.
func (r *Requests) checkAll() {
	good := r.Message.Requests[:0]
	index, bad := 0, 0
	malformed := r.Bad
	for _, q := range r.Message.Requests {
		for bad < len(malformed) && malformed[bad].Index == index {
			index++
			bad++
		}
		if err := check(q, r.Message.Session); err != nil {
			entry := Bad{index, within(fmt.Sprintf("requests[%d]", index), err)}
			malformed = append(malformed[:bad:bad], append([]Bad{entry}, malformed[bad:]...)...)
			bad++
		} else {
			good = append(good, q)
		}
		index++
	}
	r.Message.Requests, r.Bad = good, malformed
}

// within puts path in front of the field of err.
func within(path string, err error) error {
	e, ok := err.(*fault.Error)
	if !ok {
		return err
	}
	if e.Field == "" {
		e.Field = path
	} else {
		e.Field = path + "." + e.Field
	}
	return e
}

func (r *Requests) reset() {
	clear(r.Message.Requests)
	requests := r.Message.Requests[:0]
	r.Message = pb.StreamRequest{Requests: requests}
	r.source = source{}
	clear(r.Bad)
	r.Unread = 0
	r.Bad = r.Bad[:0]
	r.requests.reset(2 * MaxRequests)
	r.subjects.reset(2 * MaxRequests)
	r.principals.reset(4 * MaxRequests)
	r.attributes.reset(4 * MaxRequests)
	r.sents.reset(2 * MaxRequests)
	r.costs.reset(2 * MaxRequests)
	r.single.reset(2 * MaxRequests)
	r.leases.reset(2 * MaxRequests)
}
