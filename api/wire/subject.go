package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// decide decodes a DecideRequest.
func (r *Requests) decide(s span) (*pb.DecideRequest, error) {
	q := r.requests.next()
	*q = pb.DecideRequest{Costs: q.Costs[:0]}
	for s.more() {
		num, typ, err := s.next()
		switch {
		case err != nil:
		case num == 1 && typ == protowire.BytesType:
			err = r.subject(&s, q)
		case num == 2 && typ == protowire.VarintType:
			var v uint64
			v, err = s.varint()
			q.Cost = r.costs.next()
			*q.Cost = int64(v)
		case num == 3 && typ == protowire.BytesType:
			q.RequestId, err = s.text("request_id")
		case num == 4 && typ == protowire.BytesType:
			err = r.sent(&s, q)
		case num == 5 && typ == protowire.VarintType:
			var v uint64
			v, err = s.varint()
			q.StaleOk = v != 0
		case num == 7 && typ == protowire.VarintType:
			var v uint64
			v, err = s.varint()
			q.Witness = v != 0
		case num == 6 && typ == protowire.BytesType:
			err = r.policyCost(&s, q)
		case num == 8 && typ == protowire.BytesType:
			err = r.lease(&s, q)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return q, err
		}
	}
	if q.Subject == nil {
		r.newSubject(q)
	}
	return q, nil
}

// lease decodes what a request wants of a lease.
func (r *Requests) lease(outer *span, q *pb.DecideRequest) error {
	s, err := outer.sub()
	if err != nil {
		return err
	}
	if q.Lease == nil {
		q.Lease = r.leases.next()
		*q.Lease = pb.LeaseAsk{}
	}
	for s.more() {
		num, typ, err := s.next()
		switch {
		case err != nil:
		case num == 1 && typ == protowire.VarintType:
			q.Lease.Units, err = s.varint()
		case num == 2 && typ == protowire.VarintType:
			q.Lease.Acked, err = s.varint()
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return within("lease", err)
		}
	}
	return nil
}

func (r *Requests) newSubject(q *pb.DecideRequest) {
	q.Subject = r.subjects.next()
	principals, attributes := q.Subject.Principals[:0], q.Subject.Attributes[:0]
	*q.Subject = pb.Subject{Principals: principals, Attributes: attributes}
}

func (r *Requests) subject(outer *span, q *pb.DecideRequest) error {
	s, err := outer.sub()
	if err != nil {
		return err
	}
	if q.Subject == nil {
		r.newSubject(q)
	}
	for s.more() {
		num, typ, err := s.next()
		if err == nil {
			err = r.subjectField(&s, q.Subject, num, typ)
		}
		if err != nil {
			return within("subject", err)
		}
	}
	return nil
}

func (r *Requests) subjectField(s *span, m *pb.Subject, num protowire.Number, typ protowire.Type) (err error) {
	if typ != protowire.BytesType {
		return s.skip(num, typ)
	}
	switch num {
	case 1:
		m.Tenant, err = s.text("tenant")
	case 2:
		err = r.principal(s, m)
	case 3:
		m.Route, err = s.text("route")
	case 4:
		m.Plan, err = s.text("plan")
	case 5:
		m.Region, err = s.text("region")
	case 6:
		err = r.attribute(s, m)
	default:
		err = s.skip(num, typ)
	}
	return err
}

func (r *Requests) principal(s *span, m *pb.Subject) error {
	n := len(m.Principals)
	if n == MaxPrincipals {
		return invalid("principals", "must be at most %d", MaxPrincipals)
	}
	p := r.principals.next()
	*p = pb.Principal{}
	m.Principals = append(m.Principals, p)
	if err := pair(s, "type", &p.Type, "id", &p.Id); err != nil {
		return within(fmt.Sprintf("principals[%d]", n), err)
	}
	return nil
}

func (r *Requests) attribute(s *span, m *pb.Subject) error {
	n := len(m.Attributes)
	if n == MaxAttributes {
		return invalid("attributes", "must be at most %d", MaxAttributes)
	}
	a := r.attributes.next()
	*a = pb.Attribute{}
	m.Attributes = append(m.Attributes, a)
	if err := pair(s, "name", &a.Name, "value", &a.Value); err != nil {
		return within(fmt.Sprintf("attributes[%d]", n), err)
	}
	return nil
}

func (r *Requests) policyCost(outer *span, q *pb.DecideRequest) error {
	n := len(q.Costs)
	if n == MaxCosts {
		return invalid("costs", "must be at most %d", MaxCosts)
	}
	c := r.single.next()
	*c = pb.PolicyCost{}
	q.Costs = append(q.Costs, c)
	s, err := outer.sub()
	if err != nil {
		return err
	}
	for s.more() {
		num, typ, err := s.next()
		var v uint64
		switch {
		case err != nil:
		case num == 1 && typ == protowire.BytesType:
			c.Policy, err = s.text("policy")
		case num == 2 && typ == protowire.VarintType:
			v, err = s.varint()
			c.Cost = int64(v)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return within(fmt.Sprintf("costs[%d]", n), err)
		}
	}
	return nil
}

// pair decodes a message of two strings, numbered 1 and 2.
func pair(outer *span, name1 string, v1 *string, name2 string, v2 *string) error {
	s, err := outer.sub()
	if err != nil {
		return err
	}
	for s.more() {
		num, typ, err := s.next()
		switch {
		case err != nil:
		case num == 1 && typ == protowire.BytesType:
			*v1, err = s.text(name1)
		case num == 2 && typ == protowire.BytesType:
			*v2, err = s.text(name2)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Requests) sent(outer *span, q *pb.DecideRequest) error {
	s, err := outer.sub()
	if err != nil {
		return err
	}
	if q.Sent == nil {
		q.Sent = r.sents.next()
		*q.Sent = pb.Sent{}
	}
	for s.more() {
		num, typ, err := s.next()
		var v uint64
		switch {
		case err != nil:
		case num == 1 && typ == protowire.Fixed64Type:
			q.Sent.Session, err = s.fixed64()
		case num == 2 && typ == protowire.VarintType:
			q.Sent.Sequence, err = s.varint()
		case num == 3 && typ == protowire.VarintType:
			v, err = s.varint()
			q.Sent.Attempt = uint32(v)
		case num == 4 && typ == protowire.VarintType:
			q.Sent.AgeNs, err = s.varint()
		case num == 5 && typ == protowire.VarintType:
			v, err = s.varint()
			q.Sent.Epoch = uint32(v)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return within("sent", err)
		}
	}
	return nil
}
