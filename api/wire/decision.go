package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

func (a *Answers) decision(outer *span) error {
	s, err := outer.sub()
	if err != nil {
		return err
	}
	if a.result.Decision == nil {
		limits := a.value.Limits[:0]
		a.value = pb.Decision{Limits: limits}
		a.limits.reset(64)
		a.result.Decision = &a.value
	}
	for s.more() {
		num, typ, err := s.next()
		switch {
		case err != nil:
		case typ == protowire.VarintType:
			err = number(&s, a.result.Decision, num)
		case typ != protowire.BytesType:
			err = s.skip(num, typ)
		case num == 7:
			a.value.PolicyId, err = a.name(&s)
		case num == 9:
			a.value.Reason, err = a.name(&s)
		case num == 15:
			err = a.limit(&s)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func number(s *span, d *pb.Decision, num protowire.Number) error {
	v, err := s.varint()
	switch num {
	case 1:
		d.Allowed = v != 0
	case 2:
		d.Limit = v
	case 3:
		d.Remaining = v
	case 4:
		d.ResetAfterNs = int64(v)
	case 5:
		d.RetryAfterNs = int64(v)
	case 6:
		d.DelayNs = int64(v)
	case 8:
		d.PolicyVersion = v
	case 10:
		d.Degraded = v != 0
	case 11:
		d.Uncommitted = v != 0
	case 12:
		d.Epoch = uint32(v)
	case 13:
		d.Group = uint32(v)
	case 14:
		d.Index = v
	case 16:
		d.Term = v
	case 17:
		d.SlotTimeNs = int64(v)
	}
	return err
}

func (a *Answers) limit(outer *span) error {
	s, err := outer.sub()
	if err != nil {
		return err
	}
	l := a.limits.next()
	*l = pb.LimitDecision{}
	a.value.Limits = append(a.value.Limits, l)
	for s.more() {
		num, typ, err := s.next()
		switch {
		case err != nil:
		case typ == protowire.VarintType:
			err = limitNumber(&s, l, num)
		case num == 7 && typ == protowire.BytesType:
			l.PolicyId, err = a.name(&s)
		case num == 9 && typ == protowire.BytesType:
			l.Reason, err = a.name(&s)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func limitNumber(s *span, l *pb.LimitDecision, num protowire.Number) error {
	v, err := s.varint()
	switch num {
	case 1:
		l.Allowed = v != 0
	case 2:
		l.Limit = v
	case 3:
		l.Remaining = v
	case 4:
		l.ResetAfterNs = int64(v)
	case 5:
		l.RetryAfterNs = int64(v)
	case 6:
		l.DelayNs = int64(v)
	case 8:
		l.PolicyVersion = v
	}
	return err
}
